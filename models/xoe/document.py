"""Draws the tables of documents from the declarations: ``python -m xoe.document docs/wire-format.md``.

Each table stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``; what is between is replaced.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path

from .header import Header
from .transport import TransportSettings
from .wire import (
    ATOMICS,
    RESPONSE_BIT,
    SUPPORTED,
    AckBody,
    ControlBody,
    FrameHeader,
    Opcode,
    OperationHeader,
    Status,
    TrafficClass,
)


def draw_table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    """A table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def header_table(header: type[Header]) -> str:
    """The fields of a header: where each is, how wide, what it holds. Byte and bit are those of its first bit."""
    rows = (
        (field.offset // 8, 7 - field.offset % 8, field.width, _field_name(field.name), field.text or "Sent 0, ignored")
        for field in header.layout()
    )
    return draw_table(("byte", "bit", "width", "field", "holds"), rows)


def _field_name(name: str) -> str:
    return "reserved" if name.startswith("reserved") else f"`{name}`"


def opcode_table() -> str:
    """Every opcode with its response's, and whether it works."""
    rows = (
        (
            f"0x{op:02x}",
            f"0x{op | RESPONSE_BIT:02x}",
            _words(op),
            "works" if op in SUPPORTED else "set aside",
            _group(op),
        )
        for op in Opcode
    )
    return draw_table(("request", "response", "operation", "state", "class"), rows)


def _words(member: IntEnum) -> str:
    return member.name.lower().replace("_", " ")


def _group(opcode: Opcode) -> str:
    if opcode in ATOMICS or Opcode.FLOAT_ADD <= opcode <= Opcode.BFLOAT_ADD:
        return "atomics"
    return "probes" if opcode >= Opcode.PROBE_SHARED else "requests"


def enumeration_table(members: type[IntEnum]) -> str:
    """Number and name of each member."""
    return draw_table(("value", "meaning"), ((int(member), _words(member)) for member in members))


def _number(default: object) -> object:
    return int(default) if isinstance(default, bool) else default


def settings_table(settings: type) -> str:
    """Name, default and meaning of each field of a dataclass, as its docstring explains them."""
    text = inspect.getdoc(settings) or ""
    rows = []
    for field in dataclasses.fields(settings):
        found = re.search(rf"^    {field.name}: (.*?)(?=^    \w+: |^\S|\Z)", text, re.MULTILINE | re.DOTALL)
        meaning = " ".join(found[1].split()) if found else ""
        rows.append((f"`{field.name}`", _number(field.default), meaning))
    return draw_table(("setting", "default", "meaning"), rows)


Tables = dict[str, str]


def wire_format() -> Tables:
    """The tables of ``docs/wire-format.md``, by their names there."""
    return {
        "frame header": header_table(FrameHeader),
        "operation header": header_table(OperationHeader),
        "opcodes": opcode_table(),
        "status": enumeration_table(Status),
        "classes": enumeration_table(TrafficClass),
    }


def transport() -> Tables:
    """The tables of ``docs/transport.md``."""
    return {
        "control body": header_table(ControlBody),
        "ack body": header_table(AckBody),
        "settings": settings_table(TransportSettings),
    }


DOCUMENTS: dict[str, Callable[[], Tables]] = {"wire-format.md": wire_format, "transport.md": transport}


def redraw(text: str, drawn: dict[str, str]) -> str:
    """The document with every table drawn anew.

    Raises:
        ValueError: a table has no place in the document.
    """
    for name, table in drawn.items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"the document must have one place for the table {name!r}")
        before, rest = text.split(begin)
        text = f"{before}{begin}{table}\n{end}{rest.split(end)[1]}"
    return text


def redraw_file(arguments: list[str], drawn: dict[str, str], usage: str) -> None:
    """Redraw the document named on a command line ``arguments``; what is wrong with it ends the program."""
    if len(arguments) != 2:
        sys.exit(f"usage: {usage}")
    path = Path(arguments[1])
    try:
        path.write_text(redraw(path.read_text(), drawn))
    except (OSError, ValueError) as error:
        sys.exit(f"{path}: {error}")


def main(arguments: list[str]) -> None:
    """Redraw the document that a command line names."""
    name = Path(arguments[1]).name if len(arguments) == 2 else ""
    if name not in DOCUMENTS:
        sys.exit(f"usage: python -m xoe.document docs/{'|'.join(DOCUMENTS)}")
    redraw_file(arguments, DOCUMENTS[name](), f"python -m xoe.document docs/{name}")


if __name__ == "__main__":
    main(sys.argv)
