"""The atomics' arithmetic, pipelined. Its model is ``xoe.atomic``."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from xoe.wire import Opcode

from ..delay import delayed

OPCODE_BITS = 5  # enough for all the atomics that work

ATOMIC_INPUT = data.StructLayout({"opcode": OPCODE_BITS, "is_wide": 1, "old": 64, "operand": 64, "swap": 64})
"""``is_wide``: 8 bytes, else the low 4 of each value. ``swap`` is for compare-and-swap alone."""

_ADDENDS = data.StructLayout({"value": 64, "carry": 1})
_COMPUTED = data.StructLayout({"total": 64, "logic": 64, "is_less": 1, "is_equal": 1, "is_zero": 1})
_CHOICE = data.StructLayout({"total": 1, "logic": 1, "operand": 1, "swap": 1, "old": 1})
"""What the new value is taken from: at most one is set; none gives 0."""


class Atomic(wiring.Component):
    """New value from old one and operands: one a clock, ``latency`` clocks later, never stalling.

    ``i`` is taken when ``i_valid``; ``o`` is good when ``o_valid``, its upper half 0 for 4 bytes. Opcodes other than
    the atomics that work give a value that means nothing.
    """

    latency = 4

    def __init__(self) -> None:
        super().__init__({"i": In(ATOMIC_INPUT), "i_valid": In(1), "o": Out(64), "o_valid": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Four stages: cut to size; compute and compare; decide; take."""
        m = Module()
        m.d.comb += self.o_valid.eq(delayed(m, "valid", self.i_valid, self.latency))
        cut = Signal(ATOMIC_INPUT)
        mask = _mask(self.i.is_wide)
        m.d.sync += [
            cut.opcode.eq(self.i.opcode),
            cut.is_wide.eq(self.i.is_wide),
            *(cut[name].eq(self.i[name] & mask) for name in ("old", "operand", "swap")),
        ]
        computed = self._compute(m, cut, self._choose_addend(m))
        choice = self._decide(m, delayed(m, "compared_opcode", cut.opcode, 1), computed)
        self._take(m, choice, delayed(m, "decided", cut, 2), delayed(m, "decided_computed", computed, 1))
        return m

    def _choose_addend(self, m: Module) -> data.View:
        """What the one adder adds to the old value: the operand or its negative, 1 or -1."""
        addend = Signal(_ADDENDS)
        with m.Switch(self.i.opcode):
            with m.Case(Opcode.SUB):
                m.d.sync += [addend.value.eq(~self.i.operand), addend.carry.eq(1)]
            with m.Case(Opcode.INC):
                m.d.sync += [addend.value.eq(0), addend.carry.eq(1)]
            with m.Case(Opcode.DEC):
                m.d.sync += [addend.value.eq(Const(-1, 64)), addend.carry.eq(0)]
            with m.Default():
                m.d.sync += [addend.value.eq(self.i.operand), addend.carry.eq(0)]
        return addend

    def _compute(self, m: Module, cut: data.View, addend: data.View) -> data.View:
        """Sum, logic and comparisons; with both sign bits flipped, signed numbers compare as unsigned ones do."""
        computed = Signal(_COMPUTED)
        is_signed = (cut.opcode == Opcode.SMIN) | (cut.opcode == Opcode.SMAX)
        flip = Signal(64)
        m.d.comb += [flip[31].eq(is_signed & ~cut.is_wide), flip[63].eq(is_signed & cut.is_wide)]
        m.d.sync += [
            computed.total.eq(cut.old + addend.value + addend.carry),
            computed.is_less.eq((cut.old ^ flip) < (cut.operand ^ flip)),
            computed.is_equal.eq(cut.old == cut.operand),
            computed.is_zero.eq(cut.old == 0),
            computed.logic.eq(cut.old ^ cut.operand),
        ]
        with m.If(cut.opcode == Opcode.AND):
            m.d.sync += computed.logic.eq(cut.old & cut.operand)
        with m.If(cut.opcode == Opcode.OR):
            m.d.sync += computed.logic.eq(cut.old | cut.operand)
        return computed

    def _decide(self, m: Module, opcode: Signal, computed: data.View) -> data.View:
        """Which of the values to take."""
        choice = Signal(_CHOICE)
        is_less, is_equal = computed.is_less, computed.is_equal
        m.d.sync += choice.as_value().eq(0)
        with m.Switch(opcode):
            with m.Case(Opcode.ADD, Opcode.SUB):
                m.d.sync += choice.total.eq(1)
            with m.Case(Opcode.SMIN, Opcode.UMIN):
                m.d.sync += [choice.old.eq(is_less), choice.operand.eq(~is_less)]
            with m.Case(Opcode.SMAX, Opcode.UMAX):
                m.d.sync += [choice.old.eq(~is_less), choice.operand.eq(is_less)]
            with m.Case(Opcode.INC):
                m.d.sync += choice.total.eq(is_less)
            with m.Case(Opcode.DEC):
                is_reset = computed.is_zero | ~is_less & ~is_equal
                m.d.sync += [choice.total.eq(~is_reset), choice.operand.eq(is_reset)]
            with m.Case(Opcode.AND, Opcode.OR, Opcode.XOR):
                m.d.sync += choice.logic.eq(1)
            with m.Case(Opcode.EXCHANGE):
                m.d.sync += choice.operand.eq(1)
            with m.Case(Opcode.COMPARE_SWAP):
                m.d.sync += [choice.swap.eq(is_equal), choice.old.eq(~is_equal)]
        return choice

    def _take(self, m: Module, choice: data.View, cut: data.View, computed: data.View) -> None:
        values = {
            "total": computed.total,
            "logic": computed.logic,
            "operand": cut.operand,
            "swap": cut.swap,
            "old": cut.old,
        }
        taken = (value & choice[name].replicate(64) for name, value in values.items())
        m.d.sync += self.o.eq(reduce(or_, taken) & _mask(cut.is_wide))


def _mask(is_wide: Signal) -> Value:
    """The bits that count."""
    return Cat(Const(0xFFFF_FFFF, 32), is_wide.replicate(32))
