"""A memory for the models: bytes, most of them never touched."""

from __future__ import annotations

PAGE = 4096  # bytes kept together


class MemoryRangeError(ValueError):
    """An access that does not lie wholly inside the memory; nothing was read or written."""


class Memory:
    """Bytes from address 0 to ``size`` - 1, all 0 at first; pages come into being when they are written.

    Raises:
        ValueError: ``size`` is not 1 to 2**64 bytes.
    """

    def __init__(self, size: int = 1 << 64) -> None:
        if not 1 <= size <= 1 << 64:
            raise ValueError(f"size must be 1 to 2**64 bytes, not {size!r}")
        self.size = size
        self._pages: dict[int, bytearray] = {}

    def read(self, address: int, length: int) -> bytes:
        """``length`` bytes from ``address`` on.

        Raises:
            MemoryRangeError: some of them are outside the memory.
        """
        self._check(address, length)
        found = bytearray()
        while len(found) < length:
            page, offset = divmod(address + len(found), PAGE)
            count = min(PAGE - offset, length - len(found))
            held = self._pages.get(page)
            found += held[offset : offset + count] if held else bytes(count)
        return bytes(found)

    def write(self, address: int, data: bytes) -> None:
        """Replace the bytes from ``address`` on by ``data``.

        Raises:
            MemoryRangeError: some of them are outside the memory.
        """
        self._check(address, len(data))
        at = 0
        while at < len(data):
            page, offset = divmod(address + at, PAGE)
            count = min(PAGE - offset, len(data) - at)
            self._pages.setdefault(page, bytearray(PAGE))[offset : offset + count] = data[at : at + count]
            at += count

    def pages(self) -> list[int]:
        """The addresses of the pages that have been written, ascending; all else is 0."""
        return sorted(page * PAGE for page in self._pages)

    def _check(self, address: int, length: int) -> None:
        if length < 0 or not 0 <= address <= self.size - length:
            raise MemoryRangeError(f"{length} bytes at {address:#x} do not lie in a memory of {self.size:#x} bytes")
