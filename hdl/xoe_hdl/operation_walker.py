"""Walks from operation to operation over the words of a frame."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from .aligner import lead_words
from .crc import WORD
from .word_window import place_bits, step


class _State(enum.Enum):
    HEADER = 0  # an operation begins in the window, or some beats on
    BODY = 1  # more of its data follows
    SKIP = 2  # the rest of the frame means nothing


class OperationWalker(wiring.Component):
    """Drives a ``WordWindow``, and says what to make of it in each clock.

    ``emits``: header (only if ``is_first``) and data of an operation begin at word ``place`` of the window, the data
    as if the header were always there. It does so in every clock in which the window holds enough, the frame's verdict
    is there and good, and ``can_emit`` is high; but the window moves by one beat a clock. ``is_past``: the operation
    runs past the frame's end. The verdict is taken with the frame's last beat. ``is_malformed`` is high for a clock
    for each frame that ends in the middle of an operation.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._step = step(width)
        super().__init__(
            {
                "valid": In(1),
                "last": In(1),
                "is_whole": In(1),
                "is_half": In(1),
                "steps": In(data.ArrayLayout(self._step, width // WORD)),
                "advance": Out(1),
                "verdict": In(stream.Signature(1)),
                "can_emit": In(1),
                "emits": Out(1),
                "is_first": Out(1),
                "is_last": Out(1),
                "is_past": Out(1),
                "place": Out(place_bits(width), init=lead_words(width)),
                "is_malformed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Three states."""
        m = Module()
        state, is_start = Signal(_State), Signal(init=1)  # at start: nothing of the frame was looked at yet
        skip = Signal(2)  # beats up to the one where the operation begins
        here, kept, current = Signal(self._step), Signal(self._step), Signal(self._step)
        is_ready, is_dropped, leaves = Signal(), Signal(), Signal()
        is_half = is_start & self.is_half
        m.d.comb += [
            here.eq(Array(self.steps)[self.place] if len(self.steps) > 1 else self.steps[0]),
            self.is_first.eq(state == _State.HEADER),
            current.eq(Mux(self.is_first, here, kept)),
            is_ready.eq(self.is_whole & self.verdict.valid & (skip == 0) & (state != _State.SKIP)),
            is_dropped.eq(is_ready & self.is_first & (~self.verdict.payload | is_half)),
            self.emits.eq(is_ready & ~is_dropped & self.can_emit),
            self.is_last.eq(current.more == 0),
            self.is_past.eq(current.is_past),
            leaves.eq(is_dropped | self.emits & self.is_last & current.is_final | (state == _State.SKIP)),
            self.advance.eq(leaves | (skip != 0) | self.emits & (~self.is_last | (current.skip != 0))),
            self.verdict.ready.eq(leaves & self.valid & self.last),
        ]
        with m.If(self.valid & (skip != 0)):
            m.d.sync += skip.eq(skip - 1)
        with m.If(self.emits):
            m.d.sync += [kept.eq(current), kept.more.eq(current.more - 1), state.eq(_State.BODY)]
            with m.If(self.is_last):
                m.d.sync += [state.eq(_State.HEADER), is_start.eq(0), self.place.eq(current.place)]
                m.d.sync += skip.eq(Mux(current.skip == 0, 0, current.skip - 1))
        with m.If(leaves):
            m.d.sync += state.eq(_State.SKIP)
        with m.If(self.verdict.ready):
            m.d.sync += [state.eq(_State.HEADER), is_start.eq(1), skip.eq(0), self.place.eq(lead_words(self.width))]
        is_cut = self.emits & self.is_first & (here.is_past | here.has_rest)
        m.d.sync += self.is_malformed.eq(is_cut | is_dropped & self.verdict.payload)
        return m
