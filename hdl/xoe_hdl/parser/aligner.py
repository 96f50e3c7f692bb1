"""Brings frames of ours into canonical alignment, whatever their VLAN tags, and finds the operations in them."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from xoe.config import DATA_WIDTHS, check_choice, check_range
from xoe.frame import MAX_TAGS
from xoe.wire import ETHERNET_HEADER, GRID, MTU_MAX, VLAN_TAG, FrameHeader

from ..wire import read_fields
from .classifier import FrameClass, beat_index, classified_beat

CANONICAL_HEADER = 32  # bytes in front of the operations, a whole number of words
REMOVED = ETHERNET_HEADER + FrameHeader.SIZE - CANONICAL_HEADER  # bytes taken off the front of an untagged frame
REMAINING_BITS = 12  # words of operations that a frame header can announce, and those in front of them


def lead_words(width: int) -> int:
    """Words in front of the operations in the first beat that has some."""
    return CANONICAL_HEADER % (width // 8) // GRID


def aligned_beat(width: int) -> data.StructLayout:
    """A beat in canonical alignment, marked as the header's length says.

    ``mask`` has a bit for each word that belongs to the operations. ``is_payload``: the beat comes after the header's
    beats; ``remaining`` is then the number of words from its first to the end of the operations.
    """
    words = width // (8 * GRID)
    return data.StructLayout(
        {"data": width, "mask": words, "remaining": REMAINING_BITS, "is_payload": 1, "first": 1, "last": 1}
    )


def frame_end(width: int) -> data.StructLayout:
    """What is known of a frame at its last beat; it has ``index`` whole beats and ``count`` bytes."""
    return data.StructLayout(
        {
            "frame_class": FrameClass,
            "tags": range(MAX_TAGS + 1),
            "bad": 1,
            "index": beat_index(width),
            "count": range(width // 8 + 1),
        }
    )


class Aligner(wiring.Component):
    """Takes 4 bytes off the front of a frame without tags, 8 with one, 12 with two: operations begin at byte 32.

    Each beat out is the rest of a beat in and the head of the next; as many come out as went in (the last may be
    empty), but for the first beat of a tagged frame at 64 bits, which is taken off whole. One clock, free-running.

    ``o_valid`` is high for frames of ours only. ``header`` holds the frame header from the clock of its last beat on,
    up to that of the frame's last; ``fits`` says, at beats behind it, that it announces no more than ``most`` bytes of
    operations. ``end_valid`` marks the last beat of every frame, ours or not.

    What arrives in a gap inside a frame is taken anew in every clock until the beat moves on: so only few registers
    hang on whether it does, which is known late.
    """

    def __init__(self, width: int, most: int) -> None:
        check_choice("width", width, DATA_WIDTHS)
        check_range("most", most, 0, MTU_MAX)
        self.width = width
        self.most = most
        self._header_beats = CANONICAL_HEADER * 8 // width
        super().__init__(
            {
                "i_valid": In(1),
                "i": In(classified_beat(width)),
                "o_valid": Out(1),
                "o": Out(aligned_beat(width)),
                "header": Out(8 * FrameHeader.SIZE),
                "fits": Out(1),
                "end_valid": Out(1),
                "end": Out(frame_end(width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Shift, count, register."""
        m = Module()
        i, o = self.i, self.o
        # Beats of the frame so far, up to the end of its header; at least one bit, since none is written as two.
        seen = Signal(range(max(self._header_beats, 1) + 1))
        shifted, is_left_out = self._shift(m)
        moves = self.i_valid & ~is_left_out
        m.d.sync += [
            self.o_valid.eq(moves & (i.frame_class == FrameClass.OURS)),
            o.first.eq(seen == 0 if self._header_beats else i.first),
            o.data.eq(shifted),
            o.last.eq(i.beat.last),
            self.end_valid.eq(self.i_valid & i.beat.last),
            self.end.frame_class.eq(i.frame_class),
            self.end.tags.eq(i.tags),
            self.end.bad.eq(i.beat.user),
            self.end.index.eq(i.index),
            self.end.count.eq(i.count),
        ]
        with m.If(moves):
            with m.If(i.beat.last):
                m.d.sync += seen.eq(0)
            with m.Elif(seen != self._header_beats):
                m.d.sync += seen.eq(seen + 1)
        self._mark(m, moves, seen, self._read_header(m, shifted, seen))
        return m

    def _shift(self, m: Module) -> tuple[Value, Value]:
        """The beat in alignment, and whether nothing of it is left."""
        shifted, is_left_out = Signal(self.width), Signal()
        both = Cat(self.i.beat.data, self.i.following)
        with m.Switch(self.i.tags):
            for tags in range(MAX_TAGS + 1):
                removed = REMOVED + tags * VLAN_TAG
                low = 8 * removed % self.width
                with m.Case(tags) if tags < MAX_TAGS else m.Default():
                    m.d.comb += shifted.eq(both[low : low + self.width])
                    m.d.comb += is_left_out.eq(self.i.first & (8 * removed >= self.width))
        return shifted, is_left_out

    def _read_header(self, m: Module, shifted: Value, seen: Signal) -> Value:
        """The length of the operations in words, right while the beat is here that ends the frame header."""
        space = Signal(8 * CANONICAL_HEADER)  # canonical alignment up to the operations
        m.d.comb += self.header.eq(space[8 * (CANONICAL_HEADER - FrameHeader.SIZE) :])
        if not self._header_beats:
            with m.If(self.i.first):
                m.d.sync += space.eq(shifted)
        for number in range(self._header_beats):
            with m.If(seen == number):
                m.d.sync += space.word_select(number, self.width).eq(shifted)
        # The length lies in the last word of the header, and so in this beat whatever the width.
        before = Const(0, max(0, 8 * CANONICAL_HEADER - self.width))
        end = Cat(before, shifted)[8 * (CANONICAL_HEADER - FrameHeader.SIZE) : 8 * CANONICAL_HEADER]
        length = read_fields(FrameHeader, end)["length"]
        if not self._header_beats:
            with m.If(self.i.first):
                m.d.sync += self.fits.eq(length <= self.most)
        else:  # no operation is in the header's last beat, so there is time
            m.d.sync += self.fits.eq(read_fields(FrameHeader, self.header)["length"] <= self.most)
        return length[GRID.bit_length() - 1 :]

    def _mark(self, m: Module, moves: Value, seen: Signal, length: Value) -> None:
        """Count down the words of the operations."""
        words, lead = self.width // (8 * GRID), lead_words(self.width)
        left = Signal(REMAINING_BITS)  # words of operations after the beats so far
        is_payload = seen == self._header_beats
        remaining, mask = left, Cat(left > word for word in range(words))
        if lead:  # the header is in the same beat
            first_mask = Cat((length > word - lead) & (word >= lead) for word in range(words))
            remaining, mask = Mux(self.i.first, length + lead, left), Mux(self.i.first, first_mask, mask)
        with m.If(moves):
            m.d.sync += left.eq(Mux(remaining > words, remaining - words, 0))
            if not lead:
                with m.If(~is_payload):
                    m.d.sync += left.eq(length)
        m.d.sync += [
            self.o.remaining.eq(remaining),
            self.o.mask.eq(mask & is_payload.replicate(words)),
            self.o.is_payload.eq(is_payload),
        ]
