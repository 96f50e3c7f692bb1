"""The end-to-end CRC-32 of ``xoe.crc`` in hardware: one beat a clock, frames back to back, no back-pressure.

The register is linear over GF(2) in its own bits and in the data's (the polynomial is that of IEEE 802.3 3.2.9). Each
step is therefore a matrix, found here by putting unit vectors through ``xoe.crc``, and becomes one XOR tree an output
bit. Two things follow, and both save logic:

- Words of 0 after the end are undone after the fact, so that no data is ever shifted into place.
- The header follows the operations, so the operations' part is kept already advanced over the header's 22 bytes, and
  the header's part is just XORed to it: ``crc = payload.crc ^ header.crc``, in either order and as late as one likes.

A CRC is a plain number here, as ``xoe.crc.frame_crc`` gives it. It is sent most significant byte first, so on a bus it
is ``byte_swap(crc)``.
"""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from xoe.config import check_choice, check_range
from xoe.crc import INITIAL, INVERT, advance, rewind
from xoe.frame import clear_mark
from xoe.wire import GRID, FrameHeader

from .delay import delayed

WORD = 8 * GRID
CRC_WIDTHS = (64, 128, 256, 512, 1024)
LEAD_WORDS = 4  # words in front of the operations in canonical alignment


def _multiply(columns: list[int], value: Value) -> Value:
    """The 32-bit product of ``value`` and the matrix whose column for bit ``n`` of ``value`` is ``columns[n]``."""
    rows = [sum((column >> row & 1) << bit for bit, column in enumerate(columns)) for row in range(32)]
    return Cat((value & row).xor() for row in rows)


def _move(state: int, size: int) -> int:
    return advance(state, bytes(size)) if size >= 0 else rewind(state, -size)


def _state_columns(size: int) -> list[int]:
    """Columns of the step over ``size`` bytes of 0, forwards or, when negative, back."""
    return [_move(1 << bit, size) for bit in range(32)]


def _data_columns(size: int, after: int) -> list[int]:
    """Columns of ``size`` bytes of data, as they lie on a bus, followed by ``after`` bytes of 0."""
    return [advance(0, (1 << bit).to_bytes(size, "little") + bytes(after)) for bit in range(8 * size)]


