"""Decides which operations share a frame, and when a frame is closed."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.config import check_choice
from xoe.wire import CRC_SIZE, GRID, FrameHeader, OperationHeader

from .crc import CRC_WIDTHS, WORD
from .layouts import OPERATION, ROUTE, operation_beat
from .packer import HEADER_WORDS, lead_words, placement
from .wire import to_bus

OVERHEAD = FrameHeader.SIZE + CRC_SIZE  # bytes of an MTU that are not operations
WORDS_BITS = 11  # of the number of words of operations in a frame
REQUESTS, RESPONSES = 0, 1

GATHERED = data.StructLayout({"route": ROUTE, "words": WORDS_BITS})
"""A closed frame: where it goes and how many words of operations it has."""


class Gatherer(wiring.Component):
    """Takes operations from two inputs and says where each of their beats goes.

    A frame has operations of one input and one route, no more than ``mtu`` allows (one that is larger than that on its
    own gets a frame of its own). It is closed, always between two operations, when the next one of its input does not
    match or fit, or when ``hungry`` says that the wire is about to fall idle and either no further operation is there
    or the other input waits. After each frame the other input comes first; at the start it is the responses' turn.

    An operation's beat is accepted in the clock in which it is there, unless the rows before it are still coming out:
    a row of ``width`` bits leaves in each clock, so operations pass as fast as the wire takes them. ``place`` follows
    one clock later; ``close`` in the clock of a ``place`` ends the frame after it, and ``closed`` follows one clock
    after ``close``. Turning from one input to the other takes one clock, in which the frame that is closed still has a
    row to write. ``ready`` depends on both inputs' ``valid`` and, between operations, on the route and size offered.

    ``has_room`` says that ``ROOM`` more rows can be stored, ``may_open`` that another frame may begin; both may lag by
    one clock.

    Args:
        width: bits of a row.
    """

    ROOM = 12

    def __init__(self, width: int) -> None:
        check_choice("width", width, CRC_WIDTHS)
        self.width = width
        self._words = width // WORD
        self._is_open, self._inside = Signal(name="is_open"), Signal(name="inside")  # a frame, an operation
        self._source, self._route = Signal(name="source", init=REQUESTS), Signal(ROUTE, name="route")
        super().__init__(
            {
                "requests": In(stream.Signature(operation_beat(width))),
                "responses": In(stream.Signature(operation_beat(width))),
                "mtu": In(14),
                "hungry": In(1),
                "has_room": In(1),
                "may_open": In(1),
                "placing": Out(1),
                "place": Out(placement(width)),
                "close": Out(1),
                "at": Out(range(max(2, self._words)), init=lead_words(self._words)),
                "rows": Out(range(5)),
                "closed": Out(1),
                "frame": Out(GATHERED),
                "operation_taken": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Choose an input, decide, and hand on the beat with its place."""
        m = Module()
        choice, beat, valid, other, same = self._choose(m)
        operation = beat.data.operation
        size, room, limit = Signal(range(258)), Signal(signed(WORDS_BITS + 1)), Signal(WORDS_BITS)
        words = Signal(WORDS_BITS)
        m.d.comb += size.eq(operation.words + HEADER_WORDS)
        m.d.sync += limit.eq((self.mtu - OVERHEAD) >> exact_log2(GRID))

        joins, gives_way, is_fresh = Signal(), Signal(), Signal()
        may_take, takes, keeps_pace = Signal(), Signal(), Signal()
        m.d.comb += [
            joins.eq(same & (size <= room)),
            gives_way.eq(self.hungry & other),
            is_fresh.eq(~self._inside & ~(self._is_open & joins)),
            self.close.eq(self._is_open & ~self._inside & Mux(valid, ~joins | gives_way, self.hungry)),
            may_take.eq(
                Mux(is_fresh, self.may_open & ~(self._is_open & other), self._inside | ~gives_way),
            ),
            takes.eq(valid & may_take & keeps_pace),
            self.requests.ready.eq(may_take & keeps_pace & (choice == REQUESTS)),
            self.responses.ready.eq(may_take & keeps_pace & (choice == RESPONSES)),
            self.operation_taken.eq(takes & beat.last),
        ]
        with m.If(takes):
            m.d.sync += [self._is_open.eq(1), self._inside.eq(~beat.last), self._source.eq(choice)]
            m.d.sync += self._route.eq(beat.data.route)
            with m.If(~self._inside):
                m.d.sync += [room.eq(Mux(is_fresh, limit, room) - size), words.eq(Mux(is_fresh, 0, words) + size)]
        with m.Elif(self.close):
            m.d.sync += self._is_open.eq(0)
        m.d.sync += [self.closed.eq(self.close), self.frame.route.eq(self._route), self.frame.words.eq(words)]

        end = self._place(m, beat, is_fresh, takes)
        self._pace(m, end >> exact_log2(self._words), takes, keeps_pace)
        return m

    def _choose(self, m: Module) -> tuple[Signal, data.View, Signal, Signal, Signal]:
        """The input whose turn it is, its beat, whether one is there, whether the other waits, and if routes match."""
        choice, beat = Signal(), Signal(operation_beat(self.width))
        valid, other, same = Signal(name="valid"), Signal(name="other_valid"), Signal(name="same_route")
        # Between frames the other input has the next turn, if it has something.
        turn = Mux(self._source == REQUESTS, self.responses.valid, ~self.requests.valid)
        m.d.comb += choice.eq(Mux(self._is_open, self._source, turn))
        for index, own, rest in ((REQUESTS, self.requests, self.responses), (RESPONSES, self.responses, self.requests)):
            with m.If(choice == index):
                m.d.comb += [beat.eq(own.payload), valid.eq(own.valid), other.eq(rest.valid)]
                m.d.comb += same.eq(own.payload.data.route == self._route)
        return choice, beat, valid, other, same

    def _place(self, m: Module, beat: data.View, is_fresh: Value, takes: Value) -> Value:
        """Where the beat goes; returns the first word after it."""
        words, operation = self._words, beat.data.operation
        start, middle, end = (Signal.like(self.place[name]) for name in ("start", "middle", "end"))
        rest = (operation.words - 1)[: exact_log2(words)] + 1  # words of data in the last beat, if there are any
        count = Mux(beat.last, Mux(operation.words == 0, 0, rest), words)
        m.d.comb += [
            start.eq(Mux(is_fresh, lead_words(words), self.at)),
            middle.eq(start + Mux(self._inside, 0, HEADER_WORDS)),
            end.eq(middle + count),
        ]
        m.d.sync += [
            self.placing.eq(takes),
            self.place.data.eq(beat.data.data),
            self.place.header.eq(to_bus(OperationHeader, {name: operation[name] for name in OPERATION.members})),
            self.place.start.eq(start),
            self.place.middle.eq(middle),
            self.place.end.eq(end),
        ]
        with m.If(takes):
            m.d.sync += self.at.eq(end[: exact_log2(words)])
        with m.Elif(self.close):
            m.d.sync += self.at.eq(lead_words(words))
        return end

    def _pace(self, m: Module, filled: Value, takes: Value, keeps_pace: Value) -> None:
        """Let a beat pass only when no more than one whole row will be left before it is placed, and rows have room."""
        pending, left = Signal(range(4)), Signal(range(5))
        planned = Signal(range(4))
        m.d.comb += [
            left.eq(pending + self.close),
            keeps_pace.eq(self.has_room & (left <= 1)),
            self.rows.eq(planned + self.close),
        ]
        m.d.sync += [
            planned.eq(Mux(takes, filled, 0)),
            pending.eq(left - (left != 0) + Mux(takes, filled, 0)),
        ]
