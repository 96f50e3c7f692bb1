"""A first-in first-out queue between two streams."""

from __future__ import annotations

from amaranth.hdl import Module, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from xoe.config import check_range


class Queue(wiring.Component):
    """Holds up to ``depth`` payloads (2..65536) of ``shape``, and one more in its output register.

    Three clocks from in to out when empty; one payload a clock. ``o`` comes straight from flip-flops, so that a block
    RAM's slow output has a clock of its own. ``room`` (from a flip-flop, one clock late) says that more than ``margin``
    payloads still fit: a free-running pipeline that starts something only with room, and has at most ``margin``
    payloads under way, need not look at ``i.ready``.
    """

    def __init__(self, shape: ShapeLike, depth: int, margin: int = 0) -> None:
        check_range("depth", depth, 2, 65536)
        check_range("margin", margin, 0, depth - 1)
        self.depth = depth
        self.margin = margin
        super().__init__(
            {"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "room": Out(1)},
        )

    def elaborate(self, platform: object) -> Module:
        """A FIFO, and a register behind it."""
        m = Module()
        payload = self.i.payload.as_value() if hasattr(self.i.payload, "as_value") else self.i.payload
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=len(payload), depth=self.depth)
        is_taken = Signal()
        m.d.comb += [
            fifo.w_data.eq(payload),
            fifo.w_en.eq(self.i.valid),
            self.i.ready.eq(fifo.w_rdy),
            is_taken.eq(~self.o.valid | self.o.ready),
            fifo.r_en.eq(is_taken),
        ]
        m.d.sync += self.room.eq(fifo.level < self.depth - self.margin)
        with m.If(is_taken):
            m.d.sync += [self.o.payload.eq(fifo.r_data), self.o.valid.eq(fifo.r_rdy)]
        return m
