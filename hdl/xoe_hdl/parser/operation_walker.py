"""Walks from operation to operation over the words of a frame."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..crc import WORD
from .aligner import lead_words
from .word_window import place_bits, step


class OperationWalker(wiring.Component):
    """Drives a ``WordWindow``, and says what to make of it in each clock.

    ``emits``: header (only if ``is_first``) and data of an operation begin at word ``place`` of the window, the data
    as if the header were always there. It does so in every clock in which the frame's verdict is there and good, and
    ``can_emit`` is high; but the window moves by one beat a clock. ``is_past``: the operation runs past the end of the
    frame. The verdict is taken with the frame's last beat. ``is_malformed`` is high for a clock for each frame that
    ends in the middle of an operation.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._step = step(width)
        super().__init__(
            {
                "valid": In(1),
                "last": In(1),
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
        """What hangs on the choice of a step is late: the least possible follows it."""
        m = Module()
        # An operation begins in the window, unless it is the body of one, or beats that are to be passed over.
        is_body, passes_on = Signal(), Signal()
        skip = Signal(2)  # beats to pass over; 0: all up to the frame's end
        at = Signal(self.width // WORD, init=1 << lead_words(self.width))  # place, as one bit a word
        here, kept, current = Signal(self._step), Signal(self._step), Signal(self._step)
        may_go, passes, goes = Signal(), Signal(), Signal()
        chosen = (Mux(bit, entry, 0) for bit, entry in zip(at, self.steps, strict=True))
        m.d.comb += [
            here.eq(reduce(or_, chosen)),
            self.is_first.eq(~is_body),
            current.eq(Mux(is_body, kept, here)),
            may_go.eq(self.verdict.valid & self.verdict.payload & self.can_emit),
            passes.eq(passes_on | self.verdict.valid & ~self.verdict.payload),
            goes.eq(self.valid & may_go & ~passes_on),
            self.emits.eq(goes & (is_body | ~here.is_half)),
            self.is_last.eq(current.is_last),
            self.is_past.eq(here.is_past),
            self.advance.eq(passes | may_go & current.moves),
            self.verdict.ready.eq(self.valid & self.last & (passes | may_go & current.ends)),
        ]
        m.d.sync += self.is_malformed.eq(goes & ~is_body & here.is_cut)
        self._keep(m, goes, is_body, kept, current)
        with m.If(self.valid & passes_on):
            m.d.sync += skip.eq(Mux(skip == 0, 0, skip - 1))
            with m.If(skip == 1):
                m.d.sync += passes_on.eq(0)
        with m.If(goes):
            m.d.sync += is_body.eq(~self.is_last)
            with m.If(self.is_last):
                m.d.sync += [self.place.eq(current.place), at.eq(1 << current.place)]
                m.d.sync += [passes_on.eq(current.passes_on), skip.eq(current.skip)]
        with m.If(self.verdict.ready):
            m.d.sync += [passes_on.eq(0), self.place.eq(self.place.init), at.eq(at.init)]
        return m

    def _keep(self, m: Module, goes: Signal, is_body: Signal, kept: data.View, current: data.View) -> None:
        """The step of the operation under way, as it is for the beat to come; ``more`` counts that one too."""
        is_last = Mux(is_body, kept.more == 2, current.is_next_last)
        with m.If(goes):
            m.d.sync += [
                kept.eq(current),
                kept.more.eq(Mux(is_body, kept.more - 1, current.more)),
                kept.is_last.eq(is_last),
                kept.ends.eq(is_last & current.is_final),
                kept.moves.eq(~(is_last & current.stays)),
            ]
