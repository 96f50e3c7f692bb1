"""A page store beside its model, clock by clock."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any, NamedTuple

import cocotb
from cocotb.triggers import RisingEdge

from xoe_hdl.transport.page_store import segment
from xoe_tb import pack, params, read_struct, reset, start

WIDTH, ROWS, PAGES, MARGIN = (params()[name] for name in ("width", "rows", "pages", "margin"))
SEGMENT = segment(PAGES)


def pages_of(rows: int) -> int:
    """Pages that a frame of ``rows`` rows takes."""
    return -(-rows // ROWS)


class Frame(NamedTuple):
    """A stored frame: where it is, and its rows."""

    place: dict[str, int]
    rows: list[int]


class Fetch(NamedTuple):
    """A fetch, at the page given or else going on, and the row that it must bring."""

    page: int | None
    row: int


class PageStoreBench:
    """Does what stands in three queues, an entry a clock, and compares every port in every clock with the model.

    A row that begins a page waits until the model has one free. ``stored`` are the frames that were written and are
    not to be given back.
    """

    def __init__(self, dut: Any) -> None:
        self.dut, self.rng = dut, Random(cocotb.RANDOM_SEED)
        self.to_write: deque[tuple[int, bool]] = deque()  # rows, and whether it is the frame's last
        self.to_fetch: deque[Fetch] = deque()
        self.to_free: deque[Frame] = deque()
        self.stored: list[Frame] = []
        self._edge = RisingEdge(dut.clk)
        self._drop()
        self._drive(None, None, False)

    def _drop(self) -> None:
        """What is true after a reset."""
        for queue in (self.to_write, self.to_fetch, self.to_free, self.stored):
            queue.clear()
        self.free = 0
        self._fresh = PAGES  # pages that were not queued since the reset
        self._returns: deque[int] = deque()  # clock by clock, whether a page given back is queued
        self._queued = deque([0, 0])  # the same for all pages, until they count as free
        self._rows: list[int] = []  # of the frame that is being written
        self._written: list[int] | None = None  # of the one that was finished in the clock before
        self._row: int | None = None  # what was fetched in the clock before
        self._held: set[int] = set()  # first and last pages of all frames
        self._waits = False

    async def start(self) -> None:
        """Start the clock and reset; returns when all pages are free."""
        await start(self.dut)
        self._follow(None, None, False)
        await self.idle(PAGES + 3)
        assert self.free == PAGES

    async def reset(self) -> None:
        """Reset in the middle of whatever goes on; the store is empty then."""
        self.dut.rst.value = 1
        for _ in range(self.rng.randint(1, 3)):
            await self._edge
        self._drop()
        self._drive(None, None, False)
        await reset(self.dut, 1)
        self._follow(None, None, False)

    def write(self, rows: int) -> None:
        """Queue a frame of random rows."""
        self.to_write.extend((self.rng.getrandbits(WIDTH), row == rows - 1) for row in range(rows))

    def fetch(self, frame: Frame, rows: int | None = None) -> None:
        """Queue the fetches of a stored frame, or of its first rows."""
        first = frame.place["first"]
        self.to_fetch.extend(Fetch(None if at else first, row) for at, row in enumerate(frame.rows[:rows]))

    def give_back(self, frame: Frame) -> None:
        """Queue a stored frame to be freed."""
        self.stored.remove(frame)
        self.to_free.append(frame)

    async def idle(self, clocks: int) -> None:
        """Let time pass."""
        for _ in range(clocks):
            await self.clock(writes=False, fetches=False, frees=False)

    async def settle(self) -> None:
        """Do all that is queued, and see that every page is free that no frame has."""
        while self.to_write or self.to_fetch or self.to_free:
            await self.clock()
        await self.idle(2 * PAGES + 6)
        assert self.free == PAGES - sum(frame.place["pages"] for frame in self.stored)

    async def clock(self, writes: bool = True, fetches: bool = True, frees: bool = True) -> bool:
        """A clock, in which the heads of the queues are done that are not held back; says whether a row was written."""
        writes = writes and bool(self.to_write) and (self.free > 0 or len(self._rows) % ROWS > 0)
        row = self.to_write.popleft() if writes else None
        fetch = self.to_fetch.popleft() if fetches and self.to_fetch else None
        self._waits = self._waits or (frees and bool(self.to_free))
        self._drive(row, fetch, self._waits)
        await self._edge
        self._compare()
        is_ready = len(self._returns) <= 1
        assert self.dut.give_back_tready.value == is_ready
        self._follow(row, fetch, self._waits and is_ready)
        return row is not None

    def _drive(self, row: tuple[int, bool] | None, fetch: Fetch | None, frees: bool) -> None:
        """Put a clock's inputs at the ports, and noise where nothing is valid."""
        dut, noise = self.dut, self.rng.getrandbits
        dut.write_valid.value, dut.fetch.value, dut.give_back_tvalid.value = row is not None, fetch is not None, frees
        dut.write_data.value, dut.write_last.value = row or (noise(WIDTH), noise(1))
        page = fetch.page if fetch else None
        dut.fetch_first.value = page is not None if fetch else noise(1)
        dut.fetch_page.value = self.rng.randrange(PAGES) if page is None else page
        place = self.to_free[0].place if frees else {name: self.rng.randrange(PAGES) for name in SEGMENT.members}
        dut.give_back_tdata.value = pack(SEGMENT, place)

    def _compare(self) -> None:
        """Hold the outputs against the model."""
        dut = self.dut
        assert dut.free.value == self.free
        assert dut.room.value == (self.free >= MARGIN)
        assert dut.written_valid.value == (self._written is not None)
        if self._row is not None:
            assert dut.row.value == self._row
        if self._written is not None:
            place = read_struct(dut, "written", SEGMENT)
            ends = {place["first"], place["last"]}
            assert place["pages"] == pages_of(len(self._written))
            assert len(ends) == min(2, place["pages"])
            assert not ends & self._held, "a page has two owners"
            self._held |= ends
            self.stored.append(Frame(place, self._written))

    def _follow(self, row: tuple[int, bool] | None, fetch: Fetch | None, frees: bool) -> None:
        """Let the model take a clock's inputs."""
        is_return = bool(self._returns and self._returns.popleft())
        is_fresh = not is_return and self._fresh > 0
        self._fresh -= is_fresh
        self._queued.append(is_return or is_fresh)
        self.free += self._queued.popleft()
        self._written, self._row = None, fetch.row if fetch else None
        if row:
            self.free -= len(self._rows) % ROWS == 0
            self._rows.append(row[0])
            if row[1]:
                self._written, self._rows = self._rows, []
        if frees:
            place, self._waits = self.to_free.popleft().place, False
            self._held -= {place["first"], place["last"]}
            self._returns.extend(([1, 0] * place["pages"])[:-1])
