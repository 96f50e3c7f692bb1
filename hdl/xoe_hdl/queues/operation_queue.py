"""A queue of whole operations: what comes in slowly goes out without a gap, and blocks nobody meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from xoe.config import check_range
from xoe.wire import GRID, OperationHeader

from ..layouts import operation_beat
from .queue import DEPTH_MAX, Queue

OPERATIONS_MIN = 4  # fewer would leave bubbles
WORDS_MAX = next((1 << field.width) - 1 for field in OperationHeader.layout() if field.name == "words")


def beats_max(width: int) -> int:
    """Beats of the largest operation that a header can announce, well-formed or not."""
    return -(-WORDS_MAX * GRID * 8 // width)


class OperationQueue(wiring.Component):
    """Holds up to ``operations`` operations with ``beats`` beats together, and offers each only when it is whole.

    Three clocks from an operation's last beat in to its first beat out; one beat a clock at both sides, without a
    bubble. ``i.ready`` falls when either bound is reached, whatever the other side does.

    An operation's header is kept once, as it stands on its last beat, and its data apart from it.

    Args:
        width: of the data, in bits.
        operations: 4..131072.
        beats: at least those of the largest operation that a header can announce, which else would never be whole.
        layout: gives the layout of a beat; ``data`` has, besides its own ``data``, what makes up the header.

    Raises:
        ConfigError: a depth out of bounds.
    """

    def __init__(
        self,
        width: int,
        operations: int,
        beats: int,
        layout: Callable[[int], data.StructLayout] = operation_beat,
    ) -> None:
        check_range("operations", operations, OPERATIONS_MIN, DEPTH_MAX)
        check_range("beats", beats, beats_max(width), DEPTH_MAX)
        self.width = width
        self.operations = operations
        self.beats = beats
        beat = layout(width)
        super().__init__({"i": In(stream.Signature(beat)), "o": Out(stream.Signature(beat))})

    def elaborate(self, platform: object) -> Module:
        """Two queues; a header enters with its operation's last beat, and so tells that all the others are there."""
        m = Module()
        i, o = self.i.payload, self.o.payload
        fields = {name: shape for name, shape in i.data.shape().members.items() if name != "data"}
        m.submodules.headers = headers = Queue(data.StructLayout(fields), self.operations)
        m.submodules.beats = beats = Queue(data.StructLayout({"data": self.width, "last": 1}), self.beats)
        m.d.comb += [
            self.i.ready.eq(headers.i.ready & beats.i.ready),
            headers.i.valid.eq(self.i.valid & beats.i.ready & i.last),
            beats.i.valid.eq(self.i.valid & headers.i.ready),
            beats.i.payload.data.eq(i.data.data),
            beats.i.payload.last.eq(i.last),
            self.o.valid.eq(headers.o.valid & beats.o.valid),
            beats.o.ready.eq(headers.o.valid & self.o.ready),
            headers.o.ready.eq(beats.o.valid & self.o.ready & o.last),
            o.data.data.eq(beats.o.payload.data),
            o.last.eq(beats.o.payload.last),
        ]
        m.d.comb += [headers.i.payload[name].eq(i.data[name]) for name in fields]
        m.d.comb += [o.data[name].eq(headers.o.payload[name]) for name in fields]
        return m
