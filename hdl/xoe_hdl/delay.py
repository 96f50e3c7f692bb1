"""Delays, to keep what belongs together side by side in a free-running pipeline."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value, ValueLike
from amaranth.lib import data


def delayed(m: Module, name: str, value: ValueLike, clocks: int) -> Value:
    """``value`` as it was ``clocks`` clocks ago; 0 after a reset. A view keeps its layout."""
    shape = value.shape() if isinstance(value, data.View) else Value.cast(value).shape()
    for stage in range(clocks):
        later = Signal(shape, name=f"{name}_{stage + 1}")
        m.d.sync += later.eq(value)
        value = later
    return value
