"""Where operations wait to be gathered, with what can be told about them beforehand."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.config import check_choice

from .crc import CRC_WIDTHS, WORD
from .layouts import OPERATION, ROUTE, operation_beat

DEPTH = 4  # beats


def hints(width: int) -> data.StructLayout:
    """What decides about a beat.

    Whether it is the last of its operation, its ``words`` of data and those in this beat (``count``), and whether it
    has the route of the beat before.
    """
    words = OPERATION["words"].shape
    return data.StructLayout({"last": 1, "words": words, "count": range(width // WORD + 1), "same_route": 1})


def waiting_beat(width: int) -> data.StructLayout:
    """A beat of an operation and its hints."""
    return data.StructLayout({"hints": hints(width), "body": operation_beat(width)["data"].shape})


class OperationInput(wiring.Component):
    """A short queue of beats of operations: one clock from in to out.

    Handshakes and hints come from registers alone; the bodies are in a memory.

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
        """A memory, and beside it a shift register for what decides."""
        m = Module()
        body = self.i.payload.data
        m.submodules.bodies = bodies = memory.Memory(shape=body.shape(), depth=DEPTH, init=[])
        write, read = bodies.write_port(), bodies.read_port(domain="comb")
        enters, leaves, level, later_level = Signal(), Signal(), Signal(range(DEPTH + 1)), Signal(range(DEPTH + 1))
        is_ready = Signal(init=1)
        m.d.comb += [
            self.i.ready.eq(is_ready),
            enters.eq(self.i.valid & is_ready),
            leaves.eq(self.o.valid & self.o.ready),
            later_level.eq(level + enters - leaves),
            write.data.eq(body),
            write.en.eq(enters),
            self.o.payload.body.eq(read.data),
        ]
        m.d.sync += [
            level.eq(later_level),
            self.o.valid.eq(later_level != 0),
            is_ready.eq(later_level != DEPTH),
            write.addr.eq(write.addr + enters),
            read.addr.eq(read.addr + leaves),
        ]
        store = [Signal(hints(self.width), name=f"hints_{at}") for at in range(DEPTH)]
        entering = self._hints(m, enters)
        for at, hint in enumerate(store):
            with m.If(enters & (level - leaves == at)):
                m.d.sync += hint.eq(entering)
            if at + 1 < DEPTH:
                with m.Elif(leaves):
                    m.d.sync += hint.eq(store[at + 1])
        m.d.comb += self.o.payload.hints.eq(store[0])
        return m

    def _hints(self, m: Module, enters: Value) -> data.View:
        """The hints of the beat at the input."""
        beat, found, route = self.i.payload, Signal(hints(self.width)), Signal(ROUTE)
        words, per_beat = beat.data.operation.words, self.width // WORD
        rest = (words - 1)[: exact_log2(per_beat)] + 1  # words of the last beat, if the operation has any
        m.d.comb += [
            found.last.eq(beat.last),
            found.words.eq(words),
            found.count.eq(Mux(beat.last, Mux(words == 0, 0, rest), per_beat)),
            found.same_route.eq(beat.data.route == route),
        ]
        with m.If(enters):
            m.d.sync += route.eq(beat.data.route)
        return found
