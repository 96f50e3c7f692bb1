"""Picks the operations of a frame out of its aligned beats, and says who sent them."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from xoe.wire import FrameHeader

from ..crc import WORD
from ..layouts import MAC_BITS, ROUTE
from ..wire import byte_swap, read_fields
from .aligner import aligned_beat
from .word_window import MANY, payload_beat


class PayloadWriter(wiring.Component):
    """Combinational, one beat in every clock.

    Nothing is written of a frame that does not fit the largest MTU, so that a buffer made for that always has room.
    ``route`` goes with a frame's first beat that is written. ``has_written`` says, at a frame's last beat, whether
    anything was.
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
                "route_valid": Out(1),
                "route": Out(ROUTE),
                "has_written": Out(1),
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
            self.route_valid.eq(self.write_valid & ~wrote_before),
            self.route.mac.eq(byte_swap(self.source)),
            self.route.node.eq(fields["src_node"]),
            self.route.remote_qp.eq(fields["src_qp"]),
            self.route.local_qp.eq(fields["dst_qp"]),
            self.route.traffic_class.eq(fields["traffic_class"]),
            self.route.epoch.eq(fields["epoch"]),
        ]
        return m
