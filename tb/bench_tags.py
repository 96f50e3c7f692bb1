"""The table of tags held against its model, clock by clock."""

from __future__ import annotations

from collections import deque
from random import Random

import cocotb
from cocotb.triggers import RisingEdge

from xoe.tags import TAG_BITS, Tags
from xoe_hdl.requester.atomics_limit import owner
from xoe_hdl.requester.command_check import RECORD
from xoe_hdl.requester.timeouts import CLOCKS, EXPIRED
from xoe_hdl.transport.connection_layouts import entry_layout
from xoe_tb import drive_struct, params, reset, start, unpack

TAGS = params()["tags"]
GIVEN = params()["given"]  # tags, in the longest test
LATENCY = 2  # clocks from an answer to what came of it
MODEL: Tags[int] = Tags(TAGS)  # one for all tests: generations outlive them


class TagsBench:
    """Takes tags and answers them; what comes of each answer is compared with the model."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.rng = Random(cocotb.RANDOM_SEED)
        self.edge = RisingEdge(dut.clk)
        self.out: list[int] = []  # tags in flight
        self.given = 0
        self.expired: list[int] = []
        self.expected: deque[int | str | None] = deque(["nothing"] * LATENCY)
        drive_struct(dut, "record", RECORD, {})
        drive_struct(dut, "owner", owner(4), {"epoch": 9})
        drive_struct(dut, "scan", entry_layout(), {"is_open": 1, "epoch": 9})
        for port in ("free_tready", "answer_valid", "answer_tag", "expired_tready", "timeout"):
            getattr(dut, port).value = 0

    async def start(self, timeout: int = 0) -> None:
        await start(self.dut)
        MODEL.reset()
        self.dut.timeout.value = timeout

    async def reset(self) -> None:
        self.dut.free_tready.value = self.dut.answer_valid.value = 0
        await reset(self.dut)
        self.expected = deque(["nothing"] * LATENCY)
        self.out.clear()
        MODEL.reset()

    async def clock(self, take: bool = False, answer: int | None = None, take_expired: bool = False) -> None:
        """One clock, in which a tag is taken if there is one, an answer given, what expired taken."""
        dut, record = self.dut, self.given % (1 << 16)
        dut.free_tready.value = take
        dut.expired_tready.value = take_expired
        dut.record_id.value = record
        dut.answer_valid.value = answer is not None
        dut.answer_tag.value = answer or 0
        await self.edge
        self._check_answer()
        if take and dut.free_tvalid.value == 1:
            tag = dut.free_tdata.value.to_unsigned()
            assert tag == MODEL.give(record)
            self.out.append(tag)
            self.given += 1
        self.expected.append("nothing" if answer is None else MODEL.retire(answer))
        if take_expired and dut.expired_tvalid.value == 1:
            self.expired.append(unpack(EXPIRED, dut.expired_tdata.value.to_unsigned())["tag"])

    def _check_answer(self) -> None:
        wanted = self.expected.popleft()
        is_good = self.dut.answered_is_good.value == 1
        assert is_good == isinstance(wanted, int)
        if is_good:
            assert self.dut.answered_record_id.value.to_unsigned() == wanted

    async def settle(self) -> None:
        for _ in range(LATENCY + 2):
            await self.clock()
        assert self.dut.in_flight.value.to_unsigned() == len(MODEL.in_flight)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def tags_go_around(dut):
    """Some answers come twice, some with a generation that is over or to come."""
    bench = TagsBench(dut)
    await bench.start()
    while bench.given < GIVEN:
        answer, draw = None, bench.rng.random()
        if bench.out and draw < 0.9:
            place = bench.rng.randrange(len(bench.out)) if len(bench.out) < 8 else bench.rng.randrange(8)
            answer = bench.out.pop(place)
            if draw < 0.05:
                await bench.clock(True, answer)
        elif bench.out and draw < 0.95:
            answer = (bench.rng.choice(bench.out) + bench.rng.choice((-1, 1)) * TAGS) % (1 << TAG_BITS)
        await bench.clock(True, answer)
    await bench.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_tag_a_clock(dut):
    """As long as there are some, and again a few clocks after one came back."""
    bench = TagsBench(dut)
    await bench.start()
    await bench.clock()
    for number in range(1, TAGS + 1):
        await bench.clock(True)
        assert bench.given == number
    for _ in range(10):
        await bench.clock(True)
    assert bench.given == TAGS
    back = list(bench.out)
    for tag in back:
        await bench.clock(True, tag)
    for _ in range(6):
        await bench.clock(True)
    assert bench.given == 2 * TAGS


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_same_answer_in_a_row(dut):
    bench = TagsBench(dut)
    await bench.start()
    for apart in range(4):
        while not bench.out:
            await bench.clock(True)
        tag = bench.out.pop()
        await bench.clock(answer=tag)
        for _ in range(apart):
            await bench.clock()
        await bench.clock(answer=tag)
        await bench.clock(answer=tag)
    await bench.settle()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_reset_ends_all_waiting(dut):
    bench = TagsBench(dut)
    await bench.start()
    for taken in (1, TAGS // 2, TAGS, TAGS, 3):
        for _ in range(taken):
            await bench.clock(True)
        old = bench.rng.sample(bench.out, min(len(bench.out), 20))
        await bench.reset()
        for tag in old:  # their indices partly given again
            await bench.clock(bench.rng.random() < 0.5, tag)
        await bench.settle()


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(timeout=[1, 300])
async def what_waits_expires(dut, timeout):
    """Each tag that is in flight for that long is offered within a round, and no other."""
    bench = TagsBench(dut)
    await bench.start(timeout)
    count = min(TAGS, 16)
    await bench.clock()
    for _ in range(count):
        await bench.clock(True)
    answered = bench.out[::3]
    for tag in answered:
        await bench.clock(answer=tag)
    for _ in range(timeout - count - len(answered)):
        await bench.clock(take_expired=True)
        assert not bench.expired
    waiting = [tag for tag in bench.out if tag not in answered]
    for _ in range(count + len(answered) + CLOCKS * (TAGS + 1) + count):
        await bench.clock(answer=bench.expired[-1] if bench.expired else None, take_expired=True)
    assert sorted(bench.expired) == sorted(waiting)
    await bench.settle()
