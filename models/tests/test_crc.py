import random
import zlib
from pathlib import Path

import pytest

from xoe.crc import INITIAL, INVERT, advance, crc32, frame_crc, frame_crc_bytes, rewind

VECTORS = Path(__file__).parents[3] / "shared" / "inputs" / "vectors" / "fcs_crc32.txt"
RESIDUE = 0x2144DF1C  # over a message and its CRC, least significant byte first


def test_check_value():
    assert crc32(b"123456789") == 0xCBF43926


def test_against_zlib():
    rng = random.Random(1)
    for size in (*range(70), 1500, 9000):
        data = rng.randbytes(size)
        assert crc32(data) == zlib.crc32(data) == advance(INITIAL, data) ^ INVERT


def message(text: str) -> bytes:
    """The bytes of a line such as ``31 32``, ``(1514 x ff)`` or ``(1514 ramp i&255)``."""
    if not text.startswith("("):
        return bytes.fromhex(text)
    size, kind, value = text.strip("()").split()
    return bytes(at & 255 for at in range(int(size))) if kind == "ramp" else bytes.fromhex(value) * int(size)


def test_published_values():
    if not VECTORS.exists():
        pytest.skip(f"{VECTORS.name} is not there")
    rows = [line.split(" | ") for line in VECTORS.read_text().splitlines() if line.startswith(("CRC-32/ISO", "frame"))]
    assert len(rows) == 7
    for name, text, expected, *_ in rows:
        assert f"{crc32(message(text)):08x}" == expected, name


def test_residue():
    data = random.Random(2).randbytes(100)
    assert crc32(data + crc32(data).to_bytes(4, "little")) == RESIDUE


def test_rewind_undoes_zeros():
    rng = random.Random(3)
    for zeros in (0, 1, 7, 8, 64):
        state = rng.getrandbits(32)
        assert rewind(advance(state, bytes(zeros)), zeros) == state
        assert advance(rewind(state, zeros), bytes(zeros)) == state


def test_advance_is_linear():
    rng = random.Random(4)
    one, two = rng.randbytes(20), rng.randbytes(20)
    both = bytes(a ^ b for a, b in zip(one, two, strict=True))
    assert advance(5 ^ 9, both) == advance(5, one) ^ advance(9, two)


def test_frame_crc_takes_operations_first():
    header, operations = b"header", b"operations"
    assert frame_crc(header, operations) == zlib.crc32(operations + header)
    assert frame_crc(header, b"") == advance(INITIAL, header) ^ INVERT
    assert frame_crc_bytes(header, operations) == zlib.crc32(operations + header).to_bytes(4, "big")
