"""The end of a free-running pipeline: a queue that never has to refuse."""

from __future__ import annotations

from amaranth.hdl import Module, ShapeLike, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from xoe.config import check_choice


class OutputQueue(wiring.Component):
    """Takes what a pipeline delivers, and offers it on a stream from registers.

    What enters an empty queue is offered one clock later. Room is kept count of where the pipeline starts: ``start``
    (only while ``room`` is high) reserves a place, which is free again when its payload has been taken from ``o``.
    With ``depth`` more than two clocks above the time from ``start`` to ``give``, a stream that is never held back
    moves one payload a clock.

    Args:
        shape: of the payload.
        depth: places, a power of two from 4 to 64.

    Raises:
        ConfigError: another depth.
    """

    def __init__(self, shape: ShapeLike, depth: int = 16) -> None:
        check_choice("depth", depth, (4, 8, 16, 32, 64))
        self.shape, self.depth = shape, depth
        super().__init__(
            {
                "start": In(1),
                "room": Out(1, init=1),
                "give": In(1),
                "i": In(shape),
                "o": Out(stream.Signature(shape)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A register, and a memory for what has to wait before it."""
        m = Module()
        m.submodules.store = store = memory.Memory(shape=self.shape, depth=self.depth, init=[])
        write, read = store.write_port(), store.read_port(domain="comb")
        level, free = Signal(range(self.depth + 1)), Signal(range(self.depth + 1), init=self.depth)
        is_free, is_stored, fetch = Signal(), Signal(), Signal()
        m.d.comb += [
            is_free.eq(~self.o.valid | self.o.ready),
            fetch.eq(is_free & (level != 0)),
            is_stored.eq(self.give & ~(is_free & (level == 0))),
            write.en.eq(is_stored),
            write.data.eq(self.i),
        ]
        m.d.sync += [
            write.addr.eq(write.addr + is_stored),
            read.addr.eq(read.addr + fetch),
            level.eq(level + is_stored - fetch),
        ]
        with m.If(is_free):
            m.d.sync += self.o.valid.eq(fetch | self.give)
            with m.If(level != 0):
                m.d.sync += self.o.payload.eq(read.data)
            with m.Else():
                m.d.sync += self.o.payload.eq(self.i)
        left = free + (self.o.valid & self.o.ready) - self.start
        m.d.sync += [free.eq(left), self.room.eq(left != 0)]
        return m
