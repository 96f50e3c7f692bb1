"""Steps that time takes, and what a lost frame takes."""

from __future__ import annotations

from amaranth.hdl import Signal

from xoe.transport import BACKOFF_MAX

from .context import Context, Flow


def add_tick(c: Context) -> None:
    """TICK: if the connection's timer has run out, a probe at first, then everything again. REARM: start it anew."""
    m, s = c.m, c.s
    left = Signal.like(c.time)  # clocks after the next one
    is_probe = Signal()
    m.d.sync += [
        left.eq(s.deadline + ~c.time),
        is_probe.eq((c.cfg.probe_timeout != 0) & ~s.probed & ~c.cfg.go_back_n),
    ]
    with m.State("TICK"):
        m.next = "NEXT"
        with m.If(c.is_usable & s.runs & left[-1]):
            m.d.sync += s.probed.eq(1)
            with m.If(is_probe):
                m.d.comb += c.is_probing.eq(1)
                c.look_at(s.count - 1, Flow.PROBE)
            with m.Else():
                m.d.comb += c.events["timeouts"].eq(1)
                # Whatever was sent is lost: none of it can tell any more by its order.
                m.d.sync += [s.tail.eq(s.order), s.reach.eq(0)]
                with m.If(s.backoff != BACKOFF_MAX):
                    m.d.sync += s.backoff.eq(s.backoff + 1)
                c.look_at(0, Flow.TIMEOUT)
                with m.If(c.cfg.go_back_n):
                    m.next = "GO_BACK"
    with m.State("REARM"):
        c.start_timer()
        m.next = "NEXT"


def add_losing(c: Context) -> None:
    """PROBE, TIMEOUT: a frame was fetched that may be lost, or is."""
    m = c.m
    with m.State("PROBE"):
        with m.If(c.is_on_wire | (c.place == 0)):
            m.next = "REARM"
        with m.Else():
            c.look_at(c.place - 1, Flow.PROBE)
        with m.If(c.is_on_wire & ~c.is_worn):  # a frame sent as often as it may be is left to the time-out
            m.d.comb += c.events["probes"].eq(1)
            c.lose(False)
    with m.State("TIMEOUT"):
        with m.If(c.is_last):
            m.next = "REARM"
        with m.Else():
            c.look_at(c.place + 1, Flow.TIMEOUT)
        with m.If(c.is_on_wire):
            c.lose(c.is_worn)
            with m.If(c.is_worn):
                m.next = "NEXT"


def add_go_back(c: Context) -> None:
    """GO_BACK: everything from the oldest frame on again, unless that has had no success too often."""
    m, s = c.m, c.s
    with m.State("GO_BACK"):
        m.next = "GONE_BACK"
        with m.If(s.attempts == c.cfg.retries):
            c.fail()
            m.next = "NEXT"
        with m.Else():
            m.d.sync += [s.attempts.eq(s.attempts + 1), s.again.eq(0), s.is_queued.eq(1)]
            m.d.comb += c.is_to_be_resent.eq(~s.is_queued)
    with m.State("GONE_BACK"):
        c.start_timer()
        m.next = "NEXT"
