"""The receiving end when incarnations end: what is dropped, what is counted, and when the buffer is drained."""

from __future__ import annotations

from random import Random

import cocotb
from cocotb.triggers import ClockCycles

from receiver_environment import Environment
from xoe_tb import bursts, params

PARAMETERS = params()
WINDOW, PAGES, QUEUE_PAIRS = (PARAMETERS[name] for name in ("window", "pages", "queue_pairs"))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def shutting_drops_what_is_kept(dut):
    """While frames of another connection pass, and frames of this one are stale or dropped with the others."""
    bench = Environment(dut, PARAMETERS)
    bench.sinks["free"].pause = bursts(Random(cocotb.RANDOM_SEED), 40)  # longer than a frame takes to be dropped
    await bench.start()
    bench.rng.randint = lambda low, high: low  # a page for each frame
    others = range(min(2, QUEUE_PAIRS))
    for qp in others:
        bench.open(qp, window=WINDOW)
    await bench.settle()
    seqs = [bench.links[qp].receiver.expected for qp in others]
    for steps in range(1, WINDOW):
        bench.arrive(0, seqs[0] + steps)
    while bench.offered["arrivals"]:
        await bench.edge
    taken = bench.counts["arrivals"]
    bench.shut(0)
    for steps in range(WINDOW // 4 if len(others) == 2 else 0):
        bench.arrive(1, seqs[1] + steps)
    while bench.offered["shut"]:
        await bench.edge
    if len(others) == 2:
        assert bench.counts["arrivals"] > taken, "nothing passed meanwhile"
    await bench.settle()
    assert bench.links[0].present == 0
    bench.open(0)
    bench.send("report", {"qp": 0})
    await bench.settle()
    assert (bench.reported[-1]["is_open"], bench.reported[-1]["sack"]) == (1, 0)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def delivered_frames_of_an_ended_incarnation_are_counted(dut):
    """A connection is drained when the last of them has left, and their credit is not that of the next incarnation."""
    bench = Environment(dut, PARAMETERS)
    bench.frees_late = iter(lambda: bench.is_held, None)
    bench.is_held = True
    await bench.start()
    bench.open(0, window=8)
    await bench.settle()
    for steps in range(3):
        bench.arrive(0, bench.links[0].receiver.expected + steps)
    while bench.offered["arrivals"] or bench.requests:
        await bench.edge
    bench.shut(0)
    while bench.offered["shut"]:
        await bench.edge
    dut.drained_qp.value = 0
    await ClockCycles(dut.clk, 4)
    for left in (3, 2, 1):
        for _ in range(40):
            await bench.edge
            assert dut.is_drained.value == 0
        assert bench.links[0].present == left
        bench.is_held = False
        await bench.edge
        bench.is_held = True
        while bench.links[0].present == left:
            await bench.edge
    await bench.settle()
    assert dut.is_drained.value == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def delivered_frames_of_what_is_open_are_counted_and_kept_ones_not(dut):
    """Also those that were kept before; a gap that is never filled does not hold the next incarnation back."""
    bench = Environment(dut, PARAMETERS)
    bench.frees_late = iter(lambda: bench.is_held, None)
    bench.is_held = True
    await bench.start()
    bench.open(0, window=8)
    await bench.settle()
    first, dut.drained_qp.value = bench.links[0].receiver.expected, 0
    for steps, delivered in ((2, 0), (1, 0), (0, 3), (4, 3)):
        bench.arrive(0, first + steps)
        await ClockCycles(dut.clk, 60)
        assert bench.links[0].delivered == delivered
        for _ in range(20):
            await bench.edge
            assert dut.is_drained.value == (delivered == 0)
    bench.is_held = False
    await bench.settle()
    assert (bench.links[0].present, dut.is_drained.value) == (1, 1)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def credit_of_an_ended_incarnation_is_not_counted(dut):
    bench = Environment(dut, PARAMETERS)
    bench.frees_late = iter(lambda: bench.is_held, None)
    bench.is_held = True
    await bench.start()
    bench.open(0)
    await bench.settle()
    bench.arrive(0, bench.links[0].receiver.expected)
    await bench.taken("arrivals")
    bench.shut(0)
    await bench.taken("shut")
    bench.open(0)
    await bench.taken("open")
    bench.is_held = False
    await bench.settle()
    assert bench.counts["freed"] == 1
    assert bench.links[0].credits[0].held == 0
