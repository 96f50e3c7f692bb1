"""The gate between a sender that grants and an input whose operations come and go."""

from __future__ import annotations

from random import Random

import cocotb
from cocotb.triggers import FallingEdge

from xoe_hdl.transport.gate import gate_head
from xoe_hdl.transport.sender.layouts import CLASSES, grant_write
from xoe_tb import drive_struct, params, start

QUEUE_PAIRS, CLOCKS = params()["queue_pairs"], params()["clocks"]
SLOWEST = 12  # clocks until a head is judged, with grants of others in between
HEAD, GRANTS = gate_head(QUEUE_PAIRS), grant_write(QUEUE_PAIRS)


class GateBench:
    """What was granted and begun, and what the gate is to say of the head.

    Works at falling edges, as what begins follows from what the gate says in the same clock.
    """

    def __init__(self, dut) -> None:
        self.dut, self.rng, self.edge = dut, Random(cocotb.RANDOM_SEED), FallingEdge(dut.clk)
        self.alive = dict.fromkeys(self.flows(), False)
        self.epoch = dict.fromkeys(self.flows(), 255)
        self.granted, self.begun = dict.fromkeys(self.flows(), 0), dict.fromkeys(self.flows(), 0)
        self.head: dict | None = None
        self.waits = self.frames = self.dropped = 0

    @staticmethod
    def flows():
        return [(qp, number) for qp in range(QUEUE_PAIRS) for number in range(CLASSES)]

    def grant(self) -> dict:
        """Something that the sender says, or nothing. Four counts in a row are the most that it can tell apart."""
        flow = self.rng.choice(self.flows())
        draw = self.rng.random()
        if draw > 0.25:
            return {}
        if not self.alive[flow]:
            self.alive[flow], self.epoch[flow] = True, (self.epoch[flow] + 1) % 256
            self.granted[flow] = self.begun[flow] = 0
            return self.row(flow) | {"is_reset": 1}
        if draw < 0.01:
            self.alive[flow] = False
            return self.row(flow) | {"is_reset": 1, "grant": {}}
        if (self.granted[flow] - self.begun[flow]) % 4 < 2:
            self.granted[flow] = (self.granted[flow] + 1) % 4
        return self.row(flow)

    def row(self, flow) -> dict:
        grant = {"alive": 1, "epoch": self.epoch[flow], "count": self.granted[flow]}
        return {"valid": 1, "qp": flow[0], "traffic_class": flow[1], "grant": grant}

    async def clock(self) -> None:
        dut, rng, head = self.dut, self.rng, self.head
        before = self.said()
        drive_struct(dut, "grants", GRANTS, self.grant())
        permit, drop = dut.permit.value == 1, dut.drop.value == 1
        assert not (permit and drop)
        if head is not None and (permit or drop):
            # What changed in the last clocks may not have come through.
            assert drop in {said == "drop" for said in self.history}, f"{head}, {self.history}"
            assert permit in {said == "permit" for said in self.history}, f"{head}, {self.history}"
        dut.begins.value = int(begins := permit and rng.random() < 0.5)
        leaves = (begins and rng.random() < 0.7) or drop or (head is not None and rng.random() < 0.02)
        dut.leaves.value = int(leaves)
        await self.edge
        self.history = [*self.history[-SLOWEST:], before] if head is not None else [before]
        self._count(begins, drop, leaves, permit)

    def said(self) -> str:
        head = self.head
        if head is None:
            return "nothing"
        flow = head["qp"], head["traffic_class"]
        if not self.alive[flow] or self.epoch[flow] != head["epoch"]:
            return "drop"
        return "permit" if self.granted[flow] != self.begun[flow] else "wait"

    def _count(self, begins: bool, drop: bool, leaves: bool, permit: bool) -> None:
        head = self.head
        if begins:
            flow = head["qp"], head["traffic_class"]
            if self.epoch[flow] == head["epoch"] and self.alive[flow]:
                self.begun[flow] = (self.begun[flow] + 1) % 4
            self.frames += 1
        self.dropped += drop
        self.waits = 0 if permit or leaves or head is None else self.waits + 1
        if leaves or head is None:
            self._next_head()

    def _next_head(self) -> None:
        self.history, self.head = [], None
        if self.rng.random() < 0.8:
            qp, number = self.rng.choice(self.flows())
            late = self.rng.random() < 0.1
            self.head = {"valid": 1, "qp": qp, "traffic_class": number}
            self.head["epoch"] = (self.epoch[qp, number] - late) % 256
        drive_struct(self.dut, "head", HEAD, self.head or {})


