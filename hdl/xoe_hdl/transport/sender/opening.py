"""Steps that begin and end an incarnation."""

from __future__ import annotations

from amaranth.lib import stream

from .context import Context, Flow


def add_open(c: Context, opening: stream.Interface) -> None:
    """OPEN: everything from its beginning. OPENED: the first permits."""
    m, s, given, change = c.m, c.s, opening.payload, c.changes.payload
    with m.State("OPEN"):
        m.d.sync += s.eq(s.shape().const({"alive": 1, "rtt_min": -1}))
        m.d.sync += [s[name].eq(given[name]) for name in ("epoch", "peer_epoch", "window", "credit_shift")]
        m.d.sync += s.first.eq(given.first_seq)
        for at, credit in enumerate(s.credits):
            m.d.sync += [credit[name].eq(given.first_credit) for name in ("consumed", "freed")]
            m.d.sync += credit.most.eq(given.most[at])
        m.next = "OPENED"
    with m.State("OPENED"):
        m.d.comb += [c.changes.valid.eq(1), change.is_first.eq(1), change.credits.eq(given.limits)]
        with m.If(c.changes.ready):
            m.d.comb += opening.ready.eq(1)
            m.next = "NEXT"


def add_shut(c: Context, ending: stream.Interface) -> None:
    """END: nothing is sent or permitted any more. SHUT: free what is outstanding. ENDED: all know."""
    m, s = c.m, c.s
    with m.State("END"):
        m.d.comb += [c.changes.valid.eq(1), c.changes.payload.is_last.eq(1)]
        with m.If(c.changes.ready):
            c.look_at(0, Flow.SHUT)
    with m.State("SHUT"):
        m.d.comb += c.free.valid.eq(c.is_outstanding & s.alive)
        with m.If(~s.alive | c.is_past):
            m.d.sync += [s.alive.eq(0), s.count.eq(0), s.pages.eq(0)]
            m.next = "ENDED"
        with m.Else():
            c.look_at(c.place + 1, Flow.SHUT)
    with m.State("ENDED"), m.If(c.is_told):
        m.d.comb += ending.ready.eq(1)
        m.next = "NEXT"
