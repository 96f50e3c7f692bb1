"""The end-to-end CRC-32, as arithmetic on plain integers.

The polynomial, initial value and final inversion are those of the Ethernet FCS (IEEE 802.3 3.2.9), reflected. It is
computed over a frame's operations first and over its frame header last, with the congestion mark taken as 0. The order
lets a sender finish the operations' part while a frame is being gathered, and settle the header (acknowledgement,
credits) at the last moment. Switches may mark without touching it.

``xoe_hdl.crc`` derives its XOR trees from ``advance`` and ``rewind``.
"""

from __future__ import annotations

import zlib

from .wire import CRC_SIZE

POLYNOMIAL = 0xEDB88320  # reflected
INITIAL = 0xFFFFFFFF
INVERT = 0xFFFFFFFF


def _shift(state: int) -> int:
    return state >> 1 ^ (POLYNOMIAL if state & 1 else 0)


def _table_entry(byte: int) -> int:
    for _ in range(8):
        byte = _shift(byte)
    return byte


_TABLE = tuple(_table_entry(byte) for byte in range(256))


def advance(state: int, data: bytes) -> int:
    """The 32-bit register after ``data``, without initial value or final inversion. Linear in both."""
    for byte in data:
        state = _TABLE[(state ^ byte) & 0xFF] ^ state >> 8
    return state


def rewind(state: int, zeros: int) -> int:
    """The register before ``zeros`` bytes of 0 brought it to ``state``: the inverse of ``advance``."""
    for _ in range(8 * zeros):
        # The polynomial's top bit is set, so bit 31 tells whether the last shift was reduced.
        state = (state ^ POLYNOMIAL) << 1 | 1 if state >> 31 else state << 1
    return state


def crc32(data: bytes) -> int:
    """CRC-32 of ``data`` as the Ethernet FCS has it: ``advance(INITIAL, data) ^ INVERT``, but faster."""
    return zlib.crc32(data)


def frame_crc(header: bytes, operations: bytes) -> int:
    """The end-to-end CRC of a frame, from its header (mark cleared) and its operations."""
    return crc32(operations + header)


def frame_crc_bytes(header: bytes, operations: bytes) -> bytes:
    """The CRC as it is sent: 4 bytes, most significant first, like every field."""
    return frame_crc(header, operations).to_bytes(CRC_SIZE, "big")
