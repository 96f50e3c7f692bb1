"""The CAM model against plain interval arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xoe.cam import ENTRIES_MAX, PAGE_LOG2_MAX, PAGE_LOG2_MIN, Cam, CamError, Page, Translation, Window
from xoe.config import ConfigError
from xoe.header import FieldError

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
SIZES = range(PAGE_LOG2_MIN, PAGE_LOG2_MAX + 1)


def page(address, size_log2, space=1, base=0):
    return Page(space, address, size_log2, Translation(base=base, qp=5))


@pytest.mark.parametrize("size", SIZES)
def test_page_bounds(size):
    cam = Cam(4)
    start, bytes_ = 3 << size, 1 << size
    assert cam.write(2, page(start, size, base=5 << size)) == CamError.OK
    assert not cam.lookup(1, start - 1, 1).hit
    assert not cam.lookup(1, start + bytes_, 1).hit
    assert not cam.lookup(2, start, 1).hit
    first, last = cam.lookup(1, start, 256), cam.lookup(1, start + bytes_ - 1, 1)
    assert (first.hit, first.crosses, first.index, first.address) == (True, False, 2, 5 << size)
    assert (last.hit, last.crosses, last.address) == (True, False, (6 << size) - 1)
    assert first.payload == Translation(base=5 << size, qp=5)
    for length in (1, 2, 255, 256, 511):
        assert not cam.lookup(1, start + bytes_ - length, length).crosses
        assert cam.lookup(1, start + bytes_ - length, length + 1 if length < 511 else 511).crosses == (length < 511)
    assert not cam.lookup(1, start + bytes_ - 1, 0).crosses


def test_top_of_the_address_space():
    cam = Cam(1)
    top = (1 << 64) - GB
    assert cam.write(0, page(top, 30, base=top)) == CamError.OK
    assert not cam.lookup(1, (1 << 64) - 1, 1).crosses
    assert cam.lookup(1, (1 << 64) - 1, 2).crosses
    assert cam.lookup(1, (1 << 64) - 1, 1).address == (1 << 64) - 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("other", SIZES)
def test_overlap(size, other):
    large = 1 << max(size, other)
    cam = Cam(2)
    assert cam.write(0, page(4 * large, size)) == CamError.OK
    assert cam.write(1, page(4 * large, other)) == CamError.OVERLAP
    assert cam.write(1, page(4 * large + (1 << size) - (1 << other), other)) in (CamError.OVERLAP, CamError.MISALIGNED)
    assert cam.pages[1] is None
    assert cam.write(1, page(4 * large - (1 << other), other)) == CamError.OK
    assert cam.write(1, page(5 * large, other)) == CamError.OK
    assert cam.write(1, page(4 * large, other, space=2)) == CamError.OK
    assert cam.write(0, page(4 * large, other)) == CamError.OK, "an entry does not overlap what it replaces"


def test_refusals_change_nothing_and_come_in_order():
    cam = Cam(2)
    good = page(8 * KB, 13, base=16 * KB)
    assert cam.write(1, good) == CamError.OK
    assert cam.write(2, page(1, 99)) == CamError.BAD_INDEX
    assert cam.write(-1, None) == CamError.BAD_INDEX
    assert cam.write(1, page(1, 11)) == CamError.BAD_SIZE
    assert cam.write(1, page(0, 31)) == CamError.BAD_SIZE
    assert cam.write(0, page(12 * KB, 13)) == CamError.MISALIGNED
    assert cam.write(1, page(8 * KB, 13, base=4 * KB)) == CamError.MISALIGNED
    assert cam.write(0, page(12 * KB, 12)) == CamError.OVERLAP
    assert cam.pages == [None, good]


def test_replace_and_invalidate():
    cam = Cam(2)
    assert cam.write(0, page(0, 12)) == CamError.OK
    assert cam.write(0, page(MB, 20)) == CamError.OK
    assert not cam.lookup(1, 0, 1).hit
    assert cam.lookup(1, MB, 1).hit
    assert cam.write(0, None) == CamError.OK
    assert cam.write(0, None) == CamError.OK
    assert not cam.lookup(1, MB, 1).hit


def test_payload_without_base_keeps_the_address():
    cam = Cam(1)
    assert cam.write(0, Page(7, 4 * MB, 22, Window(rights=3))) == CamError.OK
    found = cam.lookup(7, 5 * MB, 64)
    assert (found.address, found.payload) == (5 * MB, Window(rights=3))


@pytest.mark.parametrize("entries", [0, -1, ENTRIES_MAX + 1, 1.5, True])
def test_entries_out_of_bounds(entries):
    with pytest.raises(ConfigError, match=f"^entries must be an integer from 1 to 256, not {entries!r}$"):
        Cam(entries)


def test_values_that_do_not_fit():
    with pytest.raises(FieldError, match=r"^Page.space must be 0..0xffff, not 65536$"):
        Page(1 << 16, 0, 12, None)
    with pytest.raises(FieldError, match=r"^Page.address must be 0..0xffffffffffffffff, not -1$"):
        Page(0, -1, 12, None)
    for values in [(1 << 16, 0, 1), (0, 1 << 64, 1), (0, 0, 512), (0, 0, -1)]:
        with pytest.raises(FieldError):
            Cam(1).lookup(*values)


@st.composite
def writes(draw):
    size = draw(st.integers(11, 31) | st.sampled_from([12, 13, 14]))
    address = (draw(st.integers(0, 4)) << size) + draw(st.sampled_from([0, 0, 0, 1, 4 * KB]))
    base = draw(st.integers(0, 3)) << draw(st.sampled_from([size, size, size, 12]))
    return draw(st.integers(0, 4)), draw(st.none() | st.just(page(address, size, draw(st.integers(1, 2)), base)))


@given(st.lists(writes(), max_size=12), st.integers(1, 2), st.integers(0, 5 << 14), st.integers(0, 511))
def test_like_intervals(operations, space, address, length):
    cam, expected = Cam(4), {}
    for index, entry in operations:
        error = cam.write(index, entry)
        if index >= 4:
            assert error == CamError.BAD_INDEX
            continue
        if entry is None:
            assert error == CamError.OK
            expected.pop(index, None)
            continue
        start, end = entry.address, entry.address + (1 << entry.size_log2)
        sharing = any(
            key != index and one.space == entry.space and start < low + (1 << one.size_log2) and low < end
            for key, one in expected.items()
            for low in [one.address]
        )
        is_aligned = start % (end - start) == 0 and entry.payload.base % (end - start) == 0
        is_good = 12 <= entry.size_log2 <= 30 and is_aligned and not sharing
        assert (error == CamError.OK) == is_good
        if is_good:
            expected[index] = entry
    owners = [
        key
        for key, one in expected.items()
        if one.space == space and one.address <= address < one.address + (1 << one.size_log2)
    ]
    found = cam.lookup(space, address, length)
    assert [found.index] * found.hit == owners
    if owners:
        owner = expected[owners[0]]
        assert found.crosses == (address + length > owner.address + (1 << owner.size_log2))
        assert found.address == owner.payload.base + address - owner.address
