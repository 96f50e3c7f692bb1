"""Workloads: read from a trace, or generated.

Two kinds of CSV are known by their columns: messages (``phase, op, src_rank, dst_rank, bytes``) and reads with the
data they returned (``op, addr, data_hex``, and more).
"""

from __future__ import annotations

import csv
import random
from dataclasses import dataclass
from pathlib import Path

from xoe.wire import DATA_MAX

PUT_OPS = ("all_to_all", "all_to_allv", "put")
GET_OPS = ("get",)
MESSAGE_COLUMNS = ("phase", "op", "src_rank", "dst_rank", "bytes")
READ_COLUMNS = ("op", "source", "addr", "data_hex")
ADDRESS_LIMIT = 1 << 64


class TraceError(ValueError):
    """A trace that cannot be read; the message names the file, the line and what is wrong."""


@dataclass(frozen=True)
class Message:
    """``size`` bytes that ``src_rank`` writes to (or, for a get, reads from) ``dst_rank``; ``line`` says whence."""

    phase: int
    op: str
    src_rank: int
    dst_rank: int
    size: int
    line: int = 0

    @property
    def is_get(self) -> bool:
        """Whether the source reads from the destination."""
        return self.op in GET_OPS


@dataclass(frozen=True)
class RecordedRead:
    """A remote read that somebody recorded: its address and the bytes that came back."""

    address: int
    data: bytes


@dataclass(frozen=True)
class Trace:
    """What a run replays: messages, or recorded reads."""

    name: str
    messages: tuple[Message, ...] = ()
    reads: tuple[RecordedRead, ...] = ()


def read_trace(path: Path) -> Trace:
    """The trace in a CSV file.

    Raises:
        TraceError: the file cannot be read, has other columns, or a row is not sound.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path}: cannot be read: {error}") from None
    columns = set(rows[0][1]) if rows else set()
    if columns.issuperset(MESSAGE_COLUMNS):
        return Trace(path.name, messages=tuple(_message(path, line, row) for line, row in rows))
    if columns.issuperset(READ_COLUMNS):
        return Trace(path.name, reads=_recorded_reads(path, rows))
    raise TraceError(
        f"{path}: needs the columns {', '.join(MESSAGE_COLUMNS)} or {', '.join(READ_COLUMNS)} and at least one row"
    )


def _number(path: Path, line: int, row: dict[str, str], column: str, base: int = 10) -> int:
    text = row[column]
    try:
        value = int(text or "", base)
    except ValueError:
        value = -1
    if not 0 <= value < ADDRESS_LIMIT:
        raise TraceError(f"{path}:{line}: {column} must be a whole number below 2^64, not {text!r}")
    return value


def _message(path: Path, line: int, row: dict[str, str]) -> Message:
    if row["op"] not in PUT_OPS + GET_OPS:
        raise TraceError(f"{path}:{line}: op must be one of {', '.join(PUT_OPS + GET_OPS)}, not {row['op']!r}")
    phase, src, dst, size = (_number(path, line, row, column) for column in ("phase", "src_rank", "dst_rank", "bytes"))
    return Message(phase, row["op"], src, dst, size, line)


def _recorded_reads(path: Path, rows: list[tuple[int, dict[str, str]]]) -> tuple[RecordedRead, ...]:
    """Pair each Get with the next AccessAckData of the same source id."""
    waiting: dict[str, int] = {}
    found = []
    for line, row in rows:
        if row["op"] == "Get":
            waiting[row["source"]] = _number(path, line, row, "addr", 16)
        elif row["op"] == "AccessAckData":
            if row["source"] not in waiting:
                raise TraceError(f"{path}:{line}: data for source {row['source']}, which asked for none")
            read = RecordedRead(waiting.pop(row["source"]), _hex(path, line, row["data_hex"]))
            if read.address + len(read.data) > ADDRESS_LIMIT:
                raise TraceError(f"{path}:{line}: the data must end below 2^64, not at {read.address:#x} and after")
            found.append(read)
    return tuple(found)


def _hex(path: Path, line: int, text: str | None) -> bytes:
    try:
        found = bytes.fromhex(text or "")
    except ValueError:
        found = b""
    if not 1 <= len(found) <= DATA_MAX:
        start = (text or "")[:20]
        raise TraceError(f"{path}:{line}: data_hex must be hexadecimal, 1 to {DATA_MAX} bytes, not {start!r}")
    return found


def generate(seed: int, ranks: int = 8) -> Trace:
    """An all-to-all among ``ranks``, then one of uneven sizes, then each rank reads from every other."""
    rng = random.Random(seed)
    messages = []
    for src in range(ranks):
        for dst in range(ranks):
            messages.append(Message(0, "all_to_all", src, dst, 2048))
            messages.append(Message(1, "all_to_allv", src, dst, rng.choice((1, 7, 24, 64, 65, 255, 256, 257, 1000))))
            messages.append(Message(2, "get", src, dst, rng.choice((1, 8, 63, 64, 128, 300, 512))))
    return Trace(f"generated, seed {seed}", messages=tuple(sorted(messages, key=lambda message: message.phase)))
