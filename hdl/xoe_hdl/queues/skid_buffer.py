"""A register in a stream, in both directions."""

from __future__ import annotations

from amaranth.hdl import Module, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class SkidBuffer(wiring.Component):
    """Breaks every path between ``i`` and ``o``: one clock from in to out, a payload in every clock.

    ``i.ready`` falls one clock after ``o`` stops; what comes meanwhile is kept.
    """

    def __init__(self, shape: ShapeLike) -> None:
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})
        self._shape = shape

    def elaborate(self, platform: object) -> Module:
        """An output register and a spare behind it."""
        m = Module()
        spare, is_spare_used = Signal(self._shape, reset_less=True), Signal()
        m.d.comb += self.i.ready.eq(~is_spare_used)
        with m.If(~is_spare_used):
            m.d.sync += spare.eq(self.i.payload)
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid | is_spare_used), is_spare_used.eq(0)]
            m.d.sync += self.o.payload.eq(self.i.payload)
            with m.If(is_spare_used):
                m.d.sync += self.o.payload.eq(spare)
        with m.Elif(self.i.valid & self.i.ready):
            m.d.sync += is_spare_used.eq(1)
        return m
