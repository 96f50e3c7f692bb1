"""Keeps a connection from having more atomics without an answer than the other end has slots for."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from xoe.config import SLOTS_MAX
from xoe.cyclic import EPOCH_BITS

from ..transport.layouts import qp_bits

COUNT_BITS = SLOTS_MAX.bit_length()
SETTLED = 3  # clocks until both counts of a connection are there

_COUNT = data.StructLayout({"epoch": EPOCH_BITS, "count": COUNT_BITS})


def owner(queue_pairs: int) -> data.StructLayout:
    """The incarnation of a connection that a request belongs to, by its queue pair and epoch here."""
    return data.StructLayout({"qp": qp_bits(queue_pairs), "epoch": EPOCH_BITS})


class AtomicsLimit(wiring.Component):
    """Counts, for each connection, atomics that were sent and atomics that were answered; both count round.

    ``head`` is the atomic that would be sent next, ``slots`` what the other end grants (1..255); ``is_over``, up to
    three clocks later: its incarnation is over, and nothing limits it. ``permit`` says that it may: five clocks after
    ``head.owner`` came to another connection or incarnation, valid or not, else in the clock after the one before it
    was ``issued``.
    ``answered``, in any clock: an answer to an atomic has come. One that nobody waits for is not counted, nor is one of
    another incarnation than that of the last atomic.

    Counts of an incarnation that is over are forgotten when another has its first atomic. ``begins``, in any clock: one
    begins, and has none yet; it tells apart incarnations of the same epoch, which comes again after 256 of them. It has
    to come eight clocks before the first atomic is at ``head``.

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
                "begins": In(data.StructLayout({"valid": 1, "qp": qp_bits(queue_pairs)})),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """What was sent is counted in a register while the connection is the same; a memory has it for later.

        The first atomic of an incarnation counts on from the answers, so that these need not be cleared.
        """
        m = Module()
        m.submodules.sent = sent = Memory(shape=_COUNT, depth=self.queue_pairs, init=[])
        read, write = sent.read_port(), sent.write_port()
        has_sent = Signal(self.queue_pairs)  # each connection, since its incarnation began
        answered = self._count_answers(m, sent, has_sent)
        current, age = Signal(owner(self.queue_pairs)), Signal(range(SETTLED + 1))
        loaded, found, is_known = Signal(_COUNT), Signal(COUNT_BITS), Signal()
        count, in_flight = Signal(COUNT_BITS), Signal(COUNT_BITS)
        is_same, is_new, is_settled, may = Signal(), Signal(), Signal(), Signal()
        head = self.head.owner
        m.d.comb += [
            is_same.eq(head == current),
            is_new.eq(self.begins.valid & (self.begins.qp == current.qp)),
            is_settled.eq((age == SETTLED) & is_same & ~is_new),
            read.addr.eq(head.qp),
            write.addr.eq(current.qp),
            write.data.epoch.eq(current.epoch),
            write.data.count.eq(count + 1),
            write.en.eq(self.issued),
            in_flight.eq(count + self.issued - answered),
            self.permit.eq(may & is_same & self.head.valid),  # it is a clock old, and the head may be another one
        ]
        m.d.sync += [
            current.eq(head),
            loaded.eq(read.data),
            found.eq(loaded.count),
            is_known.eq((loaded.epoch == current.epoch) & has_sent.bit_select(current.qp, 1)),
            may.eq(is_settled & self.head.valid & (self.is_over | (in_flight < self.slots))),
        ]
        with m.If(~is_same):
            m.d.sync += age.eq(0)
        with m.Elif(age != SETTLED):
            m.d.sync += [age.eq(age + 1), count.eq(Mux(is_known, found, answered))]
        with m.If(self.issued):
            m.d.sync += [count.eq(count + 1), has_sent.bit_select(current.qp, 1).eq(1)]
        with m.If(self.begins.valid):
            m.d.sync += has_sent.bit_select(self.begins.qp, 1).eq(0)
        with m.If(is_new):
            m.d.sync += age.eq(0)
        return m

    def _count_answers(self, m: Module, sent: Memory, has_sent: Value) -> Signal:
        """Answers that have come on the head's connection in its incarnation, as of some clocks ago."""
        m.submodules.answers = answers = Memory(shape=_COUNT, depth=self.queue_pairs, init=[])
        write = answers.write_port()
        read, shown = answers.read_port(transparent_for=(write,)), answers.read_port(transparent_for=(write,))
        asked = sent.read_port()
        given, before, is_again, may_count = Signal(self.answered.shape()), Signal(_COUNT), Signal(), Signal()
        last, is_written, count, counts = Signal(_COUNT), Signal(), Signal(COUNT_BITS), Signal()
        m.d.comb += [
            read.addr.eq(self.answered.owner.qp),
            asked.addr.eq(self.answered.owner.qp),
            before.eq(Mux(is_again, last, read.data)),
            count.eq(Mux(before.epoch == given.owner.epoch, before.count, 0)),
            counts.eq(given.valid & may_count & (asked.data.epoch == given.owner.epoch) & (asked.data.count != count)),
            write.data.eq(last),
            write.en.eq(is_written),
            shown.addr.eq(self.head.owner.qp),
        ]
        m.d.sync += [
            given.eq(self.answered),
            may_count.eq(has_sent.bit_select(self.answered.owner.qp, 1)),
            is_again.eq(counts & (given.owner.qp == self.answered.owner.qp)),
            is_written.eq(counts),
            write.addr.eq(given.owner.qp),
            last.epoch.eq(given.owner.epoch),
            last.count.eq(count + 1),
        ]
        kept, result = Signal(_COUNT), Signal(COUNT_BITS)
        m.d.sync += [kept.eq(shown.data), result.eq(Mux(kept.epoch == self.head.owner.epoch, kept.count, 0))]
        return result
