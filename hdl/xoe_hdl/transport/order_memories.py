"""What is remembered of each connection's frames: its state, the frames kept, the credits consumed."""

from __future__ import annotations

from amaranth.hdl import Cat, Module
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from xoe.cyclic import CREDIT_BITS, SEQ_BITS

from ..memories import NO_COLLISION
from . import receive_layouts as layouts


class OrderMemories(wiring.Component):
    """The memories of ``Order``, with its registers at their ports.

    ``fetched`` comes a clock after ``fetch_qp``, ``kept`` two clocks after ``state.expected``, ``consumed`` two
    clocks after ``event``; ``store``, ``keep`` and ``count`` write ``state``, the frame of ``event`` and ``credits``.
    ``expected`` and ``delivered`` come two clocks after the queue pair that they are asked for.
    """

    def __init__(self, bits: int, window: int, pages: int) -> None:
        self.bits, self.window = bits, window
        event, state = layouts.event_layout(bits, pages), layouts.state_layout(window, pages)
        self.shown = data.StructLayout({name: state.members[name] for name in ("expected", "delivered")})
        super().__init__(
            {
                "event": In(event),
                "state": In(state),
                "credits": In(CREDIT_BITS),
                "store": In(1),
                "keep": In(1),
                "count": In(1),
                "fetch_qp": In(bits),
                "fetched": Out(state),
                "kept": Out(layouts.frame_layout(pages)),
                "consumed": Out(CREDIT_BITS),
                "shown_qp": In(bits),
                "expected": Out(SEQ_BITS),
                "drained_qp": In(bits),
                "delivered": Out(range(2 * pages)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """No event is fetched before the one before it is stored, so nothing is read while it is written."""
        m = Module()
        m.submodules.states = states = self._memory(self.state.shape(), 1)
        read, write = states.read_port(), states.write_port()
        m.d.comb += [
            read.addr.eq(self.fetch_qp),
            self.fetched.eq(read.data),
            write.addr.eq(self.event.qp),
            write.data.eq(self.state),
            write.en.eq(self.store),
        ]
        place = (self.window - 1).bit_length()
        m.submodules.frames = frames = self._memory(self.kept.shape(), self.window)
        read, write = frames.read_port(), frames.write_port()
        m.d.comb += [
            read.addr.eq(Cat(self.state.expected[:place], self.event.qp)),
            write.addr.eq(Cat(self.event.seq[:place], self.event.qp)),
            *(write.data[name].eq(self.event[name]) for name in self.kept.shape().members),
            write.en.eq(self.keep),
        ]
        m.d.sync += self.kept.eq(read.data)  # a block RAM is too slow for any logic behind it in the same clock
        m.submodules.counts = counts = self._memory(CREDIT_BITS, 4)
        read, write = counts.read_port(), counts.write_port()
        address = Cat(self.event.traffic_class[:2], self.event.qp)
        m.d.comb += [read.addr.eq(address), write.addr.eq(address)]
        m.d.comb += [write.data.eq(self.credits), write.en.eq(self.count)]
        m.d.sync += self.consumed.eq(read.data)
        self._show(m)
        return m

    def _memory(self, shape: data.StructLayout | int, rows: int) -> Memory:
        return Memory(shape=shape, depth=rows << self.bits, init=[], attrs=NO_COLLISION)

    def _show(self, m: Module) -> None:
        """A copy of what others may look at in any clock, also in that in which it is written: they get the old one."""
        m.submodules.shown = memory = Memory(shape=self.shown, depth=1 << self.bits, init=[])
        write, expected, delivered = memory.write_port(), memory.read_port(), memory.read_port()
        m.d.comb += [
            write.addr.eq(self.event.qp),
            write.data.expected.eq(self.state.expected),
            write.data.delivered.eq(self.state.delivered),
            write.en.eq(self.store),
            expected.addr.eq(self.shown_qp),
            delivered.addr.eq(self.drained_qp),
        ]
        m.d.sync += [self.expected.eq(expected.data.expected), self.delivered.eq(delivered.data.delivered)]
