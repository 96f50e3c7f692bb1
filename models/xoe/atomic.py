"""The atomics' arithmetic: what a memory cell holds after one."""

from __future__ import annotations

from .wire import ATOMICS, Opcode

SIZES = (4, 8)  # bytes that an atomic may work on


def execute(opcode: int, size: int, old: int, operand: int, swap: int = 0) -> int:
    """The value that replaces ``old``.

    ``size`` is in bytes, 4 or 8. All values are unsigned; of each only the low ``8 * size`` bits count. ``swap`` is
    what compare-and-swap stores when ``old`` equals ``operand``; the others ignore it.

    Raises:
        ValueError: ``opcode`` is not an atomic that works, or ``size`` is neither 4 nor 8.
    """
    if opcode not in ATOMICS:
        raise ValueError(f"opcode must be an atomic, not {opcode:#x}")
    if size not in SIZES:
        raise ValueError(f"size must be 4 or 8 bytes, not {size!r}")
    mask = (1 << 8 * size) - 1
    return _result(Opcode(opcode), size, old & mask, operand & mask, swap & mask) & mask


def _result(opcode: Opcode, size: int, old: int, operand: int, swap: int) -> int:
    """The new value, not yet cut to ``size`` bytes."""
    signed_old, signed_operand = _signed(old, size), _signed(operand, size)
    return {
        Opcode.ADD: old + operand,
        Opcode.SUB: old - operand,
        Opcode.SMIN: min(signed_old, signed_operand),
        Opcode.SMAX: max(signed_old, signed_operand),
        Opcode.UMIN: min(old, operand),
        Opcode.UMAX: max(old, operand),
        Opcode.INC: 0 if old >= operand else old + 1,
        Opcode.DEC: operand if old == 0 or old > operand else old - 1,
        Opcode.AND: old & operand,
        Opcode.OR: old | operand,
        Opcode.XOR: old ^ operand,
        Opcode.EXCHANGE: operand,
        Opcode.COMPARE_SWAP: swap if old == operand else old,
    }[opcode]


def _signed(value: int, size: int) -> int:
    """The two's complement number that the low ``8 * size`` bits of ``value`` stand for."""
    sign = 1 << 8 * size - 1
    return (value ^ sign) - sign
