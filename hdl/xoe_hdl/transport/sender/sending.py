"""Steps that send: a frame for the first time, and again."""

from __future__ import annotations

from amaranth.hdl import Mux, Signal

from ..layouts import OVERHEAD_WORDS, WORDS_BITS
from .context import Context, Flow


def add_commit(c: Context) -> None:
    """COMMIT: a frame was gathered. Keep it and send it, unless others go first. CONSUME: take its credits."""
    m, s, commit, change = c.m, c.s, c.commit, c.changes.payload
    rounded = Signal(WORDS_BITS + 1)
    needed = Signal(WORDS_BITS + 1)
    goes_at_once = ~c.cfg.go_back_n | (s.again == s.count)
    mask = ((1 << s.credit_shift) - 1)[: WORDS_BITS - 1]
    m.d.sync += rounded.eq(commit.words + OVERHEAD_WORDS + mask)
    with m.State("COMMIT"):
        m.d.sync += needed.eq(rounded >> s.credit_shift)
        m.next = "CONSUME"
        with m.If(c.takes_commit):
            m.d.comb += c.frame_write.en.eq(1)
            c.count_transmission(tries=0)
            m.d.sync += [
                s.count.eq(s.count + 1),
                s.pages.eq(s.pages + commit.segment.pages),
            ]
            c.prepare_job(commit)
            with m.If(goes_at_once):
                m.d.sync += [c.job.valid.eq(1), s.again.eq(s.again + 1)]
        with m.Else():
            m.d.comb += [c.free.valid.eq(1), c.free.payload.eq(commit.segment), c.events["commits_stale"].eq(1)]
            m.next = "NEXT"
    with m.State("CONSUME"):
        m.d.comb += c.changes.valid.eq(1)
        with m.Switch(commit.traffic_class):
            for at, credit in enumerate(s.credits):
                with m.Case(at):  # a permit has set aside what the largest frame takes
                    m.d.comb += [change.returned[at].eq(1), change.credits[at].eq(credit.most - needed)]
                    with m.If(c.changes.ready):
                        m.d.sync += credit.consumed.eq(credit.consumed + needed)
        with m.If(c.changes.ready):
            m.next = "NEXT"


def add_resend(c: Context) -> None:
    """RESUME: the queue of resends has an entry. RESEND: its frame was fetched."""
    m, s, entry = c.m, c.s, c.resends.o
    with m.State("RESUME"):
        with m.If(c.is_usable):
            c.look_at(Mux(c.cfg.go_back_n, s.again, (entry.payload.index - s.first)[: c.index_bits]), Flow.RESEND)
        with m.Else():
            m.d.comb += entry.ready.eq(1)
            m.next = "NEXT"
    with m.State("RESEND"):
        m.d.comb += entry.ready.eq(1)
        c.prepare_job(c.frame)
        m.next = "NEXT"
        with m.If(c.cfg.go_back_n):
            _send_next(c)
        with m.Elif(c.is_outstanding & ~c.is_on_wire):
            _send_again(c)


def _send_again(c: Context) -> None:
    c.count_transmission(c.track.tries)
    c.m.d.sync += c.job.valid.eq(1)
    c.m.d.comb += c.events["resent"].eq(1)


def _send_next(c: Context) -> None:
    """Going back: the frame at ``again``, and an entry for the one behind it."""
    m, s = c.m, c.s
    with m.If(s.is_queued & c.is_outstanding):
        _send_again(c)
        m.d.sync += s.again.eq(c.place + 1)
        m.next = "REPEAT"
    with m.Else():
        m.d.sync += s.is_queued.eq(0)


def add_repeat(c: Context) -> None:
    """REPEAT: queue the connection for its next frame, if it has gone back and not caught up."""
    m, s = c.m, c.s
    with m.State("REPEAT"):
        m.d.comb += c.is_to_be_resent.eq(s.again != s.count)
        m.d.sync += s.is_queued.eq(s.again != s.count)
        m.next = "NEXT"
