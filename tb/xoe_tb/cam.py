"""A bench for the CAM: its model beside it, clock by clock."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable
from random import Random
from typing import Any

import cocotb
from amaranth.lib import data
from cocotb.triggers import RisingEdge

from xoe.cam import LENGTH_BITS, CamError, Page, Translation, Window
from xoe.cam import Cam as Model
from xoe_hdl.cam import Cam, result_layout
from xoe_hdl.cam_writer import write_layout

from .bench import read_struct
from .layout import pack
from .stream import StreamSource

Lookup = tuple[int, int, int]
"""Space, address, length."""


class CamBench:
    """Drives look-ups and writes, and compares every result and every outcome, and when they come, with the model."""

    def __init__(self, dut: Any, entries: int, payload: data.StructLayout) -> None:
        self.dut, self.entries, self.payload = dut, entries, payload
        self.rng = Random(cocotb.RANDOM_SEED)
        self.writer = StreamSource(dut, "write")
        self.has_base = "base" in payload.members
        self.now = 0
        self.hits: list[int] = []  # entries hit, in order
        self.written: list[tuple[int, CamError]] = []  # clock and outcome of each write
        self._result = result_layout(payload)
        self._ports = (dut.lookup_space, dut.lookup_address, dut.lookup_length)
        self._driven: Lookup | None = (0, 0, 0)
        self._in_reset = False
        self._edge = RisingEdge(dut.clk)
        self.drop()
        self._drive(None)

    def drop(self) -> None:
        """A reset: nothing is valid, nothing under way."""
        self.model = Model(self.entries)
        self.pending: deque[tuple[int, Page | None]] = deque()
        self.expected: deque[tuple[int, dict]] = deque()

    def page(self, size: int, address: int, space: int = 1, base: int | None = None) -> Page:
        """A page with a random payload."""
        values = {name: self.rng.getrandbits(shape) for name, shape in self.payload.members.items()}
        if self.has_base:
            values["base"] = self.rng.getrandbits(64) >> size << size if base is None else base
        return Page(space, address, size, (Translation if self.has_base else Window)(**values))

    def send(self, index: int, page: Page | None) -> None:
        """Queue a write; a page of None invalidates."""
        fields = {"index": index, "valid": 0, "size_log2": self.rng.getrandbits(5)}
        if page:
            fields |= {"valid": 1, **dataclasses.asdict(page)}
        self.writer.send(pack(write_layout(self.payload), fields))
        self.pending.append((index, page))

    async def write(self, index: int, page: Page | None) -> CamError:
        """Write and wait for the outcome, which is compared with the model's."""
        self.send(index, page)
        await self.settle()
        return self.written[-1][1]

    async def settle(self, lookups: Iterable[Lookup | None] = ()) -> None:
        """Give look-ups, one a clock, until all writes are done and all results are there."""
        for lookup in lookups:
            await self.clock(lookup)
        while self.pending or self.expected:
            await self.clock()

    async def clock(self, lookup: Lookup | None = None) -> None:
        """One clock, in which this look-up is given."""
        self._drive(lookup)
        await self._edge
        self.now += 1
        if self.dut.written_valid.value == 1:
            self._check_written()
        if lookup:
            found = dataclasses.asdict(self.model.lookup(*lookup))
            self.expected.append((self.now + Cam.latency, found))
        is_due = bool(self.expected) and self.expected[0][0] == self.now
        assert self.dut.result_valid.value == is_due, f"clock {self.now}: valid is {self.dut.result_valid.value}"
        if is_due:
            self._check_result(self.expected.popleft()[1])
        if self._in_reset:
            self.drop()

    def _drive(self, lookup: Lookup | None) -> None:
        """Change the ports that have to change; a bench spends most of its time on them."""
        if lookup != self._driven:
            self._driven = lookup
            self.dut.lookup_valid.value = lookup is not None
            for port, value in zip(self._ports, lookup or (1, self.rng.getrandbits(64), 1), strict=True):
                port.value = value

    def _check_written(self) -> None:
        assert self.pending, f"clock {self.now}: an outcome without a write"
        index, page = self.pending.popleft()
        outcome = CamError(self.dut.written_error.value.to_unsigned())
        expected = self.model.write(index, page)
        assert outcome == expected, f"clock {self.now}: {index} {page}: {outcome!r} instead of {expected!r}"
        self.written.append((self.now, outcome))

    def _check_result(self, expected: dict) -> None:
        found = read_struct(self.dut, "result", self._result)
        assert found["hit"] == expected["hit"], f"clock {self.now}: {found} instead of {expected}"
        if expected["hit"]:
            self.hits.append(expected["index"])
            assert found == {"valid": 1, **expected}, f"clock {self.now}: {found} instead of {expected}"

    async def reset(self, clocks: int = 1) -> None:
        """Reset the design while look-ups go on."""
        self.dut.rst.value = self._in_reset = True
        for _ in range(clocks):
            await self.clock((1, 0, 1))
        self.dut.rst.value = self._in_reset = False
        await self.clock()  # the source begins anew

    def around(self, page: Page) -> list[Lookup]:
        """Look-ups at the bounds of a page, and lengths that just fit or pass the end by one byte."""
        end = page.address + (1 << page.size_log2)
        places = [(page.address, 256), (page.address, 0), (page.address - 1, 2), (end, 1), (end - 1, 0)]
        for length in (1, 2, 8, 255, 256, self.rng.randrange(1, 511)):
            places += [(end - length, length), (end - length, length + 1)]
        return [(space, at % (1 << 64), length) for at, length in places for space in (page.space, page.space ^ 1)]

    def near(self, pages: Iterable[Page | None]) -> Lookup:
        """A look-up that most likely has to do with one of the pages."""
        page = self.rng.choice([one for one in pages if one] or [self.page(12, 0)])
        size = 1 << page.size_log2
        offset = self.rng.choice((0, -1, size - 1, size, size - 256, self.rng.randrange(size)))
        length = self.rng.choice((0, 1, 4, 8, 64, 255, 256, self.rng.randrange(1 << LENGTH_BITS)))
        return page.space, (page.address + offset) % (1 << 64), length
