"""Segments given back: each once, none before all jobs that were given out before it have been sent."""

from __future__ import annotations

from collections import deque

import cocotb
from cocotb.triggers import ClockCycles

from block_environment import BlockEnvironment
from xoe_hdl.transport.page_store import segment
from xoe_tb import PAUSES, drive_struct, params

PAGES = params()["pages"]
SEGMENT = segment(PAGES)
COUNTS = 1 << 16  # jobs after which their numbers are round
JOBS = 8  # that may be given out and not sent
PASSING = 16
SOON = 8  # clocks from when a segment may go to when it is offered, if it is alone


class Bench(BlockEnvironment):
    """Drives jobs and segments in every clock, and knows which segments are away."""

    def __init__(self, dut) -> None:
        super().__init__(dut, {}, {"give_back": SEGMENT})
        self.quiet()

    def forget(self) -> None:
        super().forget()
        self.issued = self.sent = 0
        self.has_job = False  # one waits to be given out
        self.jobs: deque[bool] = deque()  # given out: whether each is of a frame that is kept
        self.held: deque[tuple[int, dict]] = deque()  # segments that wait, and the jobs to be sent before
        self.passing: list[dict] = []  # of frames that are not kept, sent
        self.late = 0  # clocks for which the first segment might have gone
        self.back = 0

    def quiet(self) -> None:
        dut = self.dut
        dut.issued.value = dut.waits.value = dut.free_valid.value = dut.sent_valid.value = dut.sent_is_kept.value = 0
        drive_struct(dut, "free_payload", SEGMENT, {})
        drive_struct(dut, "sent_segment", SEGMENT, {})

    async def idle(self, clocks: int) -> None:
        self.quiet()
        self.dut.waits.value = int(self.has_job)
        await self.clocks(clocks)

    def place(self, is_used: bool) -> dict[str, int]:
        """A segment whose first page no other has that is away; or noise."""
        rng = self.rng
        away = {place["first"] for place in (*self.passing, *(place for _, place in self.held))}
        first = rng.choice([page for page in range(PAGES) if page not in away]) if is_used else rng.randrange(PAGES)
        return {"first": first, "last": rng.randrange(PAGES), "pages": rng.randint(1, PAGES)}

    async def clock(self, gives: bool = False, sends: bool = False, frees: bool = False, passes: bool = False) -> None:
        """A clock, in which a job is given out (with ``has_job``), one is sent, or one that is not kept, or freed."""
        dut = self.dut
        gives = gives and self.has_job and len(self.jobs) < JOBS
        sends = sends and bool(self.jobs)
        frees = frees and len(self.held) + len(self.passing) < PAGES
        passes = passes and not sends and len(self.held) + frees + len(self.passing) < PAGES
        passes = passes and len(self.passing) < PASSING
        dut.waits.value, dut.issued.value = int(self.has_job), int(gives)
        dut.sent_valid.value, dut.sent_is_kept.value = int(sends or passes), int(sends or self.rng.random() < 0.5)
        if passes:
            dut.sent_is_kept.value = 0
        place = self.place(passes)
        freed = self.place(frees)
        while frees and passes and freed["first"] == place["first"]:
            freed = self.place(frees)
        drive_struct(dut, "sent_segment", SEGMENT, place)
        drive_struct(dut, "free_payload", SEGMENT, freed)
        dut.free_valid.value = int(frees)
        target = self.issued + self.has_job
        await self.edge
        if frees:
            self.held.append((target, freed))
        if passes:
            self.passing.append(place)
        if sends:
            self.jobs.popleft()
            self.sent += 1
        if gives:
            self.issued += 1
            self.jobs.append(True)
        self._wait()

    def _wait(self) -> None:
        may_go = bool(self.held) and self.held[0][0] <= self.sent and self.dut.give_back_tvalid.value == 0
        self.late = self.late + 1 if may_go and not self.passing else 0
        assert self.late < SOON, "a segment waits for nothing"

    def take_give_back(self, place: dict[str, int]) -> None:
        self.back += 1
        if place in self.passing:
            self.passing.remove(place)
            return
        target, expected = self.held.popleft()
        assert place == expected
        assert target <= self.sent, f"{target - self.sent} jobs are still to be sent"

    async def empty(self) -> None:
        """Send all that was given out; then every segment is back, and no other comes."""
        self.quiet()
        if self.has_job:
            while len(self.jobs) >= JOBS:
                await self.clock(sends=True)
            await self.clock(gives=True)
            self.has_job = False
        while self.jobs or self.held or self.passing:
            await self.clock(sends=True)
        await self.idle(20)
        assert self.dut.give_back_tvalid.value == 0


async def any_clocks(bench: Bench, count: int) -> None:
    rng = bench.rng
    for _ in range(count):
        gives = rng.random() < 0.7
        was = bench.issued
        await bench.clock(gives, rng.random() < 0.4, rng.random() < 0.3, rng.random() < 0.2)
        if bench.issued != was or not bench.has_job:  # a job that is offered stays
            bench.has_job = rng.random() < 0.6


@cocotb.test(timeout_time=300, timeout_unit="us")
@cocotb.parametrize(pause=list(PAUSES))
async def segments_and_jobs(dut, pause):
    bench = await Bench.started(dut, pause)
    for _ in range(20):
        await any_clocks(bench, 60)
        await bench.empty()
    assert bench.back > 100


@cocotb.test(timeout_time=300, timeout_unit="us")
async def a_segment_waits_for_the_jobs_before_it_alone(dut):
    """Those given out, and the one that is there to be; not for those that come later."""
    bench = await Bench.started(dut)
    for given in range(JOBS):
        for has_job in (False, True):
            for issues in (False, True):
                for _ in range(given):
                    bench.has_job = True
                    await bench.clock(gives=True)
                bench.has_job = has_job
                await bench.clock(gives=issues, frees=True)
                for _ in range(given + has_job - (has_job and not issues)):
                    assert bench.back == 0
                    await bench.clock(sends=True)
                await bench.idle(10)
                assert bench.back == (not has_job or issues)
                await bench.empty()
                bench.back, bench.has_job = 0, False


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_numbers_of_jobs_go_round(dut):
    bench = await Bench.started(dut)
    bench.sinks["give_back"].pause = None
    for before in (COUNTS // 2 - 20, COUNTS - 20):
        await any_clocks(bench, 100)
        await bench.empty()
        clocks = before - bench.issued
        dut.issued.value = dut.waits.value = dut.sent_valid.value = dut.sent_is_kept.value = 1
        await ClockCycles(dut.clk, clocks)
        bench.quiet()
        bench.issued, bench.sent = bench.issued + clocks, bench.sent + clocks
    await any_clocks(bench, 400)
    await bench.empty()


@cocotb.test(timeout_time=300, timeout_unit="us")
async def as_many_segments_as_there_are_pages(dut):
    bench = await Bench.started(dut)
    bench.sinks["give_back"].pause = lambda: True
    bench.has_job = True
    await bench.clock(gives=True)
    for _ in range(PASSING):
        await bench.clock(passes=PAGES > PASSING)
    for _ in range(PAGES):
        await bench.clock(frees=True)
    await bench.idle(20)
    bench.sinks["give_back"].pause = lambda: False
    await bench.empty()


@cocotb.test(timeout_time=300, timeout_unit="us")
async def resets_in_the_middle(dut):
    bench = await Bench.started(dut, "bursts")
    for _ in range(40):
        await any_clocks(bench, bench.rng.randrange(40))
        bench.quiet()
        await bench.reset()
        assert dut.give_back_tvalid.value == 0
    await any_clocks(bench, 100)
    await bench.empty()
