"""What the NIC's bench sends: commands of every kind, and frames that nobody can use."""

from __future__ import annotations

from random import Random

from xoe import Frame, FrameHeader, Opcode, Operation, VlanTag
from xoe.cam import Page, Translation, Window
from xoe.command import Command
from xoe.wire import ATOMICS, GRID, Rights
from xoe_sim.predict import mac, node

MEMORY = 1 << 17
ALL = Rights.READ | Rights.WRITE | Rights.ATOMIC
SPACE = 7  # that of queue pair 0; the next ones have the next
PAGES = (  # virtual address, log2 of the size, remote base, rights
    (0x40_0000, 16, 0, ALL),
    (0x80_0000, 16, 1 << 16, ALL),  # its window allows reads only
    (0xC0_0000, 12, 0, Rights.READ),
)
QPS = 4


def page_table(target: int) -> list[Page[Translation]]:
    """Translations towards a NIC: an address space for each queue pair, which leads to that of the same number."""
    return [
        Page(SPACE + qp, address, size_log2, Translation(base, mac(target), node(target), qp, rights))
        for qp in range(QPS)
        for address, size_log2, base, rights in PAGES
    ]


def window_table(source: int) -> list[Page[Window]]:
    """What a NIC may touch: half of the memory, the other half for reading only."""
    return [Page(node(source), 0, 16, Window(ALL)), Page(node(source), 1 << 16, 16, Window(Rights.READ))]


def random_command(rng: Random, qps: int = QPS) -> Command:
    """A command of one of the first queue pairs: most of them good, on a few addresses, so that they meet.

    Some are of every kind that is refused.
    """
    base = rng.choices([page[0] for page in PAGES] + [0x10_0000], (12, 2, 2, 1))[0]
    address = base + rng.choice((0, 8, 0x100, 0xFF0, 0xFFF8)) + rng.randrange(16)
    opcode = rng.choices((Opcode.READ, Opcode.WRITE, Opcode.FENCE, None, 0x20, 0x33, 0x7F), (6, 6, 1, 6, 1, 1, 1))[0]
    qp = rng.randrange(qps)
    common = {"qp": qp, "address_space": SPACE + qp}
    if opcode is None:
        opcode, size = rng.choice(sorted(ATOMICS)), rng.choice((4, 8))
        address = address if rng.random() < 0.1 else address & -size
        operands = 2 if opcode == Opcode.COMPARE_SWAP else 1
        return Command(opcode, address=address, length=size, data=rng.randbytes(operands * GRID), **common)
    length = 0 if opcode == Opcode.FENCE else rng.choice((1, 2, 7, 8, 9, 63, 64, 65, 255, 256, 0, 257))
    data = rng.randbytes(length) if opcode == Opcode.WRITE else b""
    return Command(opcode, address=address, length=length, data=data, **common)


def noise_frame(rng: Random, destination: int, source: int) -> tuple[bytes, bool]:
    """A frame that is not ours, or one of ours that is broken, and whether the MAC found it bad."""
    write = Operation(Opcode.WRITE, 1, 0, 64, bytes([0xBB]) * 64)
    tags = tuple(VlanTag(rng.randrange(8), vid=9) for _ in range(rng.randrange(3)))
    header = FrameHeader(dst_node=node(0), src_node=node(1))
    good = bytearray(Frame(destination, source, header, (write,), tags).encode())
    start = 14 + 4 * len(tags)
    kind = rng.randrange(7)
    if kind == 0:
        return bytes(good), True
    if kind == 1:
        good[rng.randrange(start + 22, len(good))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        del good[rng.randrange(1, len(good)) :]
    elif kind == 3:
        good += bytes(rng.randrange(1, 20))
    elif kind == 4:
        return Frame(destination ^ 2, source, header, (write,), tags).encode(), False
    elif kind == 5:
        return rng.randbytes(12) + b"\x08\x00" + rng.randbytes(rng.randrange(46, 300)), False
    else:
        return bytes.fromhex("0180c2000001") + rng.randbytes(6) + b"\x88\x08\x01\x01" + rng.randbytes(44), False
    return bytes(good), False
