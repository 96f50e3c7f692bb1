"""Keeps a connection from having more atomics without an answer than the other end has slots for."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from xoe.config import SLOTS_MAX
from xoe.cyclic import EPOCH_BITS

from ..transport.layouts import qp_bits

COUNT_BITS = SLOTS_MAX.bit_length()
SETTLED = 3  # clocks until both counts of a connection are there

_COUNT_BITS = COUNT_BITS + 1  # so that more answers than there were atomics are known from many in flight
_COUNT = data.StructLayout({"epoch": EPOCH_BITS, "count": _COUNT_BITS})


def owner(queue_pairs: int) -> data.StructLayout:
    """The incarnation of a connection that a request belongs to, by its queue pair and epoch here."""
    return data.StructLayout({"qp": qp_bits(queue_pairs), "epoch": EPOCH_BITS})


class AtomicsLimit(wiring.Component):
    """Counts, for each connection, atomics that were sent and atomics that were answered; both count round.

    ``head`` is the atomic that would be sent next, ``slots`` what the other end grants (1..255); ``is_over``, up to
    three clocks later: its incarnation is over, and nothing limits it. ``permit`` says that it may: five clocks after
    ``head`` came to another connection or incarnation, else in the clock after the one before it was ``issued``.
    ``answered``, in any clock: an answer to an atomic has come. Counts of an incarnation that is over are forgotten
    when the next has its first.

    Raises:
        ConfigError: ``queue_pairs`` is no power of two from 1 to 256.
    """

    def __init__(self, queue_pairs: int) -> None:
        self.queue_pairs = queue_pairs
        shape = owner(queue_pairs)
        super().__init__(
            {
                "head": In(data.StructLayout({"valid": 1, "owner": shape})),
                "slots": In(COUNT_BITS),
                "is_over": In(1),
                "issued": In(1),
                "permit": Out(1),
                "answered": In(data.StructLayout({"valid": 1, "owner": shape})),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """What was sent is counted in a register while the connection is the same; a memory has it for later."""
        m = Module()
        m.submodules.sent = sent = Memory(shape=_COUNT, depth=self.queue_pairs, init=[])
        read, write = sent.read_port(), sent.write_port()
        answered = self._count_answers(m)
        current, age = Signal(owner(self.queue_pairs)), Signal(range(SETTLED + 1))
        loaded, found = Signal(_COUNT), Signal(_COUNT_BITS)
        count, in_flight, is_same, may = Signal(_COUNT_BITS), Signal(_COUNT_BITS), Signal(), Signal()
        head = self.head.owner
        m.d.comb += [
            is_same.eq(self.head.valid & (head == current)),
            read.addr.eq(head.qp),
            write.addr.eq(current.qp),
            write.data.epoch.eq(current.epoch),
            write.data.count.eq(count + 1),
            write.en.eq(self.issued),
            in_flight.eq(count + self.issued - answered),
            self.permit.eq(may & is_same),  # it is a clock old, and the head may be another one
        ]
        m.d.sync += [
            current.eq(head),
            loaded.eq(read.data),
            found.eq(Mux(loaded.epoch == current.epoch, loaded.count, 0)),
            may.eq((age == SETTLED) & is_same & (self.is_over | in_flight[-1] | (in_flight[:-1] < self.slots))),
        ]
        with m.If(~self.head.valid):
            m.d.sync += current.eq(current)
        with m.Elif(~is_same):
            m.d.sync += age.eq(0)
        with m.Elif(age != SETTLED):
            m.d.sync += [age.eq(age + 1), count.eq(found)]
        with m.If(self.issued):
            m.d.sync += count.eq(count + 1)
        return m

    def _count_answers(self, m: Module) -> Signal:
        """Answers that have come on the head's connection in its incarnation, as of some clocks ago."""
        m.submodules.answers = answers = Memory(shape=_COUNT, depth=self.queue_pairs, init=[])
        write = answers.write_port()
        read, shown = answers.read_port(transparent_for=(write,)), answers.read_port(transparent_for=(write,))
        given, before, is_again = Signal(self.answered.shape()), Signal(_COUNT), Signal()
        last, is_written, count = Signal(_COUNT), Signal(), Signal(_COUNT_BITS)
        m.d.comb += [
            read.addr.eq(self.answered.owner.qp),
            before.eq(Mux(is_again, last, read.data)),
            count.eq(Mux(before.epoch == given.owner.epoch, before.count, 0) + 1),
            write.data.eq(last),
            write.en.eq(is_written),
            shown.addr.eq(self.head.owner.qp),
        ]
        m.d.sync += [
            given.eq(self.answered),
            is_again.eq(given.valid & (given.owner.qp == self.answered.owner.qp)),
            is_written.eq(given.valid),
            write.addr.eq(given.owner.qp),
            last.epoch.eq(given.owner.epoch),
            last.count.eq(count),
        ]
        kept, result = Signal(_COUNT), Signal(_COUNT_BITS)
        m.d.sync += [kept.eq(shown.data), result.eq(Mux(kept.epoch == self.head.owner.epoch, kept.count, 0))]
        return result
