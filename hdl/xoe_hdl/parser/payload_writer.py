"""Picks the operations of a frame out of its aligned beats, and says what else is in it."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from xoe.cyclic import CREDIT_BITS, EPOCH_BITS, SEQ_BITS
from xoe.wire import FrameHeader

from ..crc import WORD
from ..layouts import MAC_BITS, NODE_BITS, QP_BITS
from ..wire import byte_swap, read_fields
from .aligner import aligned_beat, lead_words
from .word_window import MANY, payload_beat

BODY_WORDS = 3  # of an acknowledgement: two, and the further SACK bits
WORDS_BITS = 11

FOUND = data.StructLayout(
    {
        "mac": MAC_BITS,
        "kind": 4,
        "traffic_class": 3,
        "ack_valid": 1,
        "credit_valid": 1,
        "nack": 1,
        "src_node": NODE_BITS,
        "dst_qp": QP_BITS,
        "src_qp": QP_BITS,
        "epoch": EPOCH_BITS,
        "src_epoch": EPOCH_BITS,
        "seq": SEQ_BITS,
        "ack": SEQ_BITS,
        "credit_class": 3,
        "credit": CREDIT_BITS,
        "words": WORDS_BITS,
        "body": BODY_WORDS * WORD,
    }
)
"""Of a frame: its source address, fields of its header, and the first words behind it, as they lie on the bus."""


class PayloadWriter(wiring.Component):
    """Combinational, one beat in every clock.

    Nothing is written of a frame that does not fit the largest MTU, so that a buffer made for that always has room.
    ``has_written`` says, at a frame's last beat, whether anything was; one clock later ``found`` tells of the frame.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(
            {
                "i_valid": In(1),
                "i": In(aligned_beat(width)),
                "header": In(8 * FrameHeader.SIZE),
                "fits": In(1),
                "source": In(MAC_BITS),
                "write_valid": Out(1),
                "write": Out(payload_beat(width)),
                "has_written": Out(1),
                "found": Out(FOUND),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Gate the beats."""
        m = Module()
        fields = read_fields(FrameHeader, self.header)
        wrote_before = Signal()
        with m.If(self.i_valid):
            m.d.sync += wrote_before.eq(self.has_written & ~self.i.last)
        m.d.comb += [
            self.write_valid.eq(self.i_valid & self.i.mask.any() & self.fits),
            self.write.data.eq(self.i.data),
            self.write.remaining.eq(Mux(self.i.remaining > MANY, MANY, self.i.remaining)),
            self.write.last.eq(self.i.last | (self.i.remaining <= self.width // WORD)),
            self.has_written.eq(self.write_valid | wrote_before),
        ]
        m.d.sync += [
            self.found.mac.eq(byte_swap(self.source)),
            *(self.found[name].eq(value) for name, value in fields.items() if name in FOUND.members),
            self.found.words.eq(fields["length"][3:]),
        ]
        self._keep_body(m)
        return m

    def _keep_body(self, m: Module) -> None:
        """Count rows, and keep the words of the first ones."""
        per_row, lead = self.width // WORD, lead_words(self.width)
        rows = (lead + BODY_WORDS - 1) // per_row + 1
        row = Signal(range(rows + 1))
        body = [self.found.body.word_select(word, WORD) for word in range(BODY_WORDS)]
        with m.If(self.write_valid):
            m.d.sync += row.eq(row + (row != rows))
            for word in range(BODY_WORDS):
                number, place = divmod(lead + word, per_row)
                with m.If(row == number):
                    m.d.sync += body[word].eq(self.write.data.word_select(place, WORD))
        with m.If(self.i_valid & self.i.last):
            m.d.sync += row.eq(0)