async def make(dut) -> GateBench:
    """A bench in which no incarnation has begun."""
    bench = GateBench(dut)
    bench.history = []
    drive_struct(dut, "head", HEAD, {})
    drive_struct(dut, "grants", GRANTS, {})
    dut.begins.value = dut.leaves.value = 0
    await start(dut)
    for flow in bench.flows():  # as the sender does after a reset
        await give(bench, bench.row(flow) | {"is_reset": 1, "grant": {}})
    return bench


async def give(bench: GateBench, row: dict) -> None:
    """A clock, in which the sender says something."""
    drive_struct(bench.dut, "grants", GRANTS, row)
    await bench.edge
    drive_struct(bench.dut, "grants", GRANTS, {})


async def begin_one(bench: GateBench, flow: tuple[int, int], count: int, meanwhile: dict) -> None:
    """Grant a frame, and let the head begin and leave; the sender says something in the same clock."""
    qp, number = flow
    bench.granted[flow] = count
    await give(bench, bench.row(flow))
    head = {"valid": 1, "qp": qp, "traffic_class": number, "epoch": bench.epoch[flow]}
    drive_struct(bench.dut, "head", HEAD, head)
    for _ in range(SLOWEST):
        await bench.edge
    assert bench.dut.permit.value == 1
    bench.dut.begins.value = bench.dut.leaves.value = 1
    await give(bench, meanwhile)
    bench.dut.begins.value = bench.dut.leaves.value = 0
    drive_struct(bench.dut, "head", HEAD, {})


async def check_fresh(bench: GateBench, flow: tuple[int, int]) -> None:
    """Nothing is granted in this incarnation, and nothing begun; then a frame is granted."""
    qp, number = flow
    head = {"valid": 1, "qp": qp, "traffic_class": number, "epoch": bench.epoch[flow]}
    drive_struct(bench.dut, "head", HEAD, head)
    for _ in range(2 * SLOWEST):
        await bench.edge
        assert bench.dut.permit.value == 0
        assert bench.dut.drop.value == 0
    bench.granted[flow] = 1
    await give(bench, bench.row(flow))
    for _ in range(SLOWEST):
        await bench.edge
    assert bench.dut.permit.value == 1
    drive_struct(bench.dut, "head", HEAD, {})


def begin_anew(bench: GateBench, flow: tuple[int, int]) -> dict:
    bench.epoch[flow], bench.granted[flow] = (bench.epoch[flow] + 1) % 256, 0
    return bench.row(flow) | {"is_reset": 1}


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def an_epoch_comes_again(dut):
    """After 256 incarnations, in which nothing was begun."""
    bench = await make(dut)
    for flow in bench.flows()[:4]:
        bench.alive[flow] = True
        for count in (1, 2, 3):
            await give(bench, begin_anew(bench, flow))
            for number in range(1, count + 1):
                await begin_one(bench, flow, number, {})
            await bench.edge  # what was begun is written when nothing else is
            for _ in range(256):
                await give(bench, begin_anew(bench, flow))
            await check_fresh(bench, flow)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def an_incarnation_begins_as_a_frame_of_the_last_one_does(dut):
    """It has begun nothing, whichever of the two is written first."""
    bench = await make(dut)
    for flow in bench.flows()[-4:]:
        bench.alive[flow] = True
        for before in (False, True):
            await give(bench, begin_anew(bench, flow))
            old = dict(bench.epoch)
            row = begin_anew(bench, flow)
            bench.epoch = old
            await begin_one(bench, flow, 1, row if before else {})
            begin_anew(bench, flow)
            if not before:
                await give(bench, row)
            await check_fresh(bench, flow)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def heads_come_and_go(dut):
    bench = await make(dut)
    for _ in range(CLOCKS):
        await bench.clock()
        said = set(bench.history[-SLOWEST:])
        assert bench.waits < SLOWEST or len(said) > 1 or said <= {"wait", "nothing"}, f"{bench.head} waits for nothing"
    assert bench.frames > CLOCKS // 50
    assert bench.dropped > CLOCKS // 500
