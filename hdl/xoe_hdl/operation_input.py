"""Where operations wait to be gathered, with what can be told about them beforehand."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Shape, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.config import check_choice

from .crc import CRC_WIDTHS, WORD
from .layouts import ROUTE, operation_beat

DEPTH = 4  # beats


def waiting_beat(width: int) -> data.StructLayout:
    """A beat of an operation; whether it is the first, has the route of the operation before, and its words of data."""
    return data.StructLayout(
        {"beat": operation_beat(width), "first": 1, "same_route": 1, "count": range(width // WORD + 1)}
    )


class OperationInput(wiring.Component):
    """A short queue of beats of operations: one clock from in to out, ``i.ready`` from registers alone.

    Args:
        width: bits of data in a beat.

    Raises:
        ConfigError: another width than the CRC has.
    """

    def __init__(self, width: int) -> None:
        check_choice("width", width, CRC_WIDTHS)
        self.width = width
        super().__init__(
            {"i": In(stream.Signature(operation_beat(width))), "o": Out(stream.Signature(waiting_beat(width)))}
        )

    def elaborate(self, platform: object) -> Module:
        """A queue, and the route of what entered it last."""
        m = Module()
        layout = waiting_beat(self.width)
        m.submodules.queue = queue = SyncFIFO(width=Shape.cast(layout).width, depth=DEPTH)
        entering, route, is_first = Signal(layout), Signal(ROUTE), Signal(init=1)
        words = self.i.payload.data.operation.words
        per_beat = self.width // WORD
        rest = (words - 1)[: exact_log2(per_beat)] + 1  # words of the last beat, if the operation has any
        m.d.comb += [
            entering.beat.eq(self.i.payload),
            entering.first.eq(is_first),
            entering.same_route.eq(self.i.payload.data.route == route),
            entering.count.eq(Mux(self.i.payload.last, Mux(words == 0, 0, rest), per_beat)),
            queue.w_data.eq(entering),
            queue.w_en.eq(self.i.valid),
            self.i.ready.eq(queue.w_rdy),
            self.o.payload.eq(queue.r_data),
            self.o.valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o.ready),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [route.eq(self.i.payload.data.route), is_first.eq(self.i.payload.last)]
        return m
