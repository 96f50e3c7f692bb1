"""Where operations wait to be gathered, with what can be told about them beforehand."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.config import check_choice

from ..crc import CRC_WIDTHS, WORD
from ..layouts import ROUTE, operation_beat
from .packer import HEADER_WORDS

DEPTH = 4  # beats
WORDS_BITS = 11  # of the number of words of operations in a frame


def hints(width: int) -> data.StructLayout:
    """What decides about a beat.

    Whether it is the last of its operation, how many words of data it has (``count``), and whether it has the route of
    the beat before and fits in its frame, if that is still open: with both it goes on with that frame.
    """
    return data.StructLayout({"last": 1, "count": range(width // WORD + 1), "same_route": 1, "fits": 1})


def waiting_beat(width: int) -> data.StructLayout:
    """A beat of an operation and its hints."""
    return data.StructLayout({"hints": hints(width), "body": operation_beat(width)["data"].shape})


class OperationInput(wiring.Component):
    """A short queue of beats of operations: one clock from in to out.

    Handshakes and hints come from registers alone; the bodies are in a memory. Which operations share a frame depends
    on those of one input alone, so it is found on their way in, where it is on no loop: those that follow each other
    with one route, as long as the next has no more words of data than ``room`` less the words of those before it. The
    exception is a frame that is closed because nothing follows: ``is_over``, high only while ``o`` is not valid, says
    that whatever comes next begins one.

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
        beat, route, found = self.i.payload, Signal(ROUTE), Signal(hints(self.width))
        words, per_beat = beat.data.operation.words, self.width // WORD
        rest = (words - 1)[: exact_log2(per_beat)] + 1  # words of the last beat, if the operation has any
        m.d.comb += [
            found.last.eq(beat.last),
            found.count.eq(Mux(beat.last, Mux(words == 0, 0, rest), per_beat)),
            found.same_route.eq(beat.data.route == route),
            found.fits.eq(self._fits(m, enters, found.same_route)),
        ]
        with m.If(enters):
            m.d.sync += route.eq(beat.data.route)
        return found

    def _fits(self, m: Module, enters: Value, same_route: Value) -> Value:
        """Whether the beat at the input fits in the frame of the beat before, and that is still open."""
        beat, inside, begins = self.i.payload, Signal(), Signal(init=1)
        words, fits = beat.data.operation.words, Signal()

        # Whether an operation joins a frame is known late, so what is left behind it is found for both answers.
        joined, left_joined, left_alone = Signal(2), Signal(signed(WORDS_BITS + 1)), Signal(signed(WORDS_BITS + 1))
        has_joined = joined.all()
        m.d.comb += fits.eq(Mux(has_joined, words <= left_joined, words <= left_alone) & ~begins & ~self.is_over)
        with m.If(enters):
            m.d.sync += [begins.eq(0), inside.eq(~beat.last)]
            with m.If(~inside):
                size = words + HEADER_WORDS
                m.d.sync += [joined.eq(Cat(same_route, fits)), left_alone.eq(self.room - size)]
                m.d.sync += left_joined.eq(Mux(has_joined, left_joined, left_alone) - size)
        with m.Elif(self.is_over):
            m.d.sync += begins.eq(1)
        return inside | fits