_MARK = data.StructLayout({"valid": 1, "first": 1, "last": 1, "zeros": bits_for(max(CRC_WIDTHS) // WORD)})
"""What travels beside a beat through the pipeline."""


def crc_beat(width: int) -> data.StructLayout:
    """What ``PayloadCrc`` takes.

    ``data`` is 0 outside the operations; ``zeros`` (used with ``last``) is how many words at the end of the last beat
    lie after them: 0..width/64. So a last beat may be all zero.
    """
    return data.StructLayout({"data": width, "first": 1, "last": 1, "zeros": range(width // WORD + 1)})


def payload_latency(width: int) -> int:
    """Clocks from a frame's last beat of ``width`` bits to its CRC."""
    return 2 if width == WORD else 3


class PayloadCrc(wiring.Component):
    """The part of a frame's CRC that comes from its operations.

    A beat in each clock in which ``valid`` is high; always accepted. Clocks without a beat may come anywhere. The last
    beat of a frame may be followed at once by the first of the next. ``done`` is high for one clock, ``latency``
    clocks after the last beat (given in clock t, ``done`` and ``crc`` have it in clock t + latency); ``crc`` is the XOR
    of two registers and includes the final inversion. Stages: the words, their sum, and then the loop and, beside it
    so that it costs no clock, the same with the zero words undone.

    Args:
        width: bits of a beat: 64, 128, 256, 512 or 1024.
        lead: words of 0 that come before the operations, counted from the beat marked ``first``. The default is
            that of canonical alignment with every beat given; 0..4.

    Attributes:
        latency: 2 clocks at 64 bits, 3 at any other width.

    Raises:
        ConfigError: a parameter outside these bounds.
    """

    def __init__(self, width: int, lead: int = LEAD_WORDS) -> None:
        check_choice("width", width, CRC_WIDTHS)
        check_range("lead", lead, 0, LEAD_WORDS)
        self.width, self.lead = width, lead
        self._words = width // WORD
        self.latency = payload_latency(width)
        super().__init__({"valid": In(1), "beat": In(crc_beat(width)), "done": Out(1), "crc": Out(32)})

    def elaborate(self, platform: object) -> Module:
        """Build the pipeline: words, sum, loop."""
        m = Module()
        mark = Signal(_MARK)
        m.d.comb += [mark.valid.eq(self.valid), mark.first.eq(self.beat.first), mark.last.eq(self.beat.last)]
        m.d.comb += mark.zeros.eq(self.beat.zeros)

        terms = [Signal(32, name=f"term_{at}", reset_less=True) for at in range(self._words)]
        for at, term in enumerate(terms):
            after = (self._words - 1 - at) * GRID + FrameHeader.SIZE
            word = self.beat.data.word_select(at, WORD)
            m.d.sync += term.eq(_multiply(_data_columns(GRID, after), word))
        mark = delayed(m, "mark_words", mark, 1)
        total = terms[0]
        if self._words > 1:
            total = Signal(32, reset_less=True)
            m.d.sync += total.eq(Cat(Cat(term[bit] for term in terms).xor() for bit in range(32)))
            mark = delayed(m, "mark_sum", mark, 1)

        state = Signal(32, reset_less=True)
        start = _move(INITIAL, FrameHeader.SIZE - GRID * self.lead)

        def moved(size: int) -> Value:
            """What came before this beat, ``size`` bytes on; the start joins behind the tree: a shorter path."""
            return Mux(mark.first, _move(start, size), _multiply(_state_columns(size), state))

        with m.If(mark.valid):
            m.d.sync += state.eq(total ^ moved(self.width // 8))

        # The same for the last beat, without the words after the end: those of the data are 0 when all are.
        data_part, state_part = Signal(32, reset_less=True), Signal(32, reset_less=True)
        counts = range(self._words + 1)
        data_parts = Array(_multiply(_state_columns(-GRID * zeros), total) for zeros in counts[:-1])
        state_parts = Array(moved(self.width // 8 - GRID * zeros) for zeros in counts)
        m.d.sync += [data_part.eq(data_parts[mark.zeros[: exact_log2(self._words)]])]
        m.d.sync += [state_part.eq(state_parts[mark.zeros]), self.done.eq(mark.valid & mark.last)]
        m.d.comb += self.crc.eq(data_part ^ state_part ^ INVERT)
        return m


class HeaderCrc(wiring.Component):
    """The part of a frame's CRC that comes from its header: XOR it to ``PayloadCrc.crc`` and the CRC is whole.

    A header in every clock, free-running; ``crc``, a register, belongs to the ``header`` of ``latency`` (1) clocks
    before. The congestion mark counts as 0 whatever ``header`` has there.
    """

    latency = 1

    def __init__(self) -> None:
        super().__init__({"header": In(8 * FrameHeader.SIZE), "crc": Out(32)})

    def elaborate(self, platform: object) -> Module:
        """Build the one XOR tree."""
        m = Module()
        kept = int.from_bytes(clear_mark(b"\xff" * FrameHeader.SIZE), "little")
        m.d.sync += self.crc.eq(_multiply(_data_columns(FrameHeader.SIZE, 0), self.header & kept))
        return m


class FrameCrc(wiring.Component):
    """The whole CRC: ``PayloadCrc`` and ``HeaderCrc`` joined, for whoever has the header by the last beat.

    Ports, ``latency`` and arguments are those of ``PayloadCrc``; ``header`` is taken with the last beat. One XOR
    follows the registers before ``crc``.
    """

    def __init__(self, width: int, lead: int = LEAD_WORDS) -> None:
        check_choice("width", width, CRC_WIDTHS)
        check_range("lead", lead, 0, LEAD_WORDS)
        self.width, self.lead = width, lead
        self.latency = payload_latency(width)
        super().__init__(
            {
                "valid": In(1),
                "beat": In(crc_beat(width)),
                "header": In(8 * FrameHeader.SIZE),
                "done": Out(1),
                "crc": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join the two, the header's part delayed to match."""
        m = Module()
        m.submodules.payload = payload = PayloadCrc(self.width, self.lead)
        m.submodules.header = header = HeaderCrc()
        m.d.comb += [payload.valid.eq(self.valid), payload.beat.eq(self.beat), header.header.eq(self.header)]
        part = delayed(m, "part", header.crc, self.latency - header.latency)
        m.d.comb += [self.crc.eq(payload.crc ^ part), self.done.eq(payload.done)]
        return m
