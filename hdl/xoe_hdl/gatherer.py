"""Decides which operations share a frame, and when a frame is closed."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.config import check_choice
from xoe.wire import CRC_SIZE, GRID, FrameHeader, OperationHeader

from .crc import CRC_WIDTHS, WORD
from .layouts import OPERATION, ROUTE, operation_beat
from .operation_input import OperationInput, waiting_beat
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
    own gets a frame of its own). It is closed, always between two operations,

    * when the next one of its input does not match or fit;
    * when no further one is there and the other input has one;
    * when ``hungry`` says that the wire is about to fall idle, and no further one is there or the frame has ``gather``
      bytes of operations.

    After each frame the other input comes first; at the start it is the responses' turn. So an input waits for the
    other for no longer than it takes to fill one frame.

    Operations pass as fast as the wire takes them: a row of ``width`` bits leaves in each clock, and a beat is held
    back only while the rows before it are still coming out. Turning from one input to the other takes a clock, in
    which the closed frame has a row to write anyway, unless all of it is in one row.

    A beat accepted in clock t is taken from its queue in t + 1 at the earliest; ``place`` follows one clock after
    that. ``close`` in the clock of a ``place`` ends the frame after it; ``closed`` and ``rows`` (how many are made)
    follow one clock later. ``has_room`` says that ``ROOM`` more rows can be stored, and may lag by two clocks;
    ``may_open`` that another frame may begin.

    Args:
        width: bits of a row.

    Raises:
        ConfigError: another width than the CRC has.
    """

    ROOM = 16  # no clock makes more than four rows

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
                "gather": In(14),
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
        m.submodules.requests = requests = OperationInput(self.width)
        m.submodules.responses = responses = OperationInput(self.width)
        wiring.connect(m, wiring.flipped(self.requests), requests.i)
        wiring.connect(m, wiring.flipped(self.responses), responses.i)
        inputs = (requests.o, responses.o)
        choice, chosen, other = self._choose(m, inputs)

        # Late is only whether the beat goes on with the open frame, so all else is made ready for both answers.
        room, has_enough, pending = Signal(signed(WORDS_BITS + 1)), Signal(), Signal(range(4))
        joins = [each.payload.hints.same_route & (each.payload.hints.words <= room) for each in inputs]
        goes_on, may_go_on, may_begin, takes = Signal(), Signal(), Signal(), Signal()
        may_leave, is_due = Signal(), Signal()
        is_first_free = (pending == 0) | (pending == 1) & ~self._is_open
        m.d.comb += [
            may_leave.eq(self._is_open & ~self._inside),
            is_due.eq(self.hungry & has_enough),
            goes_on.eq(self._inside | self._is_open & ~is_due & Mux(self._source == REQUESTS, *joins)),
            may_go_on.eq(chosen.valid & self.has_room & (pending <= 1)),
            may_begin.eq(chosen.valid & self.has_room & is_first_free & self.may_open & ~(self._is_open & other)),
            takes.eq(Mux(goes_on, may_go_on, may_begin)),
            self.close.eq(may_leave & Mux(chosen.valid, ~goes_on, self.hungry | other)),
        ]
        for index, each in enumerate(inputs):
            m.d.comb += each.ready.eq(takes & (choice == index))
        with m.If(takes):
            m.d.sync += [self._is_open.eq(1), self._inside.eq(~chosen.hints.last), self._source.eq(choice)]
            m.d.sync += self._route.eq(chosen.body.route)
        with m.Elif(self.close):
            m.d.sync += self._is_open.eq(0)
        self._measure(m, chosen, goes_on, takes, room, has_enough)
        end = self._place(m, chosen, goes_on, takes)
        self._pace(m, end >> exact_log2(self._words), takes, pending)
        m.d.sync += [self.closed.eq(self.close), self.operation_taken.eq(takes & chosen.hints.last)]
        return m

    def _choose(self, m: Module, inputs: tuple[stream.Interface, ...]) -> tuple[Signal, data.View, Signal]:
        """The input whose turn it is, what it has, and whether the other one waits."""
        choice, other = Signal(), Signal(name="other_valid")
        chosen = Signal(data.StructLayout({"valid": 1, **waiting_beat(self.width).members}))
        # Between frames the other input has the next turn, if it has something.
        turn = Mux(self._source == REQUESTS, inputs[RESPONSES].valid, ~inputs[REQUESTS].valid)
        m.d.comb += choice.eq(Mux(self._is_open, self._source, turn))
        for index, own in enumerate(inputs):
            with m.If(choice == index):
                m.d.comb += [chosen.hints.eq(own.payload.hints), chosen.body.eq(own.payload.body)]
                m.d.comb += [chosen.valid.eq(own.valid), other.eq(inputs[1 - index].valid)]
        return choice, chosen, other

    def _measure(
        self, m: Module, chosen: data.View, goes_on: Value, takes: Value, room: Signal, has_enough: Signal
    ) -> None:
        """Keep count of the words in the open frame, and of those of data that one more operation may have.

        Whether it has enough follows two clocks later.
        """
        words, limit, size = Signal(WORDS_BITS), Signal(WORDS_BITS), Signal(range(258))
        m.d.sync += limit.eq((self.mtu - OVERHEAD) >> exact_log2(GRID))
        m.d.comb += size.eq(chosen.hints.words + HEADER_WORDS)
        with m.If(takes & ~self._inside):
            m.d.sync += room.eq(Mux(goes_on, room - size, limit - HEADER_WORDS - size))
            m.d.sync += words.eq(Mux(goes_on, words + size, size))
        m.d.sync += has_enough.eq(words >= self.gather >> exact_log2(GRID))
        m.d.sync += [self.frame.route.eq(self._route), self.frame.words.eq(words)]

    def _place(self, m: Module, chosen: data.View, goes_on: Value, takes: Value) -> Value:
        """Where the beat goes; returns the first word after it."""
        words, body = self._words, chosen.body
        header_words = Mux(self._inside, 0, HEADER_WORDS)
        places = []
        for begin in (self.at, Const(lead_words(words), len(self.at))):
            middle, end = Signal.like(self.place.middle), Signal.like(self.place.end)
            m.d.comb += [middle.eq(begin + header_words), end.eq(begin + header_words + chosen.hints.count)]
            places.append((begin, middle, end))
        start, middle, end = (Mux(goes_on, joined, fresh) for joined, fresh in zip(*places, strict=True))
        header = to_bus(OperationHeader, {name: body.operation[name] for name in OPERATION.members})
        m.d.sync += [
            self.placing.eq(takes),
            self.place.data.eq(body.data),
            self.place.header.eq(header),
            self.place.start.eq(start),
            self.place.middle.eq(middle),
            self.place.end.eq(end),
        ]
        with m.If(takes):
            m.d.sync += self.at.eq(end[: exact_log2(words)])
        with m.Elif(self.close):
            m.d.sync += self.at.eq(lead_words(words))
        return end

    def _pace(self, m: Module, filled: Value, takes: Value, pending: Signal) -> None:
        """Keep count of the rows that are whole once what was taken before is placed.

        No more than one may be left when the next beat is placed.
        """
        made = Signal(range(4))
        left = Mux(self.close, pending, pending - (pending != 0))
        m.d.sync += [
            pending.eq(Mux(takes, filled, left)),
            made.eq(Mux(takes, filled, 0)),
            self.rows.eq(made + self.close),
        ]
