"""Gathers what an atomic works on, and works it out."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from xoe.config import DATA_WIDTHS, check_choice

from ..delay import delayed
from .atomic import OPCODE_BITS, Atomic
from .byte_aligner import lane_bits
from .layouts import data_beat

WORD = 64


class AtomicUnit(wiring.Component):
    """One atomic at a time: ``opcode``, ``is_wide`` and ``lane`` stay as they are from its operands to its result.

    First the operands come, on the beats of the request for which ``operands_valid`` is high; then ``old``, the beat
    that memory holds, of which ``lane`` is the first byte that counts. ``done`` is high for a clock when ``o``, the
    new value, is good, ``latency`` clocks after ``old_valid``; ``o`` stays good until the next one begins.
    """

    latency = Atomic.latency + 2

    def __init__(self, width: int) -> None:
        check_choice("width", width, DATA_WIDTHS)
        self.width = width
        super().__init__(
            {
                "opcode": In(OPCODE_BITS),
                "is_wide": In(1),
                "lane": In(lane_bits(width)),
                "operands": In(data_beat(width)),
                "operands_valid": In(1),
                "old": In(width),
                "old_valid": In(1),
                "o": Out(WORD),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Operands into their registers; the word of the beat, its half, then the arithmetic."""
        m = Module()
        m.submodules.atomic = atomic = Atomic()
        operand, swap = self._operands(m)
        word, old = Signal(WORD), Signal(WORD)
        with m.If(self.old_valid):
            m.d.sync += word.eq(self.old.word_select(self.lane[3:], WORD))
        m.d.sync += old.eq(Mux(~self.is_wide & self.lane[2], word[32:], word))
        m.d.comb += [
            atomic.i.opcode.eq(self.opcode),
            atomic.i.is_wide.eq(self.is_wide),
            atomic.i.old.eq(old),
            atomic.i.operand.eq(operand),
            atomic.i.swap.eq(swap),
            atomic.i_valid.eq(delayed(m, "valid", self.old_valid, 2)),
            self.o.eq(atomic.o),
            self.done.eq(atomic.o_valid),
        ]
        return m

    def _operands(self, m: Module) -> tuple[Signal, Signal]:
        """The operand, from the first word, and what to swap in, from the second."""
        operand, swap, is_second = Signal(WORD), Signal(WORD), Signal()
        with m.If(self.operands_valid):
            m.d.sync += is_second.eq(~self.operands.last)
            with m.If(~is_second):
                m.d.sync += operand.eq(self.operands.data[:WORD])
            if self.width > WORD:
                m.d.sync += swap.eq(self.operands.data[WORD : 2 * WORD])
            else:
                m.d.sync += swap.eq(self.operands.data)
        return operand, swap
