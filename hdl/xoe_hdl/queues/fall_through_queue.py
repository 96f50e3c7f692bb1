"""A short queue with the least latency that flip-flops at both ends allow."""

from __future__ import annotations

from amaranth.hdl import Module, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from xoe.config import check_range


class FallThroughQueue(wiring.Component):
    """Holds up to ``depth`` payloads (2..64) of ``shape``, and one more in its output register.

    One clock from in to out when empty; one payload a clock. ``o`` comes straight from flip-flops and ``i.ready``
    depends on nothing outside, so that no path goes through. ``room`` (one clock late) says that more than ``margin``
    payloads still fit, as ``Queue`` has it. Longer queues are better made of ``Queue``, which may use block RAM.
    """

    def __init__(self, shape: ShapeLike, depth: int, margin: int = 0) -> None:
        check_range("depth", depth, 2, 64)
        check_range("margin", margin, 0, depth - 1)
        self.depth = depth
        self.margin = margin
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "room": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """A payload goes straight to the output register if that is free and nothing waits before it."""
        m = Module()
        i, o = Value.cast(self.i.payload), Value.cast(self.o.payload)
        m.submodules.fifo = fifo = SyncFIFO(width=len(i), depth=self.depth)
        is_free, passes = Signal(), Signal()
        m.d.comb += [
            is_free.eq(~self.o.valid | self.o.ready),
            passes.eq(is_free & ~fifo.r_rdy),
            fifo.w_data.eq(i),
            fifo.w_en.eq(self.i.valid & ~passes),
            fifo.r_en.eq(is_free),
            self.i.ready.eq(fifo.w_rdy),
        ]
        m.d.sync += self.room.eq(fifo.level < self.depth - self.margin)
        with m.If(is_free):
            m.d.sync += self.o.valid.eq(fifo.r_rdy | self.i.valid)
            with m.If(fifo.r_rdy):
                m.d.sync += o.eq(fifo.r_data)
            with m.Else():
                m.d.sync += o.eq(i)
        return m
