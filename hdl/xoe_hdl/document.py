"""Draws the tables of ``docs/ports.md`` from the layouts: ``python -m xoe_hdl.document docs/ports.md``."""

from __future__ import annotations

import sys

from amaranth.hdl import Shape
from amaranth.lib import data
from amaranth.lib.wiring import In

from xoe.cam import CamError
from xoe.config import NicConfig
from xoe.document import draw_table, enumeration_table, redraw_file

from .cam_writer import write_layout
from .layouts import CFG, TRANSLATION, WINDOW, command_beat, completion_beat
from .nic import Nic
from .transport.connection_layouts import connect_layout, notice_layout
from .transport.layouts import qp_bits
from .verilog import module_ports

_WIDTH = 64  # any: bit numbers are drawn relative to it


def _fields(layout: data.StructLayout, prefix: str = "", start: int = 0) -> list[tuple[str, int, int]]:
    """Name, offset and width in bits of every plain field, nested ones with their path."""
    found = []
    for name, field in layout:
        if isinstance(field.shape, data.StructLayout):
            found += _fields(field.shape, f"{prefix}{name}.", start + field.offset)
        else:
            found.append((prefix + name, start + field.offset, Shape.cast(field.shape).width))
    return found


def tdata_table(layout: data.StructLayout) -> str:
    """Where each field of a stream's ``tdata`` is; with W for the data width where the stream carries data."""
    has_data = layout.members.get("data") == _WIDTH
    rows = []
    for name, offset, width in _fields(layout):
        if has_data and name == "data":
            rows.append((f"`{name}`", "W-1:0", "W"))
            continue
        low = offset - _WIDTH if has_data else offset
        high = low + width - 1
        rows.append((f"`{name}`", f"W+{high}:W+{low}" if has_data else f"{high}:{low}", width))
    return draw_table(("field", "bits", "width"), rows)


def cfg_table() -> str:
    """The settings' ports."""
    return draw_table(("port", "width"), ((f"`cfg_{name}`", width) for name, _, width in _fields(CFG)))


def ports_table() -> str:
    """Every port of the NIC at 64 bits but settings and counters, which have tables of their own."""
    rows = (
        (f"`{port.name}`", "in" if port.flow is In else "out", len(port.value))
        for port in module_ports(Nic(NicConfig(data_width=_WIDTH)))
        if not port.name.startswith(("cfg_", "counters_"))
    )
    return draw_table(("port", "direction", "width"), rows)


def counters_table() -> str:
    """Each block's counters, and those of its parts."""
    found: dict[str, list[str]] = {}
    for path, _, _ in _fields(Nic(NicConfig()).counters.shape()):
        *blocks, name = path.split(".")
        found.setdefault("_".join(["counters", *blocks, ""]), []).append(f"`{name}`")
    return draw_table(("prefix", "counters"), ((f"`{prefix}`", ", ".join(names)) for prefix, names in found.items()))


def tables() -> dict[str, str]:
    """Every table of the document, by its name there."""
    return {
        "command": tdata_table(command_beat(_WIDTH)["data"].shape),
        "completion": tdata_table(completion_beat(_WIDTH)["data"].shape),
        "connect": tdata_table(connect_layout(qp_bits(NicConfig().queue_pairs))),
        "notice": tdata_table(notice_layout(qp_bits(NicConfig().queue_pairs))),
        "translation": tdata_table(write_layout(TRANSLATION)),
        "window": tdata_table(write_layout(WINDOW)),
        "cfg": cfg_table(),
        "outcomes": enumeration_table(CamError),
        "ports": ports_table(),
        "counters": counters_table(),
    }


if __name__ == "__main__":
    redraw_file(sys.argv, tables(), "python -m xoe_hdl.document docs/ports.md")
