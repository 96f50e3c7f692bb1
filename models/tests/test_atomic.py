"""The arithmetic of atomics, against values worked out by hand."""

import pytest

from xoe.atomic import execute
from xoe.wire import ATOMICS, Opcode

MAX32, MAX64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF
SIGN32, SIGN64 = 1 << 31, 1 << 63

BY_HAND = [
    (Opcode.ADD, 4, MAX32, 2, 1),
    (Opcode.ADD, 8, MAX32, 2, 0x1_0000_0001),
    (Opcode.ADD, 8, 0x0102030405060708, 0x1011121314151617, 0x11131517191B1D1F),
    (Opcode.SUB, 4, 1, 2, MAX32),
    (Opcode.SUB, 8, 0, 1, MAX64),
    (Opcode.SMIN, 4, SIGN32, 1, SIGN32),
    (Opcode.SMIN, 8, SIGN32, 1, 1),
    (Opcode.SMAX, 4, MAX32, 0, 0),
    (Opcode.SMAX, 8, SIGN64, MAX64, MAX64),
    (Opcode.UMIN, 4, SIGN32, 1, 1),
    (Opcode.UMAX, 8, SIGN64, MAX32, SIGN64),
    (Opcode.INC, 4, 4, 5, 5),
    (Opcode.INC, 4, 5, 5, 0),
    (Opcode.INC, 8, 6, 5, 0),
    (Opcode.INC, 8, MAX64, MAX64, 0),
    (Opcode.DEC, 4, 0, 5, 5),
    (Opcode.DEC, 4, 6, 5, 5),
    (Opcode.DEC, 8, 5, 5, 4),
    (Opcode.DEC, 8, 1, 5, 0),
    (Opcode.AND, 8, 0b1100, 0b1010, 0b1000),
    (Opcode.OR, 4, 0b1100, 0b1010, 0b1110),
    (Opcode.XOR, 4, 0b1100, 0b1010, 0b0110),
    (Opcode.EXCHANGE, 8, 1, MAX64, MAX64),
]


@pytest.mark.parametrize(("opcode", "size", "old", "operand", "new"), BY_HAND)
def test_by_hand(opcode, size, old, operand, new):
    assert execute(opcode, size, old, operand) == new


def test_compare_swap_stores_only_on_a_match():
    assert execute(Opcode.COMPARE_SWAP, 8, 5, 5, 9) == 9
    assert execute(Opcode.COMPARE_SWAP, 8, 5, 6, 9) == 5


@pytest.mark.parametrize("opcode", sorted(ATOMICS))
def test_four_bytes_ignore_the_upper_half(opcode):
    junk = 0xDEAD_BEEF << 32
    for old in (0, 1, SIGN32, MAX32):
        for operand in (0, 1, SIGN32, MAX32):
            new = execute(opcode, 4, old, operand, 7)
            assert execute(opcode, 4, old | junk, operand | junk, 7 | junk) == new
            assert new <= MAX32


def test_refuses_what_is_no_atomic():
    with pytest.raises(ValueError, match=r"not 0x1$"):
        execute(Opcode.READ, 4, 0, 0)
    with pytest.raises(ValueError, match="opcode must be an atomic, not 0x20"):
        execute(Opcode.FLOAT_ADD, 4, 0, 0)


def test_refuses_other_sizes():
    with pytest.raises(ValueError, match="size must be 4 or 8 bytes, not 2"):
        execute(Opcode.ADD, 2, 0, 0)
