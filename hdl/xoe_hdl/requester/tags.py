"""The table of tags: which are free, and what is known of the requests that have the others."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory, WritePort
from amaranth.lib.wiring import In, Out, connect, flipped

from ..delay import delayed
from ..queues import FallThroughQueue, Queue
from .command_check import RECORD
from .timeouts import EXPIRED, TAG, TAG_BITS, TIMEOUT_BITS, Timeouts

ANSWERED = data.StructLayout({"is_good": 1, "record": RECORD})
"""``is_good``: the tag's request was waiting, and is now retired; ``record`` is what was kept of it."""


class Tags(wiring.Component):
    """Gives each request a tag, keeps what is needed to complete it, and takes the tag back, once.

    A tag is an index, in the low bits, and above it a generation, which grows by one each time the index is given. So
    an answer that comes late, or again, is known from one that is waited for, until the generations are through
    (``2 ** 16 / tags`` requests of one index). They go on over a reset: what was asked before it is not waited for.

    The indices are given in order first, then in the order in which they came back.

    Ports:

    * ``free``: the next tag; taking it issues it, with ``record`` and ``owner``. One a clock while there are tags; an
      index can be given again seven clocks after it was answered.
    * ``answer``: retire the tag; ``answered``, two clocks later, says whether it was in flight. One a clock.
    * ``expired``: tags in flight for ``timeout`` clocks (0: for ever), or of connections that are lost, to be answered
      with; ``scan_qp``, ``scan``: the table of these; see ``Timeouts``.
    * ``in_flight``: how many are, two clocks late.
    """

    def __init__(self, tags: int, queue_pairs: int) -> None:
        self.tags = tags
        self.timeouts = Timeouts(tags, queue_pairs)
        self.index_bits = (tags - 1).bit_length()
        super().__init__(
            {
                "free": Out(stream.Signature(TAG_BITS)),
                "record": In(RECORD),
                **{name: self.timeouts.signature.members[name] for name in ("owner", "scan_qp", "scan")},
                "answer": In(TAG),
                "answered": Out(ANSWERED),
                "expired": Out(stream.Signature(EXPIRED)),
                "timeout": In(TIMEOUT_BITS),
                "in_flight": Out(range(tags + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """An index is in flight if the generations last issued and last retired differ."""
        m = Module()
        issued, retired, used = Signal(TAG), Signal(TAG), Signal(range(self.tags + 1))
        m.d.comb += [issued.valid.eq(self.free.valid & self.free.ready), issued.tag.eq(self.free.payload)]
        with m.If(issued.valid & ~used[self.index_bits]):
            m.d.sync += used.eq(used + 1)
        gives, takes = delayed(m, "gives", issued.valid, 1), delayed(m, "takes", retired.valid, 1)
        m.d.sync += self.in_flight.eq(self.in_flight + gives - takes)
        self._give(m, issued, retired)
        self._answer(m, issued, retired, used)

        m.submodules.timeouts = timeouts = self.timeouts
        m.d.comb += [
            timeouts.issued.eq(issued),
            timeouts.retired.eq(retired),
            timeouts.used.eq(used),
            timeouts.timeout.eq(self.timeout),
            timeouts.owner.eq(self.owner),
            timeouts.scan.eq(self.scan),
            self.scan_qp.eq(timeouts.scan_qp),
            self.expired.payload.eq(timeouts.expired.payload),
            self.expired.valid.eq(timeouts.expired.valid),
            timeouts.expired.ready.eq(self.expired.ready),
        ]
        return m

    def _index(self, tag: Value) -> Value:
        return tag[: self.index_bits]

    def _generation(self, tag: Value) -> Value:
        return tag[self.index_bits :]

    def _write(self, m: Module, port: WritePort, tag: data.View) -> None:
        m.d.comb += [port.addr.eq(self._index(tag.tag)), port.en.eq(tag.valid)]

    def _give(self, m: Module, issued: data.View, retired: data.View) -> None:
        """Fetch the next indices' generations, so that tags wait to be taken."""
        generation_bits = TAG_BITS - self.index_bits
        m.submodules.returned = returned = Queue(self.index_bits, self.tags)
        m.submodules.ready = ready = FallThroughQueue(TAG_BITS, 2)
        m.submodules.generations = generations = Memory(shape=generation_bits, depth=self.tags, init=[])
        last, write = generations.read_port(), generations.write_port()
        self._write(m, write, issued)
        connect(m, ready.o, flipped(self.free))
        fresh, index, wanted = Signal(range(self.tags + 1)), Signal(self.index_bits), Signal()
        are_used_up = fresh[self.index_bits]
        m.d.comb += [
            write.data.eq(self._generation(issued.tag)),
            returned.i.payload.eq(self._index(retired.tag)),
            returned.i.valid.eq(retired.valid),
            wanted.eq(~ready.i.valid | ready.i.ready),
            returned.o.ready.eq(wanted & are_used_up),
            last.addr.eq(Mux(are_used_up, returned.o.payload, fresh)),
            last.en.eq(wanted),
            ready.i.payload.eq(Cat(index, (last.data + 1)[:generation_bits])),
        ]
        with m.If(wanted):
            m.d.sync += [ready.i.valid.eq(~are_used_up | returned.o.valid), index.eq(last.addr)]
            with m.If(~are_used_up):
                m.d.sync += fresh.eq(fresh + 1)

    def _answer(self, m: Module, issued: data.View, retired: data.View, used: Value) -> None:
        """Compare the answer's generation with the last issued and the last retired of its index."""
        generation_bits = TAG_BITS - self.index_bits
        m.submodules.issues = issues = Memory(shape=generation_bits, depth=self.tags, init=[])
        m.submodules.retirements = retirements = Memory(shape=generation_bits, depth=self.tags, init=[])
        m.submodules.records = records = Memory(shape=RECORD, depth=self.tags, init=[])
        issue, retirement, keep = issues.write_port(), retirements.write_port(), records.write_port()
        self._write(m, issue, issued)
        self._write(m, keep, issued)
        self._write(m, retirement, retired)
        last_issue, last_retirement, record = (memory.read_port() for memory in (issues, retirements, records))
        answer = delayed(m, "answer", self.answer, 1)
        # As it was when the memories were read: they still hold what was issued before a reset.
        is_used = delayed(m, "is_used", self._index(self.answer.tag) < used, 1)
        # The same answer twice in a row: the memory was read before it was written.
        is_again = delayed(m, "is_again", self.answer.tag == answer.tag, 1) & self.answered.is_good
        generation = self._generation(answer.tag)
        m.d.comb += [
            issue.data.eq(self._generation(issued.tag)),
            keep.data.eq(self.record),
            retirement.data.eq(generation),
            retired.tag.eq(answer.tag),
            retired.valid.eq(
                answer.valid
                & is_used
                & ~is_again
                & (generation == last_issue.data)
                & (generation != last_retirement.data)
            ),
        ]
        m.d.comb += [port.addr.eq(self._index(self.answer.tag)) for port in (last_issue, last_retirement, record)]
        # A block RAM is too slow for any logic behind it in the same clock.
        m.d.sync += [self.answered.is_good.eq(retired.valid), self.answered.record.eq(record.data)]
