"""Where operations wait to be gathered, with what can be told about them beforehand."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.config import check_choice

from .crc import CRC_WIDTHS, WORD
from .layouts import ROUTE, operation_beat
from .packer import HEADER_WORDS

DEPTH = 4  # beats
WORDS_BITS = 11  # of the number of words of operations in a frame


def hints(width: int) -> data.StructLayout:
    """What decides about a beat.

    Whether it is the last of its operation, how many words of data it has (``count``), whether it ``goes_on`` with the
    frame of the beat before, and, used with the first of its operation, the ``words`` of its frame up to its end.
    """
    return data.StructLayout({"last": 1, "count": range(width // WORD + 1), "goes_on": 1, "words": WORDS_BITS})


def waiting_beat(width: int) -> data.StructLayout:
    """A beat of an operation and its hints."""
    return data.StructLayout({"hints": hints(width), "body": operation_beat(width)["data"].shape})


class OperationInput(wiring.Component):
    """A short queue of beats of operations: one clock from in to out.

    Handshakes and hints come from registers alone; the bodies are in a memory. The hints are found on the way in, as
    it depends on an input's operations alone which of them share a frame: those that follow each other with one route,
    if none has more than ``room`` words of data, less the words of those before it. Only when a frame was closed
    because nothing followed (``is_over``, while ``o`` is not valid) the next operation begins one for that reason.

    Args:
        width: bits of data in a beat.

    Raises:
        ConfigError: another width than the CRC has.
    """

    def __init__(self, width: int) -> None:
        check_choice("width", width, CRC_WIDTHS)
        self.width = width
        super().__init__(
            {
                "i": In(stream.Signature(operation_beat(width))),
                "o": Out(stream.Signature(waiting_beat(width))),
                "room": In(WORDS_BITS),
                "is_over": In(1),
            }
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
        beat, found = self.i.payload, Signal(hints(self.width))
        words, per_beat = beat.data.operation.words, self.width // WORD
        rest = (words - 1)[: exact_log2(per_beat)] + 1  # words of the last beat, if the operation has any
        m.d.comb += [
            found.last.eq(beat.last),
            found.count.eq(Mux(beat.last, Mux(words == 0, 0, rest), per_beat)),
        ]
        self._assign(m, enters, found)
        return found

    def _assign(self, m: Module, enters: Value, found: data.View) -> None:
        """Find whether the beat at the input goes on with a frame, and keep count of what that has."""
        beat, route = self.i.payload, Signal(ROUTE)
        inside, begins = Signal(), Signal(init=1)
        room, words = Signal(signed(WORDS_BITS + 1)), Signal(WORDS_BITS)
        joins, size = Signal(), beat.data.operation.words + HEADER_WORDS
        fits = beat.data.operation.words <= room
        m.d.comb += [
            joins.eq((beat.data.route == route) & fits & ~begins & ~self.is_over),
            found.goes_on.eq(inside | joins),
            found.words.eq(Mux(joins, words + size, size)),
        ]
        with m.If(enters):
            m.d.sync += [begins.eq(0), inside.eq(~beat.last), route.eq(beat.data.route)]
            with m.If(~inside):
                m.d.sync += [room.eq(Mux(joins, room - size, self.room - size)), words.eq(found.words)]
        with m.Elif(self.is_over):
            m.d.sync += begins.eq(1)
