"""Lays operations end to end, as they will lie in a frame."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.config import check_choice
from xoe.wire import OperationHeader

from ..crc import CRC_WIDTHS, LEAD_WORDS, WORD, crc_beat

HEADER_WORDS = 8 * OperationHeader.SIZE // WORD
MIN_STORED_LEAD = 2 * LEAD_WORDS  # words of the narrowest row that begins with the frame header's place


def lead_words(words: int) -> int:
    """Words left free for the frame header at the front of a frame's first row of ``words`` words.

    Rows are in canonical alignment. Where the header fills whole rows, these are not stored at all.
    """
    return LEAD_WORDS if words >= MIN_STORED_LEAD else 0


def placement(width: int) -> data.StructLayout:
    """A beat of an operation and where it goes.

    ``header`` (used with ``first``) and ``data`` as they lie on the bus. Words are counted from the row being filled:
    the header begins at ``start``, the data at ``middle``, and ``end`` is the first word after it.
    """
    words = width // WORD
    return data.StructLayout(
        {
            "header": HEADER_WORDS * WORD,
            "data": width,
            "start": range(max(2, words)),
            "middle": range(words + HEADER_WORDS),
            "end": range(2 * words + HEADER_WORDS),
        }
    )


class Packer(wiring.Component):
    """Turns beats of operations, up to ``HEADER_WORDS`` wider than a row, into full rows.

    Free-running: whoever places beats keeps the pace. In each clock, one placement may come, and then (in the same
    clock) a ``close``, which ends the frame after it at word ``at`` of a row; ``placing`` needs that no more than one
    whole row is still to come out then, see ``Gatherer``. Rows come out one a clock, ``latency`` clocks after the beat
    that fills them, and once begun without a gap while whole rows are there. The row that holds a frame's end is the
    last and always has the place of the CRC: it may be empty of operations. Words after the end are 0.

    Args:
        width: bits of a row: 64, 128, 256, 512 or 1024.

    Raises:
        ConfigError: another width.
    """

    latency = 2

    def __init__(self, width: int) -> None:
        check_choice("width", width, CRC_WIDTHS)
        self.width = width
        self._words = width // WORD
        super().__init__(
            {
                "placing": In(1),
                "place": In(placement(width)),
                "close": In(1),
                "at": In(range(max(2, self._words))),
                "row_valid": Out(1),
                "row": Out(crc_beat(width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two stages: turn the words to their columns, then put them in their rows."""
        m = Module()
        words, place = self._words, self.place
        slots = range(2 * words + 1)  # the last row that a beat may reach has one word

        turned = Signal(self.width, reset_less=True)
        heads = Signal(data.ArrayLayout(WORD, HEADER_WORDS), reset_less=True)
        m.d.sync += [turned.eq(self._turn(place.data, place.middle)), heads.eq(self._turn_header(place))]
        takes_head, takes_data = Signal(len(slots)), Signal(len(slots))
        for slot in slots:
            m.d.sync += takes_head[slot].eq(self.placing & (slot >= place.start) & (slot < place.middle))
            m.d.sync += takes_data[slot].eq(self.placing & (slot >= place.middle) & (slot < place.end))
        filled, closes, zeros = Signal(range(4)), Signal(), Signal(range(words + 1))
        m.d.sync += [
            filled.eq(Mux(self.placing, place.end >> exact_log2(words), 0)),
            closes.eq(self.close),
            zeros.eq(words - self.at),
        ]

        store = [Signal(WORD, name=f"word_{slot}") for slot in slots]
        moves = self.row_valid
        for slot in slots:
            above = store[slot + words] if slot + words in slots else Const(0, WORD)
            with m.If(takes_head[slot]):
                m.d.sync += store[slot].eq(heads[slot % HEADER_WORDS])
            with m.Elif(takes_data[slot]):
                m.d.sync += store[slot].eq(turned.word_select(slot % words, WORD))
            with m.Elif(moves):
                m.d.sync += store[slot].eq(above)
        self._count_rows(m, filled, closes, zeros)
        m.d.comb += self.row.data.eq(Cat(store[:words]))
        return m

    def _turn(self, value: Value, by: Value) -> Value:
        """``value`` turned towards its end by ``by`` words."""
        words = self._words
        if words == 1:
            return value
        parts = [value.word_select(at, WORD) for at in range(words)]
        return Cat(
            Array([parts[(at - n) % words] for n in range(words)])[by[: exact_log2(words)]] for at in range(words)
        )

    def _turn_header(self, place: data.View) -> Value:
        """The header's words, the one that goes to an even slot first."""
        low, high = place.header[:WORD], place.header[WORD:]
        return Mux(place.start[0], Cat(high, low), Cat(low, high))

    def _count_rows(self, m: Module, filled: Value, closes: Value, zeros: Value) -> None:
        """Follow how many whole rows there are, and which of them ends a frame."""
        whole = Signal(range(5))
        left, lasts = Signal.like(whole), Signal(5)
        m.d.comb += left.eq(whole - self.row_valid + filled)
        m.d.sync += [
            whole.eq(left + closes),
            self.row_valid.eq(left + closes != 0),
            lasts.eq(Mux(self.row_valid, lasts >> 1, lasts) | Mux(closes, 1 << left, 0)),
        ]
        row_zeros, is_first = Signal.like(zeros), Signal(init=1)
        with m.If(closes):
            m.d.sync += row_zeros.eq(zeros)
        with m.If(self.row_valid):
            m.d.sync += is_first.eq(lasts[0])
        m.d.comb += [self.row.zeros.eq(row_zeros), self.row.first.eq(is_first), self.row.last.eq(lasts[0])]
