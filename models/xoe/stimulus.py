"""Commands whose outcome can be told by what users see alone: each touches one region, which one connection has.

A connection's part of the other end's memory has slots, which are read and written, and counters, which are added to
and read.
"""

from __future__ import annotations

from random import Random

from .command import Command
from .wire import Opcode

PART = 0x4000  # bytes of the other end's memory, for each connection
SLOT = 256  # bytes
SLOTS = 32
COUNTERS = 0x3000  # where a part's counters begin, 8 bytes each
COUNTERS_MAX = 4
LENGTHS = (1, 8, 64, 256)


def region(address: int) -> tuple[int, int, int]:
    """The region around an address: where it begins, its bytes, and those of a cell, which is written as a whole.

    Of a write that is interrupted by a reset a part may be in memory; an atomic is carried out or not.
    """
    size, cell = (8, 8) if address % PART >= COUNTERS else (SLOT, 1)
    return address // size * size, size, cell


def slot_address(connection: int, slot: int) -> int:
    """Where a slot begins."""
    return connection * PART + SLOT * slot


def counter_address(connection: int, counter: int) -> int:
    """Where a counter is."""
    return connection * PART + COUNTERS + 8 * counter


def random_command(rng: Random, number: int, connection: int, qp: int) -> Command:
    """A command with an id, on a connection, which is queue pair ``qp`` at this end: also its address space."""
    kind = rng.random()
    if kind < 0.4:
        address = counter_address(connection, rng.randrange(COUNTERS_MAX))
        return Command(Opcode.ADD, number, qp, qp, address, 8, rng.getrandbits(63).to_bytes(8, "little"))
    address = slot_address(connection, rng.randrange(SLOTS))
    if kind < 0.42:
        return Command(Opcode.FENCE, number, qp, qp, address)
    length = rng.choice((*LENGTHS, rng.randint(1, SLOT)))
    address += rng.randint(0, SLOT - length)
    if kind < 0.72:
        return Command(Opcode.WRITE, number, qp, qp, address, length, rng.randbytes(length))
    return Command(Opcode.READ, number, qp, qp, address, length)
