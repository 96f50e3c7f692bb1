"""A window over the words of a frame's operations, and what an operation that begins in it means."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.config import DATA_WIDTHS, check_choice
from xoe.wire import OperationHeader

from ..crc import WORD

HEADER_WORDS = OperationHeader.SIZE * 8 // WORD
MANY = 511  # words: more than an operation may have, wherever in a beat it begins
_ROOM = signed(MANY.bit_length() + 1)


def payload_beat(width: int) -> data.StructLayout:
    """A beat of a frame's operations.

    ``remaining`` words, from the beat's first on, are up to the end of the operations, where ``MANY`` stands for any
    number from there on; ``last``: no more follow.
    """
    return data.StructLayout({"data": width, "remaining": range(MANY + 1), "last": 1})


def place_bits(width: int) -> int:
    """Bits that number the words of a beat; one where there is but one word."""
    return max(1, (width // WORD - 1).bit_length())


def step(width: int) -> data.StructLayout:
    """What it means that an operation begins at a certain word.

    Its first beat of data is followed by ``more``. Once the last is out, the next operation begins at word ``place``,
    or, if ``passes_on``, there are ``skip`` beats to pass over first, where 0 stands for all that the frame has.
    ``is_past``: it runs past the end of the operations; ``is_final``: no other follows it; ``is_half``: there is but
    half a header; ``is_cut``: the frame ends in the middle of an operation, this or the next.

    What follows from that is given too, for speed. ``is_last``: no ``more`` than the first; ``is_next_last``: one more;
    ``stays``: the next operation begins in the beat where this one ends; ``ends``: nothing of the frame matters once
    the first beat is out; ``moves``: the window moves when it is.
    """
    numbers = {"more": 8, "skip": 2, "place": place_bits(width)}
    facts = ["is_past", "is_final", "is_half", "is_cut", "passes_on"]
    derived = ["is_last", "is_next_last", "stays", "ends", "moves"]
    return data.StructLayout({**numbers, **dict.fromkeys(facts + derived, 1)})


class WordWindow(wiring.Component):
    """Two beats and the first word of a third, if they are there; ``advance`` moves on by one beat.

    ``steps`` has an entry for each word of the first beat: an operation that began there. ``advance`` without ``valid``
    does nothing. ``beats.ready`` is a register: so ``advance``, which is known late, goes no further than this window.
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
                "words": Out((2 * words + 1) * WORD),
                "steps": Out(data.ArrayLayout(step(width), words)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two registers; the third beat is at the input, or in a register there when it could not go on."""
        m = Module()
        beat = payload_beat(self.width)
        first, second, third, spare = Signal(self.width), Signal(beat), Signal(beat), Signal(beat)
        second_valid, third_valid, spare_valid = Signal(), Signal(), Signal()
        first_moves, second_moves = Signal(), Signal()
        m.d.comb += [
            first_moves.eq(self.advance | ~self.valid),
            second_moves.eq(first_moves | ~second_valid),
            self.beats.ready.eq(~spare_valid),
            third.eq(Mux(spare_valid, spare, self.beats.payload)),
            third_valid.eq(spare_valid | self.beats.valid),
            self.words.eq(Cat(first, second.data, third.data[:WORD])),
        ]
        m.d.sync += spare_valid.eq(third_valid & ~second_moves)
        with m.If(~spare_valid):
            m.d.sync += spare.eq(self.beats.payload)
        # Room for data behind a header at each word of the second beat, so that a size is all that is to be taken off.
        rooms = [Signal(_ROOM, name=f"room_{word}") for word in range(self.width // WORD)]
        steps = [self._step(m, second.data, word, room) for word, room in enumerate(rooms)]
        with m.If(first_moves):
            m.d.sync += [self.valid.eq(second_valid), self.last.eq(second.last), first.eq(second.data)]
            m.d.sync += [entry.eq(found) for entry, found in zip(self.steps, steps, strict=True)]
        with m.If(second_moves):
            m.d.sync += [second.eq(third), second_valid.eq(third_valid)]
            m.d.sync += [room.eq(third.remaining - (word + HEADER_WORDS)) for word, room in enumerate(rooms)]
        return m

    def _step(self, m: Module, beat: Value, word: int, room: Signal) -> Value:
        """What an operation at ``word`` of ``beat`` means, with ``room`` for its data."""
        per_beat = self.width // WORD
        place_size = exact_log2(per_beat)
        size = Signal(8, name=f"size_{word}")  # words of data
        m.d.comb += size.eq(beat.word_select(word, WORD)[8:16])
        left = Signal(_ROOM, name=f"left_{word}")  # words after it
        m.d.comb += left.eq(room - size)
        before_last = Mux(size == 0, 0, size - 1)[:8]
        in_last = Mux(size == 0, 0, before_last[:place_size] + 1)
        end = Signal(range(2 * per_beat + HEADER_WORDS), name=f"end_{word}")
        m.d.comb += end.eq(in_last + (word + HEADER_WORDS))
        beats = end[place_size:]  # to where the next operation begins
        result = Signal(step(self.width), name=f"step_{word}")
        m.d.comb += [
            result.more.eq(before_last[place_size:]),
            result.place.eq(end[:place_size]),
            result.is_past.eq(left < 0),
            result.is_final.eq(left < HEADER_WORDS),
            result.is_half.eq(room == 1 - HEADER_WORDS),
            result.is_cut.eq(result.is_past | (left == HEADER_WORDS - 1)),
            result.is_last.eq(result.is_past | (size <= per_beat)),
            result.is_next_last.eq(result.more == 1),
            result.skip.eq(Mux(result.is_final, 0, beats - 1)),
            result.passes_on.eq(result.is_final | (beats > 1)),
            result.stays.eq(~result.is_final & (beats == 0)),
            result.ends.eq(result.is_last & result.is_final),
            result.moves.eq(~(result.is_last & result.stays)),
        ]
        return result
