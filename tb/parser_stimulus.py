"""Frames for the parser: good ones, and every kind that is not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from random import Random

from xoe.crc import frame_crc_bytes
from xoe.frame import VlanTag, clear_mark
from xoe.operation import Operation
from xoe.wire import (
    ATOMICS,
    ETHERTYPE,
    FRAME_MIN,
    GRID,
    MAC_CONTROL_ETHERTYPE,
    RESPONSE_BIT,
    VLAN_TPIDS,
    FrameHeader,
    Opcode,
    TrafficClass,
    data_words,
)

MAC, PEER, NODE = 0x02_00_5E_10_20_31, 0x02_00_5E_40_50_62, 0x0A0B
QUEUE_PAIRS = 16
HEADER = FrameHeader(dst_node=NODE, src_node=0x0C0D, dst_qp=3, src_qp=0x456, seq=0x123456)

Sent = tuple[bytes, bool]


def operation(rng: Random, longest: int = 256) -> Operation:
    """Any operation whose data is as its opcode wants it, with up to ``longest`` bytes; or of an unknown opcode."""
    opcode = rng.choice([*Opcode, Opcode.WRITE, Opcode.WRITE, 0x05, 0x3F, 0x80, 0xFF])
    opcode |= rng.choice([0, 0, RESPONSE_BIT])
    is_atomic = opcode & ~RESPONSE_BIT in ATOMICS
    length = rng.choice([4, 8]) if is_atomic else rng.randint(1, longest)
    size = data_words(opcode, length) * GRID
    if opcode & ~RESPONSE_BIT not in list(Opcode):
        size = rng.randrange(longest // GRID + 1) * GRID
    elif not is_atomic and size:
        size = length
    status = rng.choice([0, 5]) if opcode & RESPONSE_BIT and not size else 0
    return Operation(opcode, rng.getrandbits(16), rng.getrandbits(64), length, rng.randbytes(size), status)


def operations(rng: Random, most: int) -> tuple[Operation, ...]:
    """Operations that fill up to ``most`` bytes."""
    found, size, wanted = [], 0, rng.randint(0, most)
    while size + 16 <= wanted:
        longest = min(256, (wanted - size - 16) // GRID * GRID)
        found.append(operation(rng, longest) if longest else Operation(Opcode.READ, length=1))
        size += found[-1].size
    return tuple(found)


def payload(rng: Random, most: int) -> bytes:
    """Operations packed one behind the other, as one finds them in a frame."""
    return b"".join(found.encode() for found in operations(rng, most))


def tags(rng: Random, count: int | None = None) -> bytes:
    """VLAN tags: ``count`` of them, or 0 to 2."""
    count = rng.randrange(3) if count is None else count
    return b"".join(
        VlanTag(rng.randrange(8), rng.randrange(2), rng.randrange(4096), rng.choice(VLAN_TPIDS)).encode()
        for _ in range(count)
    )


def ethernet(rng: Random, ethertype: int, body: bytes, count: int | None = None, destination: int = MAC) -> bytes:
    """A frame, padded."""
    addresses = destination.to_bytes(6, "big") + PEER.to_bytes(6, "big")
    data = addresses + tags(rng, count) + ethertype.to_bytes(2, "big") + body
    return data + bytes(max(0, FRAME_MIN - len(data)))


def ours(rng: Random, content: bytes, count: int | None = None, destination: int = MAC, **fields: int) -> bytes:
    """A frame of ours around packed operations, its CRC right; ``fields`` change its header."""
    defaults = {"length": len(content), "traffic_class": rng.choice(list(TrafficClass)), "ce": rng.randrange(2)}
    header = dataclasses.replace(HEADER, **{**defaults, **fields}).pack()
    crc = frame_crc_bytes(clear_mark(header), content)
    return ethernet(rng, ETHERTYPE, header + content + crc, count, destination)


def good(rng: Random, most: int) -> Sent:
    """A good frame."""
    return ours(rng, payload(rng, most)), False


def bad(rng: Random, most: int) -> Sent:
    """A frame that the MAC calls bad, whosever it is."""
    return rng.choice([good, good, host, control])(rng, most)[0], True


def runt(rng: Random, most: int) -> Sent:
    """A frame that ends before its EtherType."""
    count = rng.randrange(3)
    whole = ethernet(rng, ETHERTYPE, b"", count)
    return whole[: rng.randint(1, 13 + 4 * count) if rng.randrange(2) else 13 + 4 * count], False


def version(rng: Random, most: int) -> Sent:
    """A frame of another version."""
    return ours(rng, payload(rng, most), version=rng.choice([0, 2, 3, 5, 9, 15])), False


def malformed(rng: Random, most: int) -> Sent:
    """A frame with operations off the grid."""
    content = payload(rng, most) + bytes(rng.randint(1, GRID - 1))
    return ours(rng, content), False


def truncated(rng: Random, most: int) -> Sent:
    """A frame cut anywhere behind its EtherType."""
    count = rng.randrange(3)
    content = payload(rng, most)
    end = 14 + 4 * count + FrameHeader.SIZE + len(content) + 4
    return ours(rng, content, count)[: rng.randint(14 + 4 * count, end - 1)], False


def overlong(rng: Random, most: int) -> Sent:
    """A frame with more bytes than it says."""
    data = ours(rng, payload(rng, most), 0)
    return data + rng.randbytes(rng.choice([1, 2, 4, 8, rng.randint(1, 200)])), False


def too_large(rng: Random, most: int) -> Sent:
    """A whole frame above the largest MTU."""
    return ours(rng, rng.randbytes(most + GRID * rng.choice([1, 2, 40]))), False


def crc(rng: Random, most: int) -> Sent:
    """A frame with a wrong CRC."""
    count, content = rng.randrange(3), payload(rng, most)
    start = 14 + 4 * count + FrameHeader.SIZE
    data = bytearray(ours(rng, content, count))
    data[rng.randrange(start, start + len(content) + 4)] ^= 1 << rng.randrange(8)
    return bytes(data), False


def destination(rng: Random, most: int) -> Sent:
    """A frame for somebody else: another address, node or queue pair."""
    fields = [
        {"destination": MAC ^ 1 << rng.randrange(48)},
        {"dst_node": NODE ^ 1 << rng.randrange(16)},
        {"dst_qp": rng.choice([QUEUE_PAIRS, QUEUE_PAIRS + 3, 0x800, 0xFFF])},
    ]
    return ours(rng, payload(rng, most), **rng.choice(fields)), False


def kind(rng: Random, most: int) -> Sent:
    """A frame of a kind that carries no operations."""
    return ours(rng, payload(rng, most), kind=rng.randint(1, 15)), False


def host(rng: Random, most: int) -> Sent:
    """Somebody else's frame: LLDP, IP, 802.3 with its length, MAC control in a tag, three tags; of any length."""
    ethertype = rng.choice([0x88CC, 0x8809, 0x0800, 0x0806, 0x0040, 0x05DC, 0x88B4, 0x08B5, 0xB588])
    count = rng.randrange(3)
    if rng.randrange(8) == 0:
        ethertype, count = rng.choice([(MAC_CONTROL_ETHERTYPE, 1), (MAC_CONTROL_ETHERTYPE, 2), (0x8100, 2)])
    data = ethernet(rng, ethertype, rng.randbytes(rng.randrange(most)), count, rng.choice([MAC, 0x0180C200000E]))
    return data[: rng.randint(14 + 4 * count, len(data))], False


def control(rng: Random, most: int) -> Sent:
    """PAUSE and PFC."""
    body = rng.choice([bytes.fromhex("0001ffff"), bytes.fromhex("010100dd") + rng.randbytes(16)])
    return ethernet(rng, MAC_CONTROL_ETHERTYPE, body, 0, 0x0180C2000001), False


def noise(rng: Random, most: int) -> Sent:
    """Our EtherType and then anything."""
    return ethernet(rng, ETHERTYPE, rng.randbytes(rng.randrange(most)))[: rng.randint(14, 100)], False


KINDS: dict[str, Callable[[Random, int], Sent]] = {
    maker.__name__: maker
    for maker in (good, bad, runt, version, malformed, truncated, overlong, too_large, crc, destination, kind)
}
OTHERS: dict[str, Callable[[Random, int], Sent]] = {maker.__name__: maker for maker in (host, control, noise)}


def any_frame(rng: Random, most: int) -> Sent:
    """Half of them good, the others of any kind."""
    return rng.choice([good] * 13 + [*KINDS.values(), *OTHERS.values()])(rng, most)
