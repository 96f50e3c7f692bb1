"""Takes the operations of good frames apart."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.wire import RESPONSE_BIT, OperationHeader, Status

from ..crc import WORD
from ..layouts import OPERATION, ROUTE, operation_beat
from ..queues import SkidBuffer
from ..wire import read_fields
from .operation_walker import OperationWalker
from .word_window import HEADER_WORDS, WordWindow, payload_beat


class Unpacker(wiring.Component):
    """From a frame's packed words to operations: a beat a clock, so up to an operation a clock.

    ``beats`` may come long before their frame's verdict; when that is there, the last of them must have been offered a
    clock ago, or be on its way without a gap, as a ``FrameBuffer`` has it. Nothing is done with them until then, and
    those of a bad frame are thrown away, one a clock. There is one ``routes`` entry for each verdict.

    The first beat of ``operations`` is offered one clock after the verdict, and no clock is lost between frames. An
    operation that runs past the end is handed on without data and with status MALFORMED; ``is_malformed`` is high for
    a clock for each frame that ends in the middle of an operation.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(
            {
                "beats": In(stream.Signature(payload_beat(width))),
                "verdicts": In(stream.Signature(1)),
                "routes": In(stream.Signature(ROUTE)),
                "operations": Out(stream.Signature(operation_beat(width))),
                "is_malformed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Walk from operation to operation; shift each one's data into place."""
        m = Module()
        m.submodules.window = window = WordWindow(self.width)
        m.submodules.output = output = SkidBuffer(operation_beat(self.width))
        connect(m, flipped(self.beats), window.beats)
        connect(m, output.o, flipped(self.operations))
        m.submodules.walker = walker = OperationWalker(self.width)
        m.d.comb += [
            walker.valid.eq(window.valid),
            walker.last.eq(window.last),
            walker.steps.eq(window.steps),
            window.advance.eq(walker.advance),
            walker.verdict.valid.eq(self.verdicts.valid),
            walker.verdict.payload.eq(self.verdicts.payload),
            self.verdicts.ready.eq(walker.verdict.ready),
            self.routes.ready.eq(walker.verdict.ready),
            walker.can_emit.eq(output.i.ready),
            output.i.valid.eq(walker.emits),
            output.i.payload.last.eq(walker.is_last),
            output.i.payload.data.route.eq(self.routes.payload),
            self.is_malformed.eq(walker.is_malformed),
        ]
        words = self._shift(window.words, walker.place)
        header, body = words[: HEADER_WORDS * WORD], words[HEADER_WORDS * WORD :]
        operation, kept = Signal(OPERATION), Signal(OPERATION)
        self._read_header(m, operation, header, walker.is_past)
        with m.If(walker.is_first):  # the last time is the one that counts
            m.d.sync += kept.eq(operation)
        m.d.comb += output.i.payload.data.data.eq(body)
        m.d.comb += output.i.payload.data.operation.eq(Mux(walker.is_first, operation, kept))
        return m

    def _shift(self, words: Value, place: Value) -> Value:
        """The header and a beat of data, from word ``place`` on."""
        per_beat = self.width // WORD
        wanted = HEADER_WORDS + per_beat
        for bit in reversed(range((per_beat - 1).bit_length())):
            size = (wanted + (1 << bit) - 1) * WORD  # bits that later, smaller shifts can reach
            words = Mux(place[bit], words[WORD << bit :], words)[:size]
        return words[: wanted * WORD]

    def _read_header(self, m: Module, operation: data.View, raw: Value, is_past: Value) -> None:
        """The header's fields: only a response has a status, and what runs past the end has no data."""
        fields = read_fields(OperationHeader, raw)
        m.d.comb += [operation[name].eq(value) for name, value in fields.items()]
        with m.If((fields["opcode"] & RESPONSE_BIT) == 0):
            m.d.comb += operation.status.eq(Status.DONE)
        with m.If(is_past):
            m.d.comb += [operation.status.eq(Status.MALFORMED), operation.words.eq(0)]
