"""The receiving end, one case at a time: its pace, and what must not hold up or forget what."""

from __future__ import annotations

import cocotb
from cocotb.triggers import ClockCycles

from receiver_environment import Environment
from xoe.cyclic import CREDIT_BITS, SEQ_BITS, after
from xoe_tb import never, params

PARAMETERS = params()
WINDOW, PAGES, QUEUE_PAIRS = (PARAMETERS[name] for name in ("window", "pages", "queue_pairs"))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_frame_in_order_takes_eight_clocks_at_the_most(dut):
    await keeps_pace(dut, range(WINDOW), 8)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_frame_out_of_order_takes_twelve_clocks_at_the_most(dut):
    await keeps_pace(dut, [*range(1, WINDOW), 0], 12)


async def keeps_pace(dut, order, clocks) -> None:
    """Back to back, all of them requests, while what is delivered leaves as fast as it comes."""
    bench = Environment(dut, PARAMETERS)
    await bench.start()
    bench.open(0, window=WINDOW)
    await bench.settle()
    bench.rng.randint = lambda low, high: low  # a page for each frame
    first, began, ended = bench.links[0].receiver.expected, None, 0
    for steps in order:
        bench.arrive(0, first + steps)
    clock = 0
    while bench.offered["arrivals"] or bench.requests:
        before = bench.counts["arrivals"]
        await bench.edge
        clock += 1
        if before != bench.counts["arrivals"]:
            began, ended = clock if began is None else began, clock
    assert bench.counts["arrivals"] == WINDOW
    assert bench.counters["new"] == WINDOW
    dut._log.info("%s clocks for %s frames, %s until all were delivered", ended - began, WINDOW - 1, clock - began)
    assert clock - began <= clocks * WINDOW + 8
    assert ended - began <= clocks * (WINDOW - 1)
    await bench.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latencies_are_as_documented(dut):
    """From the clock in which an input is taken to that in which its output is there."""
    bench = Environment(dut, PARAMETERS)
    await bench.start()
    bench.open(0)
    await bench.settle()
    bench.asks_at_random = False
    dut.shown_qp.value = dut.shown_class.value = 0
    for port, output, clocks in (("arrivals", "requests", 10), ("report", "reported", 16)):
        expected = bench.links[0].receiver.expected
        if port == "arrivals":
            bench.arrive(0, expected)
        else:
            bench.send(port, {"qp": 0})
        valid, ready = getattr(dut, f"{port}_tvalid"), getattr(dut, f"{port}_tready")
        while not (valid.value == 1 and ready.value == 1):
            await bench.edge
        passed = shown = 0
        while getattr(dut, f"{output}_tvalid").value == 0:
            shown += dut.expected.value.to_unsigned() == expected
            await bench.edge
            passed += 1
        assert passed == clocks
        if port == "arrivals":
            assert shown == 9  # asked for from the seventh clock on, it is there two clocks later
        await bench.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def requests_that_stand_still_hold_up_nothing_else(dut):
    """Not even when all the buffer is full of them but for one page, which serves responses."""
    bench = Environment(dut, PARAMETERS)
    bench.sinks["requests"].pause = lambda: bench.is_held
    bench.is_held = True
    await bench.start()
    bench.open(0, window=WINDOW)
    await bench.settle()
    bench.rng.randint = lambda low, high: low  # a page for each frame
    seq = bench.links[0].receiver.expected
    for steps in range(PAGES - 1):
        bench.arrive(0, seq + steps)
    while bench.offered["arrivals"]:
        await bench.edge
    for steps in range(3):
        assert bench.arrive(0, seq + PAGES - 1 + steps, traffic_class=1)
        for _ in range(60):
            await bench.edge
        assert len(bench.free_pages) == 1
    assert bench.arrive(0, seq + PAGES + 2)
    for _ in range(60):
        await bench.edge
    assert len(bench.requests) == PAGES
    bench.is_held = False
    await bench.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def credits_are_not_compared_over_a_gap(dut):
    """A frame beyond the gap has been counted here, and not yet by an acknowledgement that it overtook."""
    bench = Environment(dut, PARAMETERS)
    await bench.start()
    bench.open(0, window=WINDOW)
    await bench.settle()
    link = bench.links[0]
    expected, consumed = link.receiver.expected, link.credits[0].consumed
    fields = {"qp": 0, "epoch": link.epoch, "seq": expected, "traffic_class": 0, "credits": consumed}
    bench.arrive(0, expected + 1)
    await bench.taken("arrivals")
    bench.send("reconcile", fields)
    await bench.settle()
    assert bench.counters["reconciled"] == 0
    bench.arrive(0, expected)
    await bench.settle()
    bench.send("reconcile", {**fields, "seq": after(expected, 2, SEQ_BITS), "credits": after(consumed, 9, CREDIT_BITS)})
    await bench.settle()
    assert bench.counters["reconciled"] == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def each_gap_is_told_once_with_go_back_n(dut):
    bench = Environment(dut, PARAMETERS)
    bench.go_back_n = True
    dut.cfg_go_back_n.value = 1
    await bench.start()
    bench.open(0, window=WINDOW)
    await bench.settle()
    for _ in range(3):
        for steps in (1, 2):
            bench.arrive(0, bench.links[0].receiver.expected + steps)
            await bench.taken("arrivals")
            bench.send("report", {"qp": 0})
            await bench.settle()
        bench.arrive(0, bench.links[0].receiver.expected)
        await bench.settle()
    assert [report["nack"] for report in bench.reported] == [1, 0] * 3


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_report_says_what_is_kept(dut):
    """Bit by bit, up to the last of the window."""
    bench = Environment(dut, PARAMETERS)
    await bench.start()
    bench.open(0, window=WINDOW)
    await bench.settle()
    bench.rng.randint = lambda low, high: low  # a page for each frame
    expected, sack = bench.links[0].receiver.expected, 0
    for steps in (1, WINDOW - 1, 2, WINDOW // 2):
        bench.arrive(0, expected + steps)
        await bench.taken("arrivals")
        bench.send("report", {"qp": 0})
        await bench.settle()
        sack |= 1 << steps - 1
        assert (bench.reported[-1]["ack"], bench.reported[-1]["sack"]) == (expected, sack)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def one_report_at_a_time(dut):
    bench = Environment(dut, PARAMETERS)
    bench.sinks["reported"].pause = lambda: True
    await bench.start()
    bench.open(0)
    bench.frees_late = never()
    for _ in range(3):
        bench.send("report", {"qp": 0})
    await ClockCycles(dut.clk, 60)
    assert len(bench.offered["report"]) == 2
    assert bench.arrive(0, bench.links[0].receiver.expected)  # passes nevertheless
    while bench.counts["freed"] == 0:
        await bench.edge
    bench.sinks["reported"].pause = never()
    await bench.settle()
    assert len(bench.reported) == 3
