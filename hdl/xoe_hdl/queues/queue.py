"""A first-in first-out queue between two streams."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from xoe.config import check_range

DEPTH_MAX = 1 << 17


class Queue(wiring.Component):
    """Holds up to ``depth`` payloads (2..131072) of ``shape``, and one more in its output register.

    Three clocks from in to out when empty; one payload a clock. ``o`` comes straight from flip-flops, so that a block
    RAM's slow output has a clock of its own. ``room`` (from a flip-flop, one clock late) says that more than ``margin``
    payloads still fit: a free-running pipeline that starts something only with room, and has at most ``margin``
    payloads under way, need not look at ``i.ready``.
    """

    def __init__(self, shape: ShapeLike, depth: int, margin: int = 0) -> None:
        check_range("depth", depth, 2, DEPTH_MAX)
        check_range("margin", margin, 0, depth - 1)
        self.depth = depth
        self.margin = margin
        super().__init__(
            {"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "room": Out(1)},
        )

    def elaborate(self, platform: object) -> Module:
        """A ring of places of which one stays empty, and a register behind it.

        Reading hangs on the two addresses being different, so that synthesis sees that no place is ever read while it
        is written. Otherwise it would add a path round the memory.
        """
        m = Module()
        payload = Value.cast(self.i.payload)
        m.submodules.memory = memory = Memory(shape=len(payload), depth=self.depth, init=[])
        write, read = memory.write_port(), memory.read_port()
        level = Signal(range(self.depth))  # payloads that are still to be read
        is_read, is_taken, reads = Signal(), Signal(), Signal()  # read: one is at the memory's output
        m.d.comb += [
            self.i.ready.eq(level != self.depth - 1),
            write.en.eq(self.i.valid & self.i.ready),
            write.data.eq(payload),
            is_taken.eq(~self.o.valid | self.o.ready),
            reads.eq((write.addr != read.addr) & (~is_read | is_taken)),
            read.en.eq(reads),
        ]
        m.d.sync += [
            level.eq(level + write.en - reads),
            self.room.eq(level + is_read < self.depth - self.margin),
            is_read.eq(reads | is_read & ~is_taken),
        ]
        with m.If(write.en):
            m.d.sync += write.addr.eq(self._behind(write.addr))
        with m.If(reads):
            m.d.sync += read.addr.eq(self._behind(read.addr))
        with m.If(is_taken):
            m.d.sync += [self.o.payload.eq(read.data), self.o.valid.eq(is_read)]
        return m

    def _behind(self, address: Value) -> Value:
        return Mux(address == self.depth - 1, 0, address + 1)
