"""Permits frames to begin, so that whatever was begun can be sent."""

from __future__ import annotations

from amaranth.hdl import Array, Const, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from ...memories import NO_COLLISION
from ..layouts import CLASSES, WINDOW_BITS
from .layouts import LIMIT_BITS, PERMIT_BITS, PERMITS_MAX, grant_write, permit_change

_CLASS = data.StructLayout(
    {
        "spare": LIMIT_BITS,  # credits that neither frames nor permits have
        "permits": PERMIT_BITS,  # granted, and not committed yet
        "granted": PERMIT_BITS,  # the count in ``GRANT``
    }
)
_ROOMS = 2 * CLASSES - 1  # frames that there may have to be room for: all but one class were given one, and then all


class Permits(wiring.Component):
    """Takes a change of a connection after the other, and permits each class one more frame if there is room for it.

    That is credits, window and pages for the largest frame there is. A permit reserves all three until its frame is
    committed. A second one is given only if there is room for every class besides, so that none is kept from sending by
    what others may send and do not.

    * ``changes``: see ``layouts.permit_change``; a stream. One is worked on for five clocks and one for each permit.
    * ``grants``, valid for a clock: see ``Sender``.
    * ``is_idle``: all that changes until two clocks ago say is granted.

    Args:
        queue_pairs: connections.
        pages: of the retransmit buffer.
        frame_pages: what the largest frame takes.
        most_pages: that a connection may have outstanding: at least a frame of each class.
    """

    def __init__(self, queue_pairs: int, pages: int, frame_pages: int, most_pages: int) -> None:
        self.queue_pairs, self.frame_pages, self.most_pages = queue_pairs, frame_pages, most_pages
        self.change = permit_change(queue_pairs, pages)
        super().__init__(
            {"changes": In(stream.Signature(self.change)), "grants": Out(grant_write(queue_pairs)), "is_idle": Out(1)}
        )
        self.classes = Signal(data.ArrayLayout(_CLASS, CLASSES))
        self.now = Signal(self.change)  # that is worked on
        self.waiting = Signal(self.change)
        self.is_there = Signal()  # one waits
        self.is_fetched = Signal()  # and its connection's classes are there
        self.is_same = Signal()  # they are those in ``classes``
        self.grant = Signal(self.grants.shape())

    def elaborate(self, platform: object) -> Module:
        """A connection's classes are in registers meanwhile; those of the next one are fetched in advance."""
        m = Module()
        now, number = self.now, Signal(range(CLASSES))
        m.d.sync += [self.grants.eq(self.grant), self.is_idle.eq(0)]
        m.d.comb += [
            self.grant.qp.eq(now.qp),
            self.grant.traffic_class.eq(number),
            self.grant.grant.alive.eq(~now.is_last),
            self.grant.grant.epoch.eq(now.epoch),
        ]
        self._fetch(m)
        with m.FSM(name="step"):
            self._add_next(m)
            with m.State("RESET"):
                m.d.comb += [self.grant.valid.eq(1), self.grant.is_reset.eq(1)]
                m.d.sync += number.eq(number + 1)
                with m.If(number == CLASSES - 1):
                    m.d.sync += number.eq(0)
                    m.next = "APPLY"
                    with m.If(now.is_last):
                        m.next = "NEXT"
            with m.State("APPLY"):
                self._apply(m)
                m.next = "COUNT"
            self._add_grant(m)
        return m

    def _fetch(self, m: Module) -> None:
        """Hold a change, and read its connection's classes."""
        now, waiting, classes = self.now, self.waiting, self.classes
        shape = classes.shape()
        m.submodules.kept = kept = memory.Memory(shape=shape, depth=self.queue_pairs, init=[], attrs=NO_COLLISION)
        self.read, self.write = kept.read_port(), kept.write_port()
        m.d.comb += [
            self.read.addr.eq(waiting.qp),
            self.write.addr.eq(now.qp),
            self.write.data.eq(classes),
            self.changes.ready.eq(~self.is_there),
        ]
        m.d.sync += [self.is_fetched.eq(self.is_there), self.is_same.eq(waiting.qp == now.qp)]
        with m.If(~self.is_there):
            m.d.sync += [self.is_there.eq(self.changes.valid), waiting.eq(self.changes.payload)]

    def _add_next(self, m: Module) -> None:
        """NEXT: store the classes, and take the change that waits."""
        waiting = self.waiting
        with m.State("NEXT"):
            m.d.comb += self.write.en.eq(1)
            m.d.sync += self.is_idle.eq(~self.is_there)
            with m.If(self.is_fetched):
                m.d.sync += [self.is_there.eq(0), self.is_fetched.eq(0), self.now.eq(waiting)]
                with m.If(~self.is_same):
                    m.d.sync += self.classes.eq(self.read.data)
                m.next = "APPLY"
                with m.If(waiting.is_first | waiting.is_last):
                    m.next = "RESET"

    def _apply(self, m: Module) -> None:
        for at, each in enumerate(self.classes):
            with m.If(self.now.is_first):
                m.d.sync += [each.spare.eq(self.now.credits[at]), each.permits.eq(0), each.granted.eq(0)]
            with m.Else():
                m.d.sync += [
                    each.spare.eq(each.spare + self.now.credits[at]),
                    each.permits.eq(each.permits - self.now.returned[at]),
                ]

    def _add_grant(self, m: Module) -> None:
        """COUNT, COMPARE: what there is room for. GRANT: a permit a clock, the first class at first."""
        now, classes = self.now, self.classes
        frames, held = Signal(WINDOW_BITS), Signal.like(now.pages)  # that are left; that are taken
        rooms = Signal(_ROOMS)  # is there room for one more frame, for two, ...
        have_credits, are_first = Signal(CLASSES), Signal(CLASSES)  # classes; without a permit
        given = Signal(range(CLASSES * PERMITS_MAX + 1))
        may_have, first = Signal(CLASSES), Signal(CLASSES)
        with_room = Mux(rooms[CLASSES - 1], Const(-1, CLASSES), are_first & rooms[0].replicate(CLASSES))
        m.d.comb += [
            given.eq(sum(each.permits for each in classes)),
            may_have.eq(have_credits & with_room),
            first.eq(may_have & -may_have),
        ]
        reserved = Array(self.frame_pages * number for number in range(CLASSES * PERMITS_MAX + 1))[given]
        with m.State("COUNT"):
            for at, each in enumerate(classes):
                m.d.sync += have_credits[at].eq((each.spare >= now.most[at]) & (each.permits != PERMITS_MAX))
                m.d.sync += are_first[at].eq(each.permits == 0)
            m.d.sync += [frames.eq(now.frames - given), held.eq(now.pages + reserved)]
            m.next = "COMPARE"
        with m.State("COMPARE"):
            for at in range(_ROOMS):
                limit = self.most_pages - (at + 1) * self.frame_pages
                if limit >= 0:  # else never
                    m.d.sync += rooms[at].eq((frames > at) & (held <= limit))
            m.next = "GRANT"
        with m.State("GRANT"):
            m.next = "NEXT"
            with m.If(may_have.any()):
                m.d.sync += [have_credits.eq(have_credits & ~first), rooms.eq(rooms >> 1)]
                m.d.comb += self.grant.valid.eq(1)
                m.next = "GRANT"
            for at, each in enumerate(classes):
                with m.If(first[at]):
                    m.d.comb += [self.grant.traffic_class.eq(at), self.grant.grant.count.eq(each.granted + 1)]
                    m.d.sync += [
                        each.spare.eq(each.spare - now.most[at]),
                        each.permits.eq(each.permits + 1),
                        each.granted.eq(each.granted + 1),
                    ]
