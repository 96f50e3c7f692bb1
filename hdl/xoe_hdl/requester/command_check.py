"""What can be said of a command by itself: whether it is whole, supported, well-formed, aligned, and fits a frame."""

from __future__ import annotations

from collections.abc import Iterable

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import NicConfig
from xoe.wire import ATOMICS, CRC_SIZE, DATA_MAX, GRID, SUPPORTED, FrameHeader, Opcode, OperationHeader, Status

from ..layouts import ADDRESS_SPACE_BITS, ID_BITS, LENGTH_BITS, QP_BITS, STATUS_BITS, command_beat
from ..queues import Queue

WORDS_BITS = (DATA_MAX // GRID).bit_length()
BEATS_MIN = 16  # of data that wait; at least two of the largest commands fit in any case
UNDER_WAY = 2  # beats that may be on their way when a queue says that it has room
OVERHEAD = FrameHeader.SIZE + OperationHeader.SIZE + CRC_SIZE  # bytes of a frame besides an operation's data

RECORD = data.StructLayout({"id": ID_BITS, "opcode": 8, "length": LENGTH_BITS, "words": WORDS_BITS})
"""What a request's completion needs: ``length`` bytes, in ``words`` words, are the data that comes back."""

CHECKED = data.StructLayout(
    {
        "valid": 1,
        "status": STATUS_BITS,  # DONE so far, or why the command is refused
        "record": RECORD,
        "address": 64,
        "space": ADDRESS_SPACE_BITS,
        "rights": 3,  # that the page has to grant
        "length": LENGTH_BITS,
        "qp": QP_BITS,
        "words": WORDS_BITS,  # of data that the request carries
        "is_atomic": 1,
        "has_beats": 1,  # its data is in ``beats``
    }
)
"""A whole command, valid for one clock."""


_KIND = data.StructLayout(
    {
        "is_read": 1,
        "is_write": 1,
        "is_atomic": 1,
        "is_compare_swap": 1,
        "is_supported": 1,
        "has_length": 1,  # one that the opcode allows
        "last_byte": LENGTH_BITS,  # of the data, counted from 0
        "length_words": WORDS_BITS,  # that ``length`` bytes take
    }
)
"""What a command's opcode and length say."""


def _decode(opcode: Value, length: Value) -> dict[str, Value]:
    """The members of ``_KIND``."""
    is_read, is_write, is_fence, is_compare_swap = (
        opcode == kind for kind in (Opcode.READ, Opcode.WRITE, Opcode.FENCE, Opcode.COMPARE_SWAP)
    )
    is_atomic, last_byte = _is_one_of(opcode, ATOMICS), (length - 1)[:LENGTH_BITS]
    return {
        "is_read": is_read,
        "is_write": is_write,
        "is_atomic": is_atomic,
        "is_compare_swap": is_compare_swap,
        "is_supported": _is_one_of(opcode, SUPPORTED),
        "has_length": (is_read | is_write) & (length != 0) & (length <= DATA_MAX)
        | is_atomic & ((length == 4) | (length == 8))
        | is_fence & (length == 0),
        "last_byte": last_byte,
        "length_words": (last_byte >> 3) + 1,
    }


class CommandCheck(wiring.Component):
    """Takes commands apart, each when its last beat is there.

    Every command comes out of ``checked`` in the clock after its last beat was taken. Its data comes out of ``beats``
    four clocks after it was taken or later, filled with zeros up to the grid, unless the command's fields alone refuse
    it. A beat is taken every clock while there is ``room`` for what is checked and in the queue of beats.
    ``xoe.requester`` has the rules and their order.
    """

    def __init__(self, config: NicConfig) -> None:
        self.config = config
        self.bytes = config.data_width // 8
        super().__init__(
            {
                "commands": In(stream.Signature(command_beat(config.data_width))),
                "mtu": In(14),
                "room": In(1),
                "checked": Out(CHECKED),
                "beats": Out(stream.Signature(data.StructLayout({"data": config.data_width, "last": 1}))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Take a beat, and judge it in the next clock."""
        m = Module()
        depth = max(BEATS_MIN, 2 * DATA_MAX // self.bytes)
        m.submodules.beats = beats = Queue(self.beats.payload.shape(), depth, UNDER_WAY)
        connect(m, beats.o, flipped(self.beats))
        m.d.comb += self.commands.ready.eq(self.room & beats.room)

        command, kind, valid, last = self._take(m)
        has_data, is_well_formed, is_sized = kind.is_write | kind.is_atomic, Signal(), Signal()
        m.d.comb += is_well_formed.eq(kind.has_length & (command.qp < self.config.queue_pairs))
        is_kept = self._count(m, kind, valid, last, is_sized)
        m.d.comb += [
            beats.i.valid.eq(valid & has_data & is_well_formed & is_kept),
            beats.i.payload.data.eq(self._padded(kind, command.data, last)),
            beats.i.payload.last.eq(last),
            self.checked.valid.eq(valid & last),
            self.checked.has_beats.eq(has_data & is_well_formed),
        ]
        self._describe(m, kind, command)
        self._judge(m, kind, command, is_well_formed & is_sized)
        return m

    def _take(self, m: Module) -> tuple[data.View, data.View, Signal, Signal]:
        """Registers: the command, its data those of the beat taken in the clock before; whether one was; its last."""
        beat = self.commands.payload
        command, kind = Signal(beat.data.shape()), Signal(_KIND)
        valid, last, is_first = Signal(), Signal(), Signal(init=1)
        is_taken = self.commands.valid & self.commands.ready
        m.d.sync += valid.eq(is_taken)
        with m.If(is_taken):
            m.d.sync += [command.data.eq(beat.data.data), last.eq(beat.last), is_first.eq(beat.last)]
            with m.If(is_first):
                m.d.sync += [command[name].eq(beat.data[name]) for name in beat.data.shape().members if name != "data"]
                m.d.sync += [
                    kind[name].eq(value) for name, value in _decode(beat.data.opcode, beat.data.length).items()
                ]
        return command, kind, valid, last

    def _count(self, m: Module, kind: data.View, valid: Signal, last: Signal, is_sized: Signal) -> Value:
        """Whether to keep the beat; ``is_sized`` says, on the last one, whether there were as many as there should be.

        The place of the final beat only takes one that is marked so: what comes too late is dropped, and whatever is
        kept ends in a mark.
        """
        grid = self.bytes.bit_length() - 1
        operands = 2 * GRID // self.bytes
        final = Mux(kind.is_write, kind.last_byte[grid:], kind.is_compare_swap & (operands > 1))
        place, overrun = Signal(LENGTH_BITS - grid), Signal()
        is_final = Signal()
        m.d.comb += [is_final.eq(place == final), is_sized.eq(is_final & ~overrun)]
        with m.If(valid):
            m.d.sync += overrun.eq(is_final & ~last)
            with m.If(last):
                m.d.sync += place.eq(0)
            with m.Elif(~is_final):
                m.d.sync += place.eq(place + 1)
        return ~is_final | last

    def _padded(self, kind: data.View, beat: Value, last: Signal) -> Value:
        """The beat with zeros after a write's last byte."""
        end = kind.last_byte[: self.bytes.bit_length() - 1]
        is_cut = kind.is_write & last
        kept = (beat.word_select(byte, 8) & (~is_cut | (byte <= end)).replicate(8) for byte in range(self.bytes))
        return Cat(*kept)

    def _describe(self, m: Module, kind: data.View, command: data.View) -> None:
        checked = self.checked
        m.d.comb += [
            checked.address.eq(command.address),
            checked.space.eq(command.address_space),
            checked.rights.eq(Cat(kind.is_read, kind.is_write, kind.is_atomic)),  # in the order of ``Rights``
            checked.length.eq(command.length),
            checked.qp.eq(command.qp),
            checked.words.eq(Mux(kind.is_write, kind.length_words, Mux(kind.is_compare_swap, 2, kind.is_atomic))),
            checked.is_atomic.eq(kind.is_atomic),
            checked.record.id.eq(command.id),
            checked.record.opcode.eq(command.opcode),
        ]
        with m.If(kind.is_read | kind.is_atomic):
            m.d.comb += [checked.record.length.eq(command.length), checked.record.words.eq(kind.length_words)]

    def _judge(self, m: Module, kind: data.View, command: data.View, is_well_formed: Value) -> None:
        status, data_max = self.checked.status, Signal(14)
        m.d.sync += data_max.eq((self.mtu - OVERHEAD)[:14] & -GRID)
        is_misaligned = kind.is_atomic & (command.address & kind.last_byte)[:3].any()
        with m.If(~kind.is_supported):
            m.d.comb += status.eq(Status.UNSUPPORTED)
        with m.Elif(~is_well_formed):
            m.d.comb += status.eq(Status.MALFORMED)
        with m.Elif(is_misaligned):
            m.d.comb += status.eq(Status.MISALIGNED)
        with m.Elif(command.length > data_max):
            m.d.comb += status.eq(Status.OUT_OF_RANGE)
        with m.Else():
            m.d.comb += status.eq(Status.DONE)


def _is_one_of(value: Value, choices: Iterable[int]) -> Value:
    return value.matches(*(int(choice) for choice in sorted(choices)))
