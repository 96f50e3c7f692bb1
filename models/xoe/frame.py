"""A whole Ethernet frame of ours: encoding, and decoding of any bytes whatever."""

from __future__ import annotations

import dataclasses
from enum import Enum

from .crc import frame_crc_bytes
from .header import FieldError
from .operation import Operation, padded, split
from .wire import (
    CRC_SIZE,
    ETHERNET_HEADER,
    ETHERTYPE,
    FRAME_MIN,
    GRID,
    MTU_MAX,
    VERSION,
    VLAN_TAG,
    VLAN_TPIDS,
    FrameHeader,
    Kind,
)

MAX_TAGS = 2
_MARK = next(field.offset for field in FrameHeader.layout() if field.name == "ce")


class Reason(Enum):
    """Why bytes are not a frame of ours, in the order of the tests: the first that applies is given.

    TRUNCATED comes first of all when not even the header is whole.
    """

    RUNT = "shorter than an Ethernet header"
    ETHERTYPE = "another EtherType"
    VERSION = "another version of the format"
    MALFORMED = "operations off the 8-byte grid, or past the end of the payload"
    TRUNCATED = "shorter than its header says"
    OVERLONG = "longer than its header says, or than a frame may be"
    CRC = "the end-to-end CRC is wrong"


class FrameError(ValueError):
    """Bytes that are not a frame of ours; ``reason`` says why."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason.value}{': ' + detail if detail else ''}")
        self.reason = reason


@dataclasses.dataclass(frozen=True)
class VlanTag:
    """An 802.1Q tag: priority (PCP) 0..7, drop eligible 0..1, VLAN id 0..4095."""

    pcp: int = 0
    dei: int = 0
    vid: int = 0
    tpid: int = VLAN_TPIDS[0]

    def encode(self) -> bytes:
        """The tag's 4 bytes.

        Raises:
            FieldError: a value that does not fit its field.
        """
        for name, limit in (("pcp", 7), ("dei", 1), ("vid", 0xFFF), ("tpid", 0xFFFF)):
            value = getattr(self, name)
            if not 0 <= value <= limit:
                raise FieldError(f"VlanTag.{name} must be 0..{limit:#x}, not {value!r}")
        return self.tpid.to_bytes(2, "big") + (self.pcp << 13 | self.dei << 12 | self.vid).to_bytes(2, "big")


@dataclasses.dataclass(frozen=True)
class Frame:
    """A frame: MAC addresses as 48-bit integers, tags outermost first, header, and operations or a body.

    Data frames have operations; others a ``body`` of a multiple of 8 bytes, such as a packed ``AckBody``.
    ``header.length`` is set from them when the frame is encoded.
    """

    destination: int
    source: int
    header: FrameHeader
    operations: tuple[Operation, ...] = ()
    tags: tuple[VlanTag, ...] = ()
    ethertype: int = ETHERTYPE
    body: bytes = b""

    def encode(self) -> bytes:
        """The frame from destination address to CRC, padded to 60 bytes; the MAC adds the FCS.

        Raises:
            FieldError: a value that does not fit its field, operations that exceed the largest MTU, a body in a data
                frame or operations in another.
        """
        if self.body if self.header.kind == Kind.DATA else self.operations:
            raise FieldError(f"Frame.{'body' if self.body else 'operations'} must be empty in a frame of its kind")
        payload = b"".join(operation.encode() for operation in self.operations) + padded(self.body)
        if FrameHeader.SIZE + len(payload) + CRC_SIZE > MTU_MAX:
            raise FieldError(f"Frame.operations must fit an MTU of {MTU_MAX} bytes, not {len(payload)} bytes")
        for name, limit in (("destination", 48), ("source", 48), ("ethertype", 16)):
            if not 0 <= getattr(self, name) < 1 << limit:
                raise FieldError(f"Frame.{name} must have {limit} bits, not {getattr(self, name):#x}")
        is_told = self.header.length == len(payload)
        header = (self.header if is_told else dataclasses.replace(self.header, length=len(payload))).pack()
        crc = frame_crc_bytes(clear_mark(header), payload)
        addresses = self.destination.to_bytes(6, "big") + self.source.to_bytes(6, "big")
        tags = b"".join(tag.encode() for tag in self.tags)
        data = addresses + tags + self.ethertype.to_bytes(2, "big") + header + payload + crc
        return data + bytes(max(0, FRAME_MIN - len(data)))

    @classmethod
    def decode(cls, data: bytes, ethertype: int = ETHERTYPE) -> Frame:
        """The frame in ``data`` (destination address to padding, without FCS).

        Raises:
            FrameError: the bytes are not a good frame of this format and EtherType.
        """
        tags, start = split_tags(data)
        found = int.from_bytes(data[start - 2 : start], "big")
        if found != ethertype:
            raise FrameError(Reason.ETHERTYPE, f"{found:#06x}")
        header, payload = check_body(data[start:])
        addresses = int.from_bytes(data[:6], "big"), int.from_bytes(data[6:12], "big")
        if header.kind != Kind.DATA:
            return cls(*addresses, header, (), tags, ethertype, payload)
        operations, is_whole = split(payload)
        if not is_whole:
            raise FrameError(Reason.MALFORMED)
        return cls(*addresses, header, tuple(operations), tags, ethertype)


def split_tags(data: bytes) -> tuple[tuple[VlanTag, ...], int]:
    """The VLAN tags (two at the most) and the offset of what follows the EtherType.

    Raises:
        FrameError: RUNT, the bytes end before an EtherType.
    """
    tags: list[VlanTag] = []
    at = ETHERNET_HEADER - 2
    while len(tags) < MAX_TAGS and int.from_bytes(data[at : at + 2], "big") in VLAN_TPIDS:
        control = int.from_bytes(data[at + 2 : at + 4], "big")
        tags.append(
            VlanTag(control >> 13, control >> 12 & 1, control & 0xFFF, int.from_bytes(data[at : at + 2], "big"))
        )
        at += VLAN_TAG
    if len(data) < at + 2:
        raise FrameError(Reason.RUNT, f"{len(data)} bytes")
    return tuple(tags), at + 2


def check_body(body: bytes, mtu: int = MTU_MAX) -> tuple[FrameHeader, bytes]:
    """Header and payload of what follows the EtherType, if version, length and CRC are right.

    ``mtu`` is the most that a frame may have after its EtherType, padding aside, in bytes.

    Raises:
        FrameError: TRUNCATED, VERSION, MALFORMED, OVERLONG or CRC.
    """
    if len(body) < FrameHeader.SIZE:
        raise FrameError(Reason.TRUNCATED, f"{len(body)} bytes after the EtherType")
    header = FrameHeader.unpack(body)
    if header.version != VERSION:
        raise FrameError(Reason.VERSION, f"{header.version}")
    if header.length % GRID:
        raise FrameError(Reason.MALFORMED, f"{header.length} bytes of operations")
    end = FrameHeader.SIZE + header.length
    size = end + CRC_SIZE
    if len(body) < size:
        raise FrameError(Reason.TRUNCATED, f"{len(body)} bytes after the EtherType, not {size}")
    # A switch may add a tag to a padded frame or take one away, so padding is judged without tags.
    if size > mtu or len(body) > max(size, FRAME_MIN - ETHERNET_HEADER):
        raise FrameError(Reason.OVERLONG, f"{len(body)} bytes after the EtherType, not {size}")
    payload = body[FrameHeader.SIZE : end]
    if frame_crc_bytes(clear_mark(body[: FrameHeader.SIZE]), payload) != body[end:size]:
        raise FrameError(Reason.CRC)
    return header, payload


def clear_mark(header: bytes) -> bytes:
    """A packed frame header with its congestion mark 0, as the CRC takes it; all other bits stay as they are."""
    cleared = bytearray(header)
    cleared[_MARK // 8] &= 0xFF ^ 0x80 >> _MARK % 8
    return bytes(cleared)
