"""The sender: numbers frames, keeps each until it is acknowledged, and says what is sent. Model: ``xoe.sender``."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import check_choice, check_range, credits_needed
from xoe.wire import CRC_SIZE, MTU_MAX, MTU_MIN, FrameHeader

from ...layouts import counters
from ..layouts import CLASSES, QUEUE_PAIRS, WINDOWS, qp_bits
from ..page_store import POWERS, segment
from .acknowledging import Acknowledging, add_credit
from .context import EVENTS, Context
from .layouts import (
    ATOMICS_BITS,
    CFG,
    PROGRESS,
    acknowledgement,
    commit,
    failure,
    grant_write,
    incident,
    job,
    opening,
)
from .opening import add_grant, add_open, add_shut
from .sending import add_commit, add_repeat, add_resend
from .timing import add_go_back, add_losing, add_tick

TICK_PERIOD = 32  # clocks: a timer is looked at so often, however much there is to do


class Sender(wiring.Component):
    """Takes one event after the other, of whatever connection, and works on it for some clocks.

    Ports, streams unless said otherwise:

    * ``commits``: data frames that were gathered, each by a permit, see ``grants``. They are numbered in this order.
    * ``acks``: what the frames that came say.
    * ``jobs``: frames to be sent now, first or again, in this order.
    * ``free``, valid for a clock: pages that are not needed any more, once all ``jobs`` so far are done.
    * ``confirmed``, valid for a clock: a frame with so many results of atomics is acknowledged.
    * ``opens``, ``shuts``: an incarnation begins or ends; taken when that is done. A connection is shut before it is
      opened again.
    * ``failures``: connections given up. They send nothing, and wait to be shut.
    * ``grants``, valid for a clock: how many frames a class of a connection may have begun.
    * ``shown_qp``, and three clocks later ``progress`` (no streams): how far a connection is.
    * ``incidents``, valid for a clock: what a connection's congestion control wants to know.
    * ``cfg``, ``counters``: see ``layouts.CFG`` and ``context.EVENTS``.

    After a reset it takes nothing for ``3 * queue_pairs`` clocks. Timers are looked at one after the other, one every
    32 clocks and whenever nothing else is to be done; one that is due waits for the event under way.

    Args:
        queue_pairs: connections, a power of two from 1 to 256.
        window: frames that may be outstanding on one, a power of two from 8 to 128.
        pages: of the retransmit buffer, a power of two from 4 to 4096.
        page_words: 8-byte words of a page, a power of two.
        mtu: of the largest frame, bytes.
        most_pages: that a connection may have outstanding; at least those of a largest frame for each class.
        counter_width: bits of each counter.

    Raises:
        ConfigError: one of them out of bounds.
    """

    def __init__(
        self,
        queue_pairs: int,
        window: int,
        pages: int,
        page_words: int,
        mtu: int,
        most_pages: int,
        counter_width: int = 32,
    ) -> None:
        check_choice("queue_pairs", queue_pairs, QUEUE_PAIRS)
        check_choice("window", window, WINDOWS)
        check_choice("pages", pages, POWERS)
        check_choice("page_words", page_words, tuple(1 << bits for bits in range(2, 9)))
        check_range("mtu", mtu, MTU_MIN, MTU_MAX)
        self.frame_pages = credits_needed(mtu - FrameHeader.SIZE - CRC_SIZE, 8 * page_words)
        check_range("most_pages", most_pages, CLASSES * self.frame_pages, pages)
        self.queue_pairs, self.window, self.pages, self.most_pages = queue_pairs, window, pages, most_pages
        confirmed = {"valid": 1, "qp": qp_bits(queue_pairs), "atomics": ATOMICS_BITS}
        super().__init__(
            {
                "commits": In(stream.Signature(commit(queue_pairs, pages))),
                "acks": In(stream.Signature(acknowledgement(queue_pairs, window))),
                "jobs": Out(stream.Signature(job(queue_pairs, pages))),
                "free": Out(data.StructLayout({"valid": 1, "payload": segment(pages)})),
                "confirmed": Out(data.StructLayout(confirmed)),
                "opens": In(stream.Signature(opening(queue_pairs))),
                "shuts": In(stream.Signature(qp_bits(queue_pairs))),
                "failures": Out(stream.Signature(failure(queue_pairs))),
                "grants": Out(grant_write(queue_pairs)),
                "shown_qp": In(qp_bits(queue_pairs)),
                "progress": Out(PROGRESS),
                "incidents": Out(incident(queue_pairs)),
                "cfg": In(CFG),
                "counters": Out(counters(*EVENTS, width=counter_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A machine of many small steps, so that each is short."""
        m = Module()
        c = Context(m, self.queue_pairs, self.window, self.pages)
        acknowledging = Acknowledging(c)
        kinds = {"is_probe": c.is_probing, "is_timeout": c.events["timeouts"], "is_failed": c.events["failed"]}
        m.d.comb += [c.cfg.eq(self.cfg), self.jobs.valid.eq(c.job.valid), self.jobs.payload.eq(c.job.payload)]
        m.d.comb += [c.shown_qp.eq(self.shown_qp), self.progress.eq(c.progress)]
        m.d.sync += [
            self.free.eq(c.free),
            self.grants.eq(c.grant),
            self.confirmed.valid.eq(c.is_confirmed),
            self.confirmed.qp.eq(c.qp),
            self.confirmed.atomics.eq(c.frame.atomics),
            self.incidents.valid.eq(Cat(kinds.values()).any()),
            self.incidents.qp.eq(c.qp),
            *(self.incidents[kind].eq(event) for kind, event in kinds.items()),
        ]
        connect(m, c.failures.o, flipped(self.failures))
        with m.If(self.jobs.ready):
            m.d.sync += c.job.valid.eq(0)
        scan, is_due = self._pace(m)
        with m.FSM(name="step"):
            self._add_clear(m, c)
            self._add_choice(m, c, scan, is_due)
            c.add_fetch()
            add_commit(c, self.frame_pages)
            add_resend(c)
            add_repeat(c)
            add_credit(c)
            acknowledging.add()
            add_tick(c)
            add_losing(c)
            add_go_back(c)
            add_open(c, self.opens)
            add_shut(c, self.shuts)
            add_grant(c, self.frame_pages, self.most_pages)
        for name, event in c.events.items():
            happened = Signal(name=f"{name}_happened")
            m.d.sync += [happened.eq(event), self.counters[name].eq(self.counters[name] + happened)]
        return m

    def _pace(self, m: Module) -> tuple[Signal, Signal]:
        """The connection whose timer is looked at next, and whether that has priority."""
        turn = Signal(range(TICK_PERIOD))
        is_due = Signal()
        m.d.sync += turn.eq(turn + 1)
        with m.If(turn == 0):
            m.d.sync += is_due.eq(1)
        return Signal(qp_bits(self.queue_pairs), name="scan"), is_due

    def _add_clear(self, m: Module, c: Context) -> None:
        """CLEAR: after a reset no connection is alive. The memories have to be told."""
        number = Signal(range(CLASSES))
        with m.State("CLEAR"):
            m.d.comb += c.state_write.en.eq(1)
            c.reset_grant(number, alive=0)
            m.d.sync += number.eq(number + 1)
            with m.If(number == CLASSES - 1):
                m.d.sync += [number.eq(0), c.qp.eq(c.qp + 1)]
                with m.If(c.qp == self.queue_pairs - 1):
                    m.next = "IDLE"

    def _add_choice(self, m: Module, c: Context, scan: Signal, is_due: Signal) -> None:
        """IDLE to SETTLED: choose an event, and fetch its connection's state. STORE: put that back."""
        was_ack = Signal()
        choices = self._choices(c, scan, was_ack)
        chosen = Signal(range(len(choices)))
        with m.State("IDLE"):
            m.next = "LOAD"
            m.d.sync += [c.qp.eq(scan), chosen.eq(len(choices) - 1)]
            for at, (valid, qp, _) in reversed(list(enumerate(choices[:-1]))):
                with m.If(valid & ~is_due):
                    m.d.sync += [c.qp.eq(qp), chosen.eq(at)]
        with m.State("LOAD"):
            m.next = "LOADED"
        names = [name for _, _, name in choices]
        with m.State("LOADED"):
            m.d.sync += [c.s.eq(c.state_read.data), c.time.eq(c.now)]
            m.d.sync += [c.ack.eq(self.acks.payload), c.commit.eq(self.commits.payload)]
            m.d.comb += self.acks.ready.eq(chosen == names.index("CREDIT"))
            m.d.comb += self.commits.ready.eq(chosen == names.index("COMMIT"))
            with m.If(chosen == names.index("TICK")):
                m.d.sync += [scan.eq(Mux(scan == self.queue_pairs - 1, 0, scan + 1)), is_due.eq(0)]
            m.next = "SETTLED"
        with m.State("SETTLED"):
            usable = c.s.alive & ~c.s.failed
            m.d.sync += [
                c.is_usable.eq(usable),
                c.has_sack.eq(c.ack.sack.any()),
                c.is_richer.eq(0),
                was_ack.eq(chosen == names.index("CREDIT")),
                c.takes_ack.eq(usable & (c.s.epoch == c.ack.epoch)),
                c.takes_commit.eq(usable & (c.s.epoch == c.commit.epoch)),
            ]
            with m.Switch(chosen):
                for at, name in enumerate(names):
                    with m.Case(at):
                        m.next = name
        with m.State("STORE"):
            m.d.comb += c.state_write.en.eq(1)
            m.next = "IDLE"

    def _choices(self, c: Context, scan: Signal, was_ack: Signal) -> list[tuple]:
        """Events in the order of their importance: whether there is one, its connection, its first step.

        After an acknowledgement comes a frame that waits to be sent, so that these are not kept waiting by those.
        """
        can_send = ~c.job.valid
        yields = was_ack & can_send & (self.commits.valid | c.resends.o.valid)
        return [
            (self.shuts.valid, self.shuts.payload, "END"),
            (self.acks.valid & ~yields, self.acks.payload.qp, "CREDIT"),
            (self.opens.valid, self.opens.payload.qp, "OPEN"),
            (c.resends.o.valid & can_send, c.resends.o.payload.qp, "RESUME"),
            (self.commits.valid & can_send, self.commits.payload.qp, "COMMIT"),
            (True, scan, "TICK"),
        ]
