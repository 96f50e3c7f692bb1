"""The models' memory."""

import pytest

from xoe.memory import Memory, MemoryRangeError


def test_is_zero_at_first():
    assert Memory().read(0x1FFF_FFFF_F123, 5) == bytes(5)


def test_reads_back_across_pages_and_leaves_the_neighbours():
    memory = Memory()
    data = bytes(range(1, 201)) * 50
    memory.write(4096 - 7, data)
    assert memory.read(4096 - 8, len(data) + 2) == b"\0" + data + b"\0"
    assert memory.pages() == [0, 4096, 8192, 12288]


def test_holds_the_last_byte_of_the_address_space():
    memory = Memory()
    memory.write((1 << 64) - 2, b"ab")
    assert memory.read((1 << 64) - 2, 2) == b"ab"
    with pytest.raises(MemoryRangeError):
        memory.read((1 << 64) - 2, 3)


@pytest.mark.parametrize(("address", "length"), [(-1, 1), (0x1000, 1), (0xFFF, 2), (0, 0x1001), (0, -1)])
def test_refuses_what_is_outside(address, length):
    with pytest.raises(MemoryRangeError, match="do not lie in a memory of 0x1000 bytes"):
        Memory(0x1000).read(address, length)


def test_a_write_that_is_refused_changes_nothing():
    memory = Memory(0x1000)
    with pytest.raises(MemoryRangeError):
        memory.write(0xFFE, b"abc")
    assert memory.read(0xFFE, 2) == bytes(2)


@pytest.mark.parametrize("size", [0, -1, (1 << 64) + 1])
def test_refuses_impossible_sizes(size):
    with pytest.raises(ValueError, match="size must be 1 to 2"):
        Memory(size)
