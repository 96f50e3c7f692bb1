"""A window over the words of a frame's operations, and what an operation that begins in it means."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from xoe.config import DATA_WIDTHS, check_choice
from xoe.wire import OperationHeader

from .aligner import REMAINING_BITS, lead_words
from .crc import WORD

HEADER_WORDS = OperationHeader.SIZE * 8 // WORD


def payload_beat(width: int) -> data.StructLayout:
    """A beat of a frame's operations.

    ``remaining`` words, from the beat's first on, are up to the end of the operations; ``last``: no more follow.
    """
    return data.StructLayout({"data": width, "remaining": REMAINING_BITS, "last": 1})


def place_bits(width: int) -> int:
    """Bits that number the words of a beat; one where there is but one word."""
    return max(1, (width // WORD - 1).bit_length())


def step(width: int) -> data.StructLayout:
    """What it means that an operation begins at a certain word.

    Its first beat of data is followed by ``more``. Once the last is out, the next operation begins at word ``place``,
    ``skip`` beats on. ``is_past``: it runs past the end of the operations; ``is_final``: no other follows it;
    ``has_rest``: half a header does.
    """
    return data.StructLayout(
        {"more": 8, "skip": 2, "place": place_bits(width), "is_past": 1, "is_final": 1, "has_rest": 1}
    )


class WordWindow(wiring.Component):
    """Two beats and the first word of a third, if they are there; ``advance`` moves on by one beat.

    ``is_whole``: the window holds all that an operation beginning in the first beat may need for a beat of data.
    ``steps`` has an entry for each word of the first beat: an operation that began there. ``is_half``: if the first
    beat is a frame's first, half a header is all that the frame has. ``advance`` without ``valid`` does nothing.
    """

    def __init__(self, width: int) -> None:
        check_choice("width", width, DATA_WIDTHS)
        self.width = width
        words = width // WORD
        super().__init__(
            {
                "beats": In(stream.Signature(payload_beat(width))),
                "advance": In(1),
                "valid": Out(1),
                "last": Out(1),
                "is_whole": Out(1),
                "is_half": Out(1),
                "words": Out((2 * words + 1) * WORD),
                "steps": Out(data.ArrayLayout(step(width), words)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two registers; the third beat waits at the input."""
        m = Module()
        first, second = Signal(self.width), Signal(payload_beat(self.width))
        second_valid, third = Signal(), self.beats
        first_moves, second_moves = Signal(), Signal()
        m.d.comb += [
            first_moves.eq(self.advance | ~self.valid),
            second_moves.eq(first_moves | ~second_valid),
            self.beats.ready.eq(second_moves),
            self.words.eq(Cat(first, second.data, third.payload.data[:WORD])),
            self.is_whole.eq(self.valid & (self.last | second_valid & (second.last | third.valid))),
        ]
        steps = [self._step(m, second, word) for word in range(self.width // WORD)]
        with m.If(first_moves):
            m.d.sync += [self.valid.eq(second_valid), self.last.eq(second.last), first.eq(second.data)]
            m.d.sync += self.is_half.eq(second.remaining == lead_words(self.width) + HEADER_WORDS - 1)
            m.d.sync += [entry.eq(found) for entry, found in zip(self.steps, steps, strict=True)]
        with m.If(second_moves):
            m.d.sync += [second.eq(third.payload), second_valid.eq(third.valid)]
        return m

    def _step(self, m: Module, beat: data.View, word: int) -> Value:
        """What an operation at ``word`` of ``beat`` means."""
        per_beat = self.width // WORD
        size = Signal(8, name=f"size_{word}")  # words of data
        m.d.comb += size.eq(beat.data.word_select(word, WORD)[8:16])
        left = Signal(signed(REMAINING_BITS + 2), name=f"left_{word}")  # words after it
        m.d.comb += left.eq(beat.remaining - (word + HEADER_WORDS) - size)
        before_last = Mux(size == 0, 0, size - 1)[:8]
        in_last = Mux(size == 0, 0, before_last % per_beat + 1)
        end = Signal(range(2 * per_beat + HEADER_WORDS), name=f"end_{word}")
        m.d.comb += end.eq(in_last + (word + HEADER_WORDS))
        is_past = left < 0
        result = Signal(step(self.width), name=f"step_{word}")
        m.d.comb += [
            result.more.eq(Mux(is_past, 0, before_last // per_beat)),
            result.skip.eq(end // per_beat),
            result.place.eq(end % per_beat),
            result.is_past.eq(is_past),
            result.is_final.eq(left < HEADER_WORDS),
            result.has_rest.eq(left == HEADER_WORDS - 1),
        ]
        return result
