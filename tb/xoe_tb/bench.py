"""Starting a bench: its parameters, clock, reset, and the structures at its ports."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from amaranth.hdl import ShapeLike
from amaranth.lib import data
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from .layout import pack, unpack

CLOCK_NS = 4


def params() -> dict[str, Any]:
    """The parameters given to ``xoe_sim.build.run_bench``."""
    return json.loads(os.environ.get("XOE_PARAMS", "{}"))


async def start(dut: Any) -> None:
    """Start the clock and reset the design; returns just after the clock edge that ends the reset."""
    Clock(dut.clk, CLOCK_NS, unit="ns").start()
    await reset(dut)


async def reset(dut: Any, clocks: int = 3) -> None:
    """Hold ``rst`` for some clocks; sources and sinks drop what they have under way."""
    edge = RisingEdge(dut.clk)
    dut.rst.value = 1
    for _ in range(clocks):
        await edge
    dut.rst.value = 0
    await edge


def drive_struct(dut: Any, name: str, layout: data.StructLayout, values: Mapping[str, Any]) -> None:
    """Drive the ports of a structure, such as ``cfg_mac``; fields left out become 0."""
    unknown = set(values) - set(layout.members)
    if unknown:
        raise KeyError(f"{name} has no {', '.join(sorted(unknown))}")
    for field, shape in layout.members.items():
        if isinstance(shape, data.StructLayout):
            drive_struct(dut, f"{name}_{field}", shape, values.get(field, {}))
        else:
            getattr(dut, f"{name}_{field}").value = pack(shape, values.get(field, 0))


def read_struct(dut: Any, name: str, layout: data.StructLayout) -> dict[str, Any]:
    """What the ports of a structure hold now."""
    return {field: _read(dut, f"{name}_{field}", shape) for field, shape in layout.members.items()}


def _read(dut: Any, name: str, shape: ShapeLike) -> Any:
    if isinstance(shape, data.StructLayout):
        return read_struct(dut, name, shape)
    return unpack(shape, int(getattr(dut, name).value))
