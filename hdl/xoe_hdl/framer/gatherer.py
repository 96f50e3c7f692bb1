"""Decides which operations share a frame, and when a frame is closed."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.config import check_choice
from xoe.wire import CRC_SIZE, GRID, FrameHeader, OperationHeader

from ..crc import CRC_WIDTHS, WORD
from ..layouts import OPERATION, ROUTE, operation_beat
from ..wire import to_bus
from .operation_input import WORDS_BITS, OperationInput, waiting_beat
from .packer import HEADER_WORDS, lead_words, placement

OVERHEAD = FrameHeader.SIZE + CRC_SIZE  # bytes of an MTU that are not operations
INPUTS = ("requests", "responses", "notes")
REQUESTS, RESPONSES, NOTES = range(3)

GATHERED = data.StructLayout({"route": ROUTE, "words": WORDS_BITS, "is_note": 1})
"""A closed frame: where it goes, how many words of operations it has, and whether it is a note."""

HEAD = data.StructLayout({"valid": 1, "route": ROUTE})
"""The operation that an input has next."""


def room_within(mtu: ValueLike) -> Value:
    """Words of data that an operation alone in its frame may have."""
    return ((Value.cast(mtu) - OVERHEAD) >> exact_log2(GRID)) - HEADER_WORDS


class Gatherer(wiring.Component):
    """Takes operations from three inputs and says where each of their beats goes.

    ``notes`` are frames by themselves, given as operations of one beat, which go before all others; where an operation
    has its header a note has ``note_body``, which stands until the note ``leaves``. A frame has operations of one input
    and one route, no more than go with one that has ``room`` words of data (one that has more gets a frame of its own).
    It is closed, always between two operations,

    * when the next one of its input does not match or fit;
    * when no further one is there and another input has one that may begin a frame;
    * when ``hungry`` says that the wire is about to fall idle, and no further one is there or the frame has ``gather``
      bytes of operations. What follows without a gap counts on from the words of the frame closed early.

    After each frame of requests the responses come first, and the reverse; at the start it is the responses' turn. So
    an input waits for the other for no longer than it takes to fill one frame.

    ``heads`` says what each input has next. It begins a frame only if its bit of ``permits`` is set; if its bit of
    ``drops`` is, it is taken and forgotten instead. ``begins`` has a bit for the input whose head begins a frame now,
    ``leaves`` for the one whose head was taken whole.

    Operations pass as fast as the wire takes them: a row of ``width`` bits leaves in each clock, and a beat is held
    back only while the rows before it are still coming out. Turning from one input to the other takes a clock, in
    which the closed frame has a row to write anyway, unless all of it is in one row.

    A beat accepted in clock t is taken from its queue in t + 1 at the earliest; ``place`` follows one clock after
    that. ``close`` in the clock of a ``place`` ends the frame after it; ``closed`` follows one clock later.
    ``may_open`` says that another frame may begin: there is room for the largest.

    Args:
        width: bits of a row.

    Raises:
        ConfigError: another width than the CRC has.
    """

    def __init__(self, width: int) -> None:
        check_choice("width", width, CRC_WIDTHS)
        self.width = width
        self._words = width // WORD
        self._is_open, self._inside = Signal(name="is_open"), Signal(name="inside")  # a frame, an operation
        self._source = Signal(2, name="source", init=REQUESTS)  # of the frame that is open
        self._last = Signal(name="last", init=REQUESTS)  # of those two that take turns
        super().__init__(
            {
                **{name: In(stream.Signature(operation_beat(width))) for name in INPUTS},
                "heads": Out(data.ArrayLayout(HEAD, len(INPUTS))),
                "permits": In(len(INPUTS)),
                "drops": In(len(INPUTS)),
                "begins": Out(len(INPUTS)),
                "leaves": Out(len(INPUTS)),
                "note_body": In(HEADER_WORDS * WORD),
                "room": In(WORDS_BITS),
                "gather": In(14),
                "hungry": In(1),
                "may_open": In(1),
                "placing": Out(1),
                "place": Out(placement(width)),
                "close": Out(1),
                "at": Out(range(max(2, self._words)), init=lead_words(self._words)),
                "closed": Out(1),
                "frame": Out(GATHERED),
                "operation_taken": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Choose an input, decide, and hand on the beat with its place."""
        m = Module()
        inputs = [OperationInput(self.width) for _ in INPUTS]
        for name, each in zip(INPUTS, inputs, strict=True):
            m.submodules[name] = each
            wiring.connect(m, wiring.flipped(getattr(self, name)), each.i)
        choice, chosen, other, is_permitted, is_dropped = self._choose(m, [each.o for each in inputs])

        pending, goes_on, is_over, takes, may_begin = Signal(range(4)), Signal(), Signal(), Signal(), Signal()
        has_enough, is_open_for_more, discards = Signal(), Signal(), Signal()
        is_first_free = (pending == 0) | (pending == 1) & ~self._is_open
        m.d.comb += [
            # A note has one beat, and nothing joins it.
            is_open_for_more.eq(self._is_open & (self._source != NOTES) & (self._inside | ~(self.hungry & has_enough))),
            goes_on.eq(is_open_for_more & chosen.hints.same_route & chosen.hints.fits),
            is_over.eq(self._is_open & ~self._inside & ~chosen.valid & (self.hungry | other)),
            self.close.eq(is_over | self._is_open & chosen.valid & ~goes_on),
            may_begin.eq(is_first_free & self.may_open & is_permitted & ~(self._is_open & other)),
            takes.eq(chosen.valid & Mux(goes_on, pending <= 1, may_begin)),
            discards.eq(chosen.valid & ~self._is_open & is_dropped),
        ]
        for index, each in enumerate(inputs):
            is_chosen = choice == index
            m.d.comb += [
                each.room.eq(self.room),
                each.is_over.eq(is_over & (self._source == index)),
                each.o.ready.eq((takes | discards) & is_chosen),
                self.begins[index].eq(takes & ~goes_on & is_chosen),
                self.leaves[index].eq((takes | discards) & chosen.hints.last & is_chosen),
            ]
        with m.If(takes):
            m.d.sync += [self._is_open.eq(1), self._inside.eq(~chosen.hints.last), self._source.eq(choice)]
            with m.If(choice != NOTES):
                m.d.sync += self._last.eq(choice)
        with m.Elif(self.close):
            m.d.sync += self._is_open.eq(0)
        self._describe(m, chosen, goes_on, takes, has_enough)
        end = self._place(m, chosen, goes_on, takes, choice == NOTES)
        self._pace(m, end >> exact_log2(self._words), takes, pending)
        is_operation = chosen.hints.last & (choice != NOTES)
        m.d.sync += [self.closed.eq(self.close), self.operation_taken.eq(takes & is_operation)]
        return m

    def _choose(self, m: Module, inputs: list[stream.Interface]) -> tuple[Signal, data.View, Signal, Signal, Signal]:
        """The input whose turn it is, what it has, whether another one waits, and what is to become of it."""
        choice, other = Signal(2), Signal(name="other_valid")
        is_permitted, is_dropped, goes = Signal(), Signal(), Signal(len(INPUTS))
        chosen = Signal(data.StructLayout({"valid": 1, **waiting_beat(self.width).members}))
        for index, own in enumerate(inputs):
            m.d.comb += [self.heads[index].valid.eq(own.valid), self.heads[index].route.eq(own.payload.body.route)]
            m.d.comb += goes[index].eq(own.valid & (self.permits[index] | self.drops[index]))
        # Between frames the input that did not have the last turn is next, if it has something.
        turn = Mux(self._last == REQUESTS, goes[RESPONSES], ~goes[REQUESTS])
        m.d.comb += choice.eq(Mux(self._is_open, self._source, Mux(goes[NOTES], NOTES, turn)))
        for index, own in enumerate(inputs):
            with m.If(choice == index):
                m.d.comb += [chosen.hints.eq(own.payload.hints), chosen.body.eq(own.payload.body)]
                m.d.comb += [chosen.valid.eq(own.valid), other.eq((goes & ~(1 << index)).any())]
                m.d.comb += is_permitted.eq(self.permits[index] & ~self.drops[index])
                m.d.comb += is_dropped.eq(self.drops[index])
        return choice, chosen, other, is_permitted, is_dropped

    def _describe(self, m: Module, chosen: data.View, goes_on: Value, takes: Value, has_enough: Signal) -> None:
        """Add each operation to its frame's description, in the clock in which that may be closed at the earliest.

        Whether the frame has enough to be sent follows a clock later.
        """
        route, size, joins, is_new = Signal(ROUTE), Signal(range(258)), Signal(), Signal()
        m.d.sync += [
            route.eq(chosen.body.route),
            size.eq(chosen.body.operation.words + HEADER_WORDS),
            joins.eq(goes_on),
            is_new.eq(takes & ~self._inside),
        ]
        with m.If(is_new):
            m.d.sync += self.frame.is_note.eq(self._source == NOTES)
            m.d.sync += [self.frame.route.eq(route), self.frame.words.eq(Mux(joins, self.frame.words, 0) + size)]
        is_begun = takes & ~goes_on | is_new & ~joins  # until then the words are those of the frame before
        m.d.sync += has_enough.eq(~is_begun & (self.frame.words >= self.gather >> exact_log2(GRID)))

    def _place(self, m: Module, chosen: data.View, goes_on: Value, takes: Value, is_note: Value) -> Value:
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
            self.place.header.eq(Mux(is_note, self.note_body, header)),
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
        left = Mux(self.close, pending, pending - (pending != 0))
        m.d.sync += pending.eq(Mux(takes, filled, left))
