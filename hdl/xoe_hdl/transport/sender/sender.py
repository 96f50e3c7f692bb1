"""The sender: numbers frames, keeps each until it is acknowledged, and says what is sent. Model: ``xoe.sender``."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import check_choice, check_range, credits_needed
from xoe.wire import CRC_SIZE, MTU_MAX, MTU_MIN, FrameHeader

from ...layouts import counters
from ..layouts import CLASSES, QUEUE_PAIRS, WINDOWS, qp_bits
from ..page_store import POWERS, segment
from .acknowledging import Acknowledging
from .choosing import Chooser
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
from .opening import add_open, add_shut
from .permits import Permits
from .sending import add_commit, add_repeat, add_resend
from .timing import add_go_back, add_losing, add_tick


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

    After a reset it takes nothing for about ``6 * queue_pairs`` clocks. Timers are looked at one after the other, one
    every 32 clocks and whenever nothing else is to be done; one that is due waits for the event under way, and for the
    next if that is chosen already.

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
        m.submodules.permits = permits = Permits(self.queue_pairs, self.pages, self.frame_pages, self.most_pages)
        acknowledging, chooser = Acknowledging(c), Chooser(c, self.shuts, self.acks, self.opens, self.commits)
        kinds = {"is_probe": c.is_probing, "is_timeout": c.events["timeouts"], "is_failed": c.events["failed"]}
        m.d.comb += [c.cfg.eq(self.cfg), self.jobs.valid.eq(c.job.valid), self.jobs.payload.eq(c.job.payload)]
        m.d.comb += [c.shown_qp.eq(self.shown_qp), self.progress.eq(c.progress)]
        m.d.sync += [
            self.free.eq(c.free),
            self.confirmed.valid.eq(c.is_confirmed),
            self.confirmed.qp.eq(c.qp),
            self.confirmed.atomics.eq(c.frame.atomics),
            self.incidents.valid.eq(Cat(kinds.values()).any()),
            self.incidents.qp.eq(c.qp),
            *(self.incidents[kind].eq(event) for kind, event in kinds.items()),
        ]
        connect(m, c.failures.o, flipped(self.failures))
        connect(m, c.changes, permits.changes)
        m.d.comb += [self.grants.eq(permits.grants), c.is_told.eq(permits.is_idle)]
        with m.If(self.jobs.ready):
            m.d.sync += c.job.valid.eq(0)
        with m.FSM(name="step"):
            self._add_clear(m, c)
            chooser.add()
            c.add_fetch()
            add_commit(c)
            add_resend(c)
            add_repeat(c)
            acknowledging.add()
            add_tick(c)
            add_losing(c)
            add_go_back(c)
            add_open(c, self.opens)
            add_shut(c, self.shuts)
        for name, event in c.events.items():
            happened = Signal(name=f"{name}_happened")
            m.d.sync += [happened.eq(event), self.counters[name].eq(self.counters[name] + happened)]
        return m

    def _add_clear(self, m: Module, c: Context) -> None:
        """CLEAR: after a reset no connection is alive. The memories have to be told, and whoever wants a permit."""
        with m.State("CLEAR"):
            m.d.comb += [c.state_write.en.eq(1), c.changes.valid.eq(1), c.changes.payload.is_last.eq(1)]
            with m.If(c.changes.ready):
                m.d.sync += c.qp.eq(c.qp + 1)
                with m.If(c.qp == self.queue_pairs - 1):
                    m.next = "NEXT"
