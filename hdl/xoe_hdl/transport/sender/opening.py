"""Steps that begin and end an incarnation, and those that permit frames to begin."""

from __future__ import annotations

from amaranth.hdl import Mux, Signal
from amaranth.lib import data, stream

from xoe.cyclic import CREDIT_BITS

from ..layouts import CLASSES, WINDOW_BITS
from .context import Context, Flow
from .layouts import PERMITS_MAX


def add_open(c: Context, opening: stream.Interface) -> None:
    """OPEN: everything from its beginning. OPENED: no frames are permitted yet."""
    m, s, given = c.m, c.s, opening.payload
    number = Signal(range(CLASSES))
    with m.State("OPEN"):
        m.d.sync += s.eq(s.shape().const({"alive": 1, "rtt_min": -1}))
        m.d.sync += [s[name].eq(given[name]) for name in ("epoch", "peer_epoch", "window", "credit_shift")]
        m.d.sync += s.first.eq(given.first_seq)
        for at, credit in enumerate(s.credits):
            m.d.sync += [credit[name].eq(given.first_credit) for name in ("consumed", "freed")]
            m.d.sync += [credit.limit.eq(given.limits[at]), credit.most.eq(given.most[at])]
        m.d.sync += c.is_usable.eq(1)
        m.d.comb += opening.ready.eq(1)
        m.next = "OPENED"
    with m.State("OPENED"):
        c.reset_grant(number, alive=1)
        m.d.sync += number.eq(number + 1)
        with m.If(number == CLASSES - 1):
            m.d.sync += number.eq(0)
            m.next = "GRANT"


def add_shut(c: Context, ending: stream.Interface) -> None:
    """END: nothing is sent or permitted any more. SHUT: free what is outstanding, a frame after the other."""
    m, s = c.m, c.s
    number = Signal(range(CLASSES))
    with m.State("END"):
        c.reset_grant(number, alive=0)
        m.d.sync += number.eq(number + 1)
        with m.If(number == CLASSES - 1):
            m.d.sync += number.eq(0)
            c.look_at(0, Flow.SHUT)
    with m.State("SHUT"):
        m.d.comb += c.free.valid.eq(c.is_outstanding & s.alive)
        with m.If(~s.alive | c.is_past):
            m.d.sync += [s.alive.eq(0), s.count.eq(0), s.pages.eq(0)]
            m.d.comb += ending.ready.eq(1)
            m.next = "NEXT"
        with m.Else():
            c.look_at(c.place + 1, Flow.SHUT)


def add_grant(c: Context, frame_pages: int, most_pages: int) -> None:
    """GRANT to GRANTED: permit each class one more frame if it has credits, window and room for the largest there is.

    A permit reserves all three until its frame is committed. A second one is given only if there is room for every
    class besides, so that none is kept from sending by what others may send and do not. ``frame_pages`` is what the
    largest frame takes, ``most_pages`` what a connection may have outstanding: at least a frame of each class.
    """
    m, s = c.m, c.s
    in_use = Signal(data.ArrayLayout(CREDIT_BITS, CLASSES))
    fits = Signal(CLASSES)
    permits = Signal(range(CLASSES * PERMITS_MAX + 1))
    frames = Signal(WINDOW_BITS + 1)
    has_room, has_plenty = Signal(), Signal()
    number = Signal(range(CLASSES))
    with m.State("GRANT"):
        for at, credit in enumerate(s.credits):
            m.d.sync += in_use[at].eq(credit.consumed - credit.freed)
        m.d.sync += [permits.eq(sum(credit.permits for credit in s.credits)), number.eq(0)]
        m.next = "RESERVE"
    with m.State("RESERVE"):  # with what the permits that there are, and one more, would take
        for at, credit in enumerate(s.credits):
            m.d.sync += in_use[at].eq(in_use[at] + Mux(credit.permits[0], credit.most << 1, credit.most))
        m.next = "COMPARE"
    with m.State("COMPARE"):
        for at, credit in enumerate(s.credits):
            m.d.sync += fits[at].eq((in_use[at] <= credit.limit) & (credit.permits != PERMITS_MAX))
        m.d.sync += frames.eq(s.count + permits)
        m.next = "ROOM"
    with m.State("ROOM"):
        m.d.sync += has_room.eq((frames < s.window) & (s.pages <= most_pages - frame_pages))
        m.d.sync += has_plenty.eq((frames + CLASSES - 1 < s.window) & (s.pages + CLASSES * frame_pages <= most_pages))
        m.next = "GRANTED"
    with m.State("GRANTED"):
        with m.Switch(number):
            for at, credit in enumerate(s.credits):
                may_have = has_plenty | has_room & (credit.permits == 0)
                with m.Case(at), m.If(fits[at] & may_have & c.is_usable):
                    m.d.sync += [credit.permits.eq(credit.permits + 1), credit.granted.eq(credit.granted + 1)]
                    m.d.sync += [frames.eq(frames + 1), s.pages.eq(s.pages + frame_pages)]
                    c.write_grant(at, credit.granted + 1)
        m.d.sync += number.eq(number + 1)
        m.next = "ROOM"
        with m.If(number == CLASSES - 1):
            m.next = "NEXT"
