"""Steps that an acknowledgement takes: credits, what arrived, what that says of others."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data

from xoe.cyclic import CREDIT_BITS, SEQ_BITS

from ..layouts import CLASSES, WINDOW_BITS
from .context import Context, Flow
from .layouts import LIMIT_BITS, STAMP_BITS
from .masks import ArrivalMask, Places, shifted_down

FETCHING = 3  # clocks from the place of a frame to what is known of it


class Acknowledging:
    """The steps from JUDGE on; ends in NEXT.

    From MOVE on two things are under way at once: the connection moves on, and frames are learnt of, one after the
    other, by a pipeline that has no states. LEARN waits for it.
    """

    def __init__(self, c: Context) -> None:
        self.c = c
        m: Module = c.m
        m.submodules.arrivals = self.arrivals = ArrivalMask(c.window)
        m.submodules.places = self.places = Places(c.window)
        self.ahead = Signal(SEQ_BITS)
        self.advance = self.ahead[:WINDOW_BITS]
        self.steps = Signal(_counts())
        self.in_use = Signal(_counts())
        self.richer = Signal(CLASSES)  # classes of which credits were freed
        self.gained = Signal(data.ArrayLayout(LIMIT_BITS, CLASSES))  # these credits
        self.is_progress = Signal()
        self.is_refused = Signal()
        self.is_known = Signal()  # it says nothing of frames that the last one did not
        self.is_learnt = Signal()
        self.passed = Signal(c.order_bits)  # transmissions from ``tail`` on that are void now
        self.shifted = shifted_down(m, c.s.acked, self.advance, c.window)
        m.d.comb += [
            self.arrivals.advance.eq(self.advance),
            self.arrivals.count.eq(c.s.count),
            self.arrivals.sack.eq(c.ack.sack),
            self.places.bits.eq(self.arrivals.mask & ~c.s.acked),
        ]
        m.d.sync += self.ahead.eq(c.ack.ack - c.s.first)  # all the time; what it says after MOVE doesn't matter
        for at, credit in enumerate(c.s.credits):
            m.d.sync += self.steps[at].eq(c.ack.freed[at] - credit.freed)
            m.d.sync += self.in_use[at].eq(credit.consumed - credit.freed)
        self._learn()

    def add(self) -> None:
        """Add the states."""
        self._add_credits()
        self._add_arrivals()
        self._add_move()
        self._add_losses()

    def _add_credits(self) -> None:
        """JUDGE, TAKE: the counts of freed credits. One that is older than the last says nothing."""
        c, m, s, ack, steps, in_use = self.c, self.c.m, self.c.s, self.c.ack, self.steps, self.in_use
        with m.State("JUDGE"):
            for at in range(CLASSES):
                m.d.sync += self.richer[at].eq(ack.tells[at] & (steps[at] != 0) & (steps[at] <= in_use[at]))
            m.d.sync += [
                self.is_refused.eq(self.ahead > s.count),
                self.is_known.eq((self.ahead == 0) & ~c.has_sack & ~ack.nack),
            ]
            m.next = "TAKE"
            with m.If(~c.takes_ack):
                m.d.comb += c.events["acks_stale"].eq(1)
                m.next = "NEXT"
        with m.State("TAKE"):
            for at, credit in enumerate(s.credits):
                m.d.sync += self.gained[at].eq(Mux(self.richer[at], steps[at], 0))
                with m.If(self.richer[at]):
                    m.d.sync += credit.freed.eq(ack.freed[at])
            m.next = "FRESH"
            with m.If(self.is_refused):
                m.d.comb += c.events["acks_refused"].eq(1)
            with m.If(self.is_refused | self.is_known):
                m.next = "NEXT"
                with m.If(self.richer.any()):  # its credits count in any case
                    m.next = "TELL"
        with m.State("TELL"):
            m.d.comb += [c.changes.valid.eq(1), c.changes.payload.credits.eq(self.gained)]
            with m.If(c.changes.ready):
                m.next = "NEXT"

    def _add_arrivals(self) -> None:
        """FRESH: which frames are acknowledged that were not."""
        m, s = self.c.m, self.c.s
        with m.State("FRESH"):
            m.d.comb += self.places.load.eq(1)
            m.d.sync += [s.acked.eq(s.acked | self.arrivals.mask), self.passed.eq(0)]
            m.next = "MOVE"

    def _learn(self) -> None:
        """For each of them, a clock after the other: free it, and see what its arrival says."""
        c, m, s, places = self.c, self.c.m, self.c.s, self.places
        old_first = Signal(c.index_bits)
        steps = Signal(FETCHING + 1)
        elapsed, offset = Signal(STAMP_BITS), Signal(c.order_bits)
        is_single, is_on_wire = Signal(), Signal()
        is_there, is_judged = steps[FETCHING - 1], steps[FETCHING]
        m.d.sync += [
            steps.eq(Cat(places.valid, steps)),
            self.is_learnt.eq(~(places.is_busy | steps[:FETCHING].any())),
        ]
        with m.If(places.load):
            m.d.sync += old_first.eq(s.first)
        with m.If(places.valid):
            m.d.sync += c.index.eq(old_first + places.place)
        m.d.sync += [
            elapsed.eq(c.time[:STAMP_BITS] - c.track.sent_at),
            offset.eq(c.track.order - s.tail),
            is_single.eq(c.track.tries == 0),
            is_on_wire.eq(~c.track.waits),
        ]
        with m.If(is_there):
            m.d.comb += [c.free.valid.eq(1), c.is_confirmed.eq(1)]
            m.d.sync += s.pages.eq(s.pages - c.frame.segment.pages)
        is_quickest = elapsed < s.rtt_min
        is_evidence = is_single | is_on_wire & ~is_quickest
        with m.If(is_judged & is_single & is_quickest):
            m.d.sync += s.rtt_min.eq(elapsed)
        with m.If(is_judged & ~c.cfg.go_back_n):  # where loss is found by order
            with m.If(is_evidence & (offset >= s.reach)):
                m.d.sync += s.reach.eq(offset + 1)
            with m.If(is_on_wire & (offset == self.passed)):
                m.d.sync += self.passed.eq(self.passed + 1)

    def _add_move(self) -> None:
        """MOVE to RESTART: move on to the first frame that is not acknowledged, and start the timer anew."""
        c, m, s = self.c, self.c.m, self.c.s
        with m.State("MOVE"):  # ``shifted`` is right in the next clock
            m.d.sync += [s.first.eq(c.ack.ack), s.count.eq(s.count - self.advance)]
            m.d.sync += self.is_progress.eq(self.places.any)
            with m.If(s.again > self.advance):
                m.d.sync += s.again.eq(s.again - self.advance)
            with m.Else():
                m.d.sync += s.again.eq(0)
            with m.If(self.places.any):
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
            m.next = "LEARN"
        with m.State("LEARN"), m.If(self.is_learnt):
            m.d.comb += [c.changes.valid.eq(1), c.changes.payload.credits.eq(self.gained)]
            with m.If(c.changes.ready):
                m.d.sync += s.tail.eq(s.tail + self.passed)
                m.d.sync += s.reach.eq(Mux(s.reach > self.passed, s.reach - self.passed, 0))
                m.next = "LOSSES"
                with m.If(c.cfg.go_back_n):
                    m.next = "NEXT"
                    with m.If(c.ack.nack & (s.count != 0)):
                        m.next = "GO_BACK"

    def _add_losses(self) -> None:
        """LOSSES: what was sent more than ``reorder`` frames before something that has arrived.

        ENTRY to PLACE, and LOSS, for each transmission from ``tail`` on: pass over it if it is void, or let its frame
        wait to be sent again. In order nothing is left to be looked at, as learning has passed over all that arrived.
        """
        c, m, s = self.c, self.c.m, self.c.s
        index = Signal(c.index_bits)
        is_latest, is_late = Signal(), Signal()
        m.d.sync += [
            index.eq(c.ring_read.data),  # all the time, as a block RAM is too slow for any logic in the same clock
            is_latest.eq(c.track.order == s.tail),
            is_late.eq(s.reach > c.cfg.reorder + 1),
        ]
        with m.State("LOSSES"):
            m.next = "NEXT"
            with m.If(s.reach != 0):
                m.next = "ENTRY"
        with m.State("ENTRY"):  # what the ring has at ``tail`` comes
            m.next = "PLACE"
        with m.State("PLACE"):
            c.look_at((index - s.first)[: c.index_bits], Flow.LOSS)
        with m.State("LOSS"):
            is_void = ~(c.is_on_wire & is_latest)
            m.next = "NEXT"
            with m.If(is_void | is_late):
                m.d.sync += [s.tail.eq(s.tail + 1), s.reach.eq(s.reach - 1)]
                m.next = "LOSSES"
            with m.If(~is_void & is_late):
                c.lose(c.is_worn)
                with m.If(c.is_worn):
                    m.next = "NEXT"


def _counts() -> data.ArrayLayout:
    """A count of credits of each class."""
    return data.ArrayLayout(CREDIT_BITS, CLASSES)
