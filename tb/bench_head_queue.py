"""The queue for those who decide late: all that goes in comes out, a clock later at the soonest, one a clock."""

from __future__ import annotations

from random import Random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from xoe_tb import PAUSES, StreamSink, params, start

DEPTH, MARGIN = params()["depth"], params()["margin"]


async def put(dut, payload):
    """One payload, for one clock."""
    dut.i_valid.value, dut.i.value = 1, payload
    await RisingEdge(dut.clk)
    dut.i_valid.value = 0


async def begin(dut, pause):
    """Out of reset, nothing coming in; what takes from the queue."""
    dut.i_valid.value = 0
    sink = StreamSink(dut, "o", pause)
    await start(dut)
    await ClockCycles(dut.clk, 2)
    return sink


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(source_pause=list(PAUSES), sink_pause=list(PAUSES))
async def payloads_pass(dut, source_pause, sink_pause):
    """Sent only with room, which is seen two clocks late: with no margin for that, each waits for it."""
    rng = Random(cocotb.RANDOM_SEED)
    held = PAUSES[source_pause](rng)
    sink = await begin(dut, PAUSES[sink_pause](rng))
    sent = [rng.getrandbits(16) for _ in range(300)]
    for payload in sent:
        while next(held) or not dut.room.value:
            await RisingEdge(dut.clk)
        await put(dut, payload)
        if MARGIN < 2:
            await ClockCycles(dut.clk, 2)
    for expected in sent:
        assert (await sink.recv()).data == expected


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_clock_later_and_one_a_clock(dut):
    await begin(dut, PAUSES["never"](Random(0)))
    dut.i_valid.value = 1
    for payload in range(1, 21):
        dut.i.value = payload
        await RisingEdge(dut.clk)
        if payload > 1:
            assert (dut.o_tvalid.value, dut.o_tdata.value.to_unsigned()) == (1, payload - 1)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def what_is_under_way_still_fits(dut):
    """With the output standing still: two in the registers, the rest in the memory, MARGIN after room has fallen."""
    is_held = True
    sink = await begin(dut, lambda: is_held)
    count = 0
    while dut.room.value:
        await put(dut, count)
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        count += 1
    assert count == DEPTH - MARGIN + 2
    for payload in range(count, count + MARGIN):
        await put(dut, payload)
    is_held = False
    for expected in range(count + MARGIN):
        assert (await sink.recv()).data == expected
    await ClockCycles(dut.clk, 10)
    assert sink.empty()
    assert dut.room.value
