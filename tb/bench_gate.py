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


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def heads_come_and_go(dut):
    bench = GateBench(dut)
    bench.history = []
    drive_struct(dut, "head", HEAD, {})
    drive_struct(dut, "grants", GRANTS, {})
    dut.begins.value = dut.leaves.value = 0
    await start(dut)
    bench.alive = dict.fromkeys(bench.flows(), False)
    for flow in bench.flows():  # as the sender does after a reset
        drive_struct(dut, "grants", GRANTS, bench.row(flow) | {"is_reset": 1, "grant": {}})
        await bench.edge
    for _ in range(CLOCKS):
        await bench.clock()
        said = set(bench.history[-SLOWEST:])
        assert bench.waits < SLOWEST or len(said) > 1 or said <= {"wait", "nothing"}, f"{bench.head} waits for nothing"
    assert bench.frames > CLOCKS // 50
    assert bench.dropped > CLOCKS // 500
