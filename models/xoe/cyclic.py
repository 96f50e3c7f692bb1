"""Numbers that count round and round: PSNs of 24 bits, credits of 20, epochs of 8."""

from __future__ import annotations

from .wire import ControlBody, FrameHeader

SEQ_BITS = next(field.width for field in FrameHeader.layout() if field.name == "seq")
CREDIT_BITS = next(field.width for field in FrameHeader.layout() if field.name == "credit")
EPOCH_BITS = next(field.width for field in ControlBody.layout() if field.name == "epoch")


def after(number: int, steps: int, bits: int) -> int:
    """The number that comes ``steps`` (which may be negative) after another, of ``bits`` bits."""
    return (number + steps) % (1 << bits)


def distance(later: int, earlier: int, bits: int) -> int:
    """How many steps lead from ``earlier`` on to ``later``: 0..2**bits - 1."""
    return (later - earlier) % (1 << bits)
