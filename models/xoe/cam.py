"""The masked CAM: fully associative, a page size of its own for each entry.

It is used twice, with different payloads: for translation (``Translation``), where the requester looks up a virtual
address in an address space, and for the responder's windows (``Window``), where the space is the source node.
"""

from __future__ import annotations

import dataclasses
from enum import IntEnum
from typing import Generic, TypeVar

from .config import check_range
from .header import FieldError

ENTRIES_MAX = 256
PAGE_LOG2_MIN, PAGE_LOG2_MAX = 12, 30  # log2 of bytes: pages of 4 KB to 1 GB
ADDRESS_BITS, SPACE_BITS, LENGTH_BITS = 64, 16, 9

PayloadT = TypeVar("PayloadT")


class CamError(IntEnum):
    """How a write ended; any but OK changed nothing.

    The tests come in the order BAD_INDEX, BAD_SIZE, MISALIGNED, OVERLAP; an invalidation only has the first.
    """

    OK = 0
    OVERLAP = 1  # a byte of the page belongs to another valid entry of the same space
    BAD_SIZE = 2  # log2 of the page size is not 12..30
    MISALIGNED = 3  # the page's address, or its payload's base, is no multiple of the page size
    BAD_INDEX = 4  # there is no such entry


def check_field(name: str, value: int, width: int) -> None:
    """Raise FieldError unless ``value`` is an unsigned number of ``width`` bits."""
    if not 0 <= value < 1 << width:
        raise FieldError(f"{name} must be 0..{(1 << width) - 1:#x}, not {value!r}")


@dataclasses.dataclass(frozen=True)
class Translation:
    """What the translation CAM holds for a page.

    Attributes:
        base: remote address of the page's first byte, 64 bits, a multiple of the page size.
        mac: who has the page: Ethernet address, 48 bits.
        node: its node id, 16 bits.
        qp: the queue pair to use, 12 bits.
        rights: what may be done, bits of ``Rights``.
        coherence: the page's coherence state, 3 bits, kept for later use.
    """

    base: int = 0
    mac: int = 0
    node: int = 0
    qp: int = 0
    rights: int = 0
    coherence: int = 0


@dataclasses.dataclass(frozen=True)
class Window:
    """What the responder's window table holds for a range and the node that may touch it: bits of ``Rights``."""

    rights: int = 0


@dataclasses.dataclass(frozen=True)
class Page(Generic[PayloadT]):
    """An entry: a page of ``1 << size_log2`` bytes at ``address`` (64 bits) in ``space`` (16 bits).

    Raises:
        FieldError: an address or a space that does not fit its field.
    """

    space: int
    address: int
    size_log2: int
    payload: PayloadT

    def __post_init__(self) -> None:
        check_field("Page.space", self.space, SPACE_BITS)
        check_field("Page.address", self.address, ADDRESS_BITS)

    def holds(self, space: int, address: int) -> bool:
        """Whether the byte at ``address`` of ``space`` is in this page."""
        return space == self.space and address >> self.size_log2 == self.address >> self.size_log2

    def overlaps(self, other: Page[PayloadT]) -> bool:
        """Whether the pages share a byte: being aligned, one then holds the first byte of the other."""
        return self.holds(other.space, other.address) or other.holds(self.space, self.address)

    def check(self) -> CamError:
        """What is wrong with the page by itself: OK, BAD_SIZE or MISALIGNED."""
        if not PAGE_LOG2_MIN <= self.size_log2 <= PAGE_LOG2_MAX:
            return CamError.BAD_SIZE
        if (self.address | getattr(self.payload, "base", 0)) % (1 << self.size_log2):
            return CamError.MISALIGNED
        return CamError.OK


@dataclasses.dataclass(frozen=True)
class Result(Generic[PayloadT]):
    """What a look-up found; after a miss only ``hit`` means anything.

    Attributes:
        hit: a page holds the first byte.
        crosses: the last byte is past the end of that page.
        index: the page's entry.
        address: the payload's ``base`` plus the offset in the page; the address looked up if the payload has no base.
        payload: the page's payload.
    """

    hit: bool
    crosses: bool = False
    index: int = 0
    address: int = 0
    payload: PayloadT | None = None


class Cam(Generic[PayloadT]):
    """A CAM of ``entries`` pages, 1..256, all invalid at first.

    Raises:
        ConfigError: ``entries`` out of bounds.
    """

    def __init__(self, entries: int) -> None:
        check_range("entries", entries, 1, ENTRIES_MAX)
        self.pages: list[Page[PayloadT] | None] = [None] * entries

    def write(self, index: int, page: Page[PayloadT] | None) -> CamError:
        """Replace entry ``index`` by ``page``, or invalidate it (None); a refused write changes nothing."""
        if not 0 <= index < len(self.pages):
            return CamError.BAD_INDEX
        if page is not None:
            if error := page.check():
                return error
            others = self.pages[:index] + self.pages[index + 1 :]
            if any(other is not None and other.overlaps(page) for other in others):
                return CamError.OVERLAP
        self.pages[index] = page
        return CamError.OK

    def lookup(self, space: int, address: int, length: int) -> Result[PayloadT]:
        """Find the page of ``length`` bytes (0..511) at ``address`` of ``space``.

        Raises:
            FieldError: a value that does not fit its field.
        """
        check_field("space", space, SPACE_BITS)
        check_field("address", address, ADDRESS_BITS)
        check_field("length", length, LENGTH_BITS)
        for index, page in enumerate(self.pages):
            if page is not None and page.holds(space, address):
                offset = address - page.address
                crosses = offset + length > 1 << page.size_log2
                base = getattr(page.payload, "base", page.address)
                return Result(True, crosses, index, base + offset, page.payload)
        return Result(False)
