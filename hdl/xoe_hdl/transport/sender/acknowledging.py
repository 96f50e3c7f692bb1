"""Steps that an acknowledgement takes: credits, what arrived, what that says of others."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal

from xoe.cyclic import CREDIT_BITS, SEQ_BITS

from ..layouts import CLASSES, WINDOW_BITS
from .context import Context, Flow
from .layouts import CLASS_BITS, STAMP_BITS
from .masks import ArrivalMask, FirstBit, shifted_down


def add_credit(c: Context) -> None:
    """CREDIT: take the counts of freed credits, a class in three clocks, or in one if it is not told of.

    One that is older than the last says nothing.
    """
    m, s, ack = c.m, c.s, c.ack
    number = Signal(CLASS_BITS)
    step = Signal(CREDIT_BITS)
    in_use = Signal(CREDIT_BITS)
    is_ahead = Signal(CLASSES)  # a bit for the class at hand, if it is
    with m.State("CREDIT"):
        m.next = "JUDGE_CREDIT"
        with m.Switch(number):
            for at, credit in enumerate(s.credits):
                with m.Case(at):
                    m.d.sync += [step.eq(ack.freed[at] - credit.freed), in_use.eq(credit.consumed - credit.freed)]
        with m.If(~c.takes_ack):
            m.d.comb += c.events["acks_stale"].eq(1)
            m.next = "IDLE"
        with m.Elif(~ack.tells.bit_select(number, 1)):
            _next_class(m, number)
    with m.State("JUDGE_CREDIT"):
        is_new = (step - 1)[:CREDIT_BITS] < in_use
        m.d.sync += is_ahead.eq(Cat((number == at) & ack.tells[at] & is_new for at in range(CLASSES)))
        m.next = "TAKE_CREDIT"
    with m.State("TAKE_CREDIT"):
        for at, credit in enumerate(s.credits):
            with m.If(is_ahead[at]):
                m.d.sync += [credit.freed.eq(ack.freed[at]), c.is_richer.eq(1)]
        _next_class(m, number)


def _next_class(m: Module, number: Signal) -> None:
    m.next = "CREDIT"
    m.d.sync += number.eq(number + 1)
    with m.If(number == CLASSES - 1):
        m.d.sync += number.eq(0)
        m.next = "ADVANCE"


class Acknowledging:
    """The steps from ADVANCE on; ends in GRANT."""

    def __init__(self, c: Context) -> None:
        self.c = c
        m: Module = c.m
        m.submodules.arrivals = self.arrivals = ArrivalMask(c.window)
        m.submodules.first_bit = self.first_bit = FirstBit(c.window)
        self.ahead = Signal(SEQ_BITS)
        self.advance = Signal(WINDOW_BITS)
        self.fresh = Signal(c.window)
        self.is_progress = Signal()
        self.is_refused = Signal()
        self.is_known = Signal()  # it says nothing of frames that the last one did not
        self.wait = Signal(range(4))
        self.shifted = shifted_down(m, c.s.acked, self.advance, c.window)
        m.d.comb += [
            self.advance.eq(self.ahead[:WINDOW_BITS]),
            self.arrivals.advance.eq(self.advance),
            self.arrivals.count.eq(c.s.count),
            self.arrivals.sack.eq(c.ack.sack),
            self.first_bit.bits.eq(self.fresh),
        ]

    def add(self) -> None:
        """Add all states."""
        self._add_arrivals()
        self._add_learn()
        self._add_move()
        self._add_losses()

    def _add_arrivals(self) -> None:
        """ADVANCE to FRESH: which frames are acknowledged that were not."""
        c, m, s = self.c, self.c.m, self.c.s
        with m.State("ADVANCE"):
            m.d.sync += [self.ahead.eq(c.ack.ack - s.first), self.wait.eq(0), self.is_progress.eq(0)]
            m.next = "CHECK"
        with m.State("CHECK"):
            m.d.sync += [self.wait.eq(self.wait + 1), self.is_refused.eq(self.ahead > s.count)]
            m.d.sync += self.is_known.eq((self.ahead == 0) & ~c.has_sack & ~c.ack.nack)
            # Its credits count in any case.
            with m.If((self.wait == 1) & self.is_known):
                self._end()
            with m.Elif(self.wait == ArrivalMask.latency):
                m.next = "FRESH"
                with m.If(self.is_refused):
                    m.d.comb += c.events["acks_refused"].eq(1)
                    self._end()
        with m.State("FRESH"):
            m.d.sync += [
                self.fresh.eq(self.arrivals.mask & ~s.acked),
                s.acked.eq(s.acked | self.arrivals.mask),
                self.wait.eq(0),
            ]
            m.next = "PICK"

    def _end(self) -> None:
        """An acknowledgement that says nothing new of frames: permits depend on whether it did of credits."""
        self.c.m.next = "IDLE"
        with self.c.m.If(self.c.is_richer):
            self.c.m.next = "GRANT"

    def _add_learn(self) -> None:
        """PICK and LEARN, for each of them: free it, and see what its arrival says."""
        c, m, s = self.c, self.c.m, self.c.s
        elapsed = Signal(STAMP_BITS)
        reach = Signal(c.order_bits)
        with m.State("PICK"):
            m.d.sync += self.wait.eq(self.wait + 1)
            with m.If(self.wait == FirstBit.latency):
                m.d.sync += self.wait.eq(0)
                m.next = "MOVE"
                with m.If(self.first_bit.any):
                    c.look_at(self.first_bit.place, Flow.LEARN)
        with m.State("LEARN"):
            m.d.comb += [c.free.valid.eq(1), c.is_confirmed.eq(1)]
            m.d.sync += [
                s.pages.eq(s.pages - c.frame.segment.pages),
                self.fresh.bit_select(c.place[: c.index_bits], 1).eq(0),
                self.is_progress.eq(1),
                elapsed.eq(c.time[:STAMP_BITS] - c.track.sent_at),
                reach.eq(c.track.order - s.tail + 1),
            ]
            m.next = "LEARNT"
        with m.State("LEARNT"):
            is_single = c.track.tries == 0
            with m.If(is_single & (elapsed < s.rtt_min)):
                m.d.sync += s.rtt_min.eq(elapsed)
            is_evidence = is_single | ~c.track.waits & (elapsed >= s.rtt_min)
            with m.If(is_evidence & (reach > s.reach) & ~c.cfg.go_back_n):
                m.d.sync += s.reach.eq(reach)
            m.next = "PICK"

    def _add_move(self) -> None:
        """MOVE to RESTART: move on to the first frame that is not acknowledged, and start the timer anew."""
        c, m, s = self.c, self.c.m, self.c.s
        with m.State("MOVE"):  # ``shifted`` is right in the next clock
            m.d.sync += [s.first.eq(c.ack.ack), s.count.eq(s.count - self.advance)]
            with m.If(s.again > self.advance):
                m.d.sync += s.again.eq(s.again - self.advance)
            with m.Else():
                m.d.sync += s.again.eq(0)
            with m.If(self.is_progress):
                m.d.sync += [s.backoff.eq(0), s.probed.eq(0), s.attempts.eq(0)]
            m.next = "MOVED"
        with m.State("MOVED"):
            m.d.sync += s.acked.eq(self.shifted)
            m.next = "RESTART"
        with m.State("RESTART"):
            with m.If(s.count == 0):
                m.d.sync += s.runs.eq(0)
            with m.Elif(self.is_progress):
                c.start_timer()
            m.next = "LOSSES"
            with m.If(c.cfg.go_back_n):
                m.next = "GRANT"
                with m.If(c.ack.nack & (s.count != 0)):
                    m.next = "GO_BACK"

    def _add_losses(self) -> None:
        """LOSSES: what was sent more than ``reorder`` frames before something that has arrived."""
        c, m, s = self.c, self.c.m, self.c.s
        index = Signal(c.index_bits)
        m.d.sync += index.eq(c.ring_read.data)  # all the time, so that no logic is in the way
        with m.State("LOSSES"):
            m.next = "GRANT"
            with m.If(s.reach > c.cfg.reorder + 1):
                m.next = "ENTRY"
        with m.State("ENTRY"):  # the ring is being read at ``tail``
            m.d.sync += [c.entry.eq(s.tail), s.tail.eq(s.tail + 1), s.reach.eq(s.reach - 1)]
            m.next = "ENTERED"
        with m.State("ENTERED"):  # a block RAM is too slow for any logic behind it in the same clock
            m.next = "PLACE"
        with m.State("PLACE"):
            c.look_at((index - s.first)[: c.index_bits], Flow.LOSS)
