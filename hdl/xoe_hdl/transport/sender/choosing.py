"""Chooses the event to be worked on next, and fetches its connection's state, while another is under way."""

from __future__ import annotations

from amaranth.hdl import Mux, Signal
from amaranth.lib import data, enum, stream

from .context import Context

TICK_PERIOD = 32  # clocks: a timer is looked at so often, however much there is to do


class Event(enum.Enum, shape=3):
    """What there is to do; its first step has the same name."""

    END = 0
    JUDGE = 1
    OPEN = 2
    RESUME = 3
    COMMIT = 4
    TICK = 5


class Chooser:
    """Steps NEXT and SETTLE, and what chooses, beside all steps.

    An event is chosen as soon as the one before has begun. Its connection's state is there two clocks later, at the
    output of a memory, and if it is the same connection, then in ``s`` all the time.
    """

    def __init__(
        self,
        c: Context,
        shuts: stream.Interface,
        acks: stream.Interface,
        opens: stream.Interface,
        commits: stream.Interface,
    ) -> None:
        self.c, self.shuts, self.acks, self.opens, self.commits = c, shuts, acks, opens, commits
        self.scan = Signal.like(c.qp)  # the connection whose timer is looked at next
        self.is_due = Signal()  # and that has priority
        self.chosen = Signal(data.StructLayout({"valid": 1, "event": Event, "qp": c.qp.shape()}))
        self.event = Signal(Event)  # that is under way
        self.is_idle = Signal()  # nothing is under way

        self._pace()
        self._choose()

    def add(self) -> None:
        """Add the steps."""
        self._add_next()
        self._add_settle()

    def _pace(self) -> None:
        m, turn = self.c.m, Signal(range(TICK_PERIOD))
        m.d.sync += turn.eq(turn + 1)
        with m.If(turn == 0):
            m.d.sync += self.is_due.eq(1)

    def _choose(self) -> None:
        """The most important one; timers that are not due only while nothing else is to be done."""
        c, m, chosen = self.c, self.c.m, self.chosen
        resends = c.resends.o
        can_send, may_hear = Signal(), Signal()
        sends = (self.event == Event.RESUME) | (self.event == Event.COMMIT)
        wants = resends.valid | self.commits.valid
        m.d.comb += [
            can_send.eq(~c.job.valid & (self.is_idle | ~sends)),  # one under way may fill ``job``
            # After an acknowledgement comes a frame that waits to be sent, so that these are not kept waiting by those.
            may_hear.eq((self.event != Event.JUDGE) | ~wants | (self.is_idle & ~can_send)),
        ]
        # Endings, openings and frames to be sent again stay at their ports while they are worked on.
        offers = [
            (self.shuts.valid & (self.is_idle | (self.event != Event.END)), self.shuts.payload, Event.END),
            (self.acks.valid & may_hear, self.acks.payload.qp, Event.JUDGE),
            (self.opens.valid & (self.is_idle | (self.event != Event.OPEN)), self.opens.payload.qp, Event.OPEN),
            (resends.valid & can_send, resends.payload.qp, Event.RESUME),
            (self.commits.valid & can_send, self.commits.payload.qp, Event.COMMIT),
        ]
        with m.If(~chosen.valid):
            m.d.sync += [chosen.valid.eq(self.is_idle), chosen.qp.eq(self.scan), chosen.event.eq(Event.TICK)]
            for is_there, qp, event in reversed(offers):
                with m.If(is_there):
                    m.d.sync += [chosen.valid.eq(1), chosen.qp.eq(qp), chosen.event.eq(event)]
            with m.If(self.is_due):
                m.d.sync += [chosen.valid.eq(1), chosen.qp.eq(self.scan), chosen.event.eq(Event.TICK)]

    def _add_next(self) -> None:
        """NEXT: store the state, and begin what was chosen."""
        c, m, chosen, scan = self.c, self.c.m, self.chosen, self.scan
        is_fetched, is_same = Signal(), Signal()
        m.d.comb += c.state_read.addr.eq(chosen.qp)
        m.d.sync += [is_fetched.eq(chosen.valid), is_same.eq(chosen.qp == c.qp)]
        with m.State("NEXT"):
            m.d.comb += [self.is_idle.eq(1), c.state_write.en.eq(1)]
            with m.If(is_fetched):
                m.d.sync += [
                    c.qp.eq(chosen.qp),
                    self.event.eq(chosen.event),
                    c.time.eq(c.now),
                    c.ack.eq(self.acks.payload),
                    c.commit.eq(self.commits.payload),
                    chosen.valid.eq(0),
                    is_fetched.eq(0),
                ]
                with m.If(~is_same):
                    m.d.sync += c.s.eq(c.state_read.data)
                m.d.comb += self.acks.ready.eq(chosen.event == Event.JUDGE)
                m.d.comb += self.commits.ready.eq(chosen.event == Event.COMMIT)
                with m.If(chosen.event == Event.TICK):
                    m.d.sync += [scan.eq(Mux(scan == c.queue_pairs - 1, 0, scan + 1)), self.is_due.eq(0)]
                m.next = "SETTLE"

    def _add_settle(self) -> None:
        """SETTLE: what is known of the event and its connection is gathered, whatever the event is."""
        c, m, s = self.c, self.c.m, self.c.s
        usable = s.alive & ~s.failed
        m.d.sync += [
            c.is_usable.eq(usable),
            c.has_sack.eq(c.ack.sack.any()),
            c.takes_ack.eq(usable & (s.epoch == c.ack.epoch)),
            c.takes_commit.eq(usable & (s.epoch == c.commit.epoch)),
        ]
        with m.State("SETTLE"):
            next_seq = s.first + s.count  # that of a frame which is committed
            m.d.sync += [c.seq.eq(next_seq), c.index.eq(next_seq)]
            with m.Switch(self.event):
                for event in Event:
                    with m.Case(event):
                        m.next = event.name
