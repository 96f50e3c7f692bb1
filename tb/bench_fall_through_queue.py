"""The short queue: all that goes in comes out, a clock later at the soonest, one a clock."""

from __future__ import annotations

from random import Random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from xoe_tb import PAUSES, StreamMonitor, StreamSink, StreamSource, params, reset, start

DEPTH, MARGIN = params()["depth"], params()["margin"]


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(source_pause=list(PAUSES), sink_pause=list(PAUSES))
async def payloads_pass(dut, source_pause, sink_pause):
    rng = Random(cocotb.RANDOM_SEED)
    source = StreamSource(dut, "i", PAUSES[source_pause](rng))
    sink = StreamSink(dut, "o", PAUSES[sink_pause](rng))
    await start(dut)
    sent = [rng.getrandbits(16) for _ in range(200)]
    source.send(*sent)
    for expected in sent:
        assert (await sink.recv()).data == expected


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_clock_later_and_one_a_clock(dut):
    source, sink = StreamSource(dut, "i"), StreamSink(dut, "o")
    await start(dut)
    await ClockCycles(dut.clk, 3)
    source.send(*range(1, 21))
    while dut.i_tvalid.value != 1:
        await RisingEdge(dut.clk)
    for expected in range(1, 21):
        assert dut.i_tready.value == 1 or expected == 20
        await RisingEdge(dut.clk)
        assert (dut.o_tvalid.value, dut.o_tdata.value.to_unsigned()) == (1, expected)
    while not sink.empty():
        await sink.recv()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def it_says_when_there_is_room(dut):
    rng = Random(cocotb.RANDOM_SEED)
    source = StreamSource(dut, "i")
    StreamSink(dut, "o", PAUSES["bursts"](rng))
    await start(dut)
    source.send(*range(300))
    inside, seen = 0, set()
    while not dut.i_tvalid.value:
        await RisingEdge(dut.clk)
    while inside or dut.i_tvalid.value:
        waiting = inside - int(dut.o_tvalid.value)  # besides the output register
        inside += int(dut.i_tvalid.value and dut.i_tready.value) - int(dut.o_tvalid.value and dut.o_tready.value)
        seen.add(waiting)
        await RisingEdge(dut.clk)
        assert dut.room.value == (waiting < DEPTH - MARGIN)
    assert seen == set(range(DEPTH + 1))


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def it_fills_up_and_loses_nothing(dut):
    held = [True]
    source, sink = StreamSource(dut, "i"), StreamSink(dut, "o", lambda: held[0])
    monitor = StreamMonitor(dut, "i")
    await start(dut)
    sent = range(2 * DEPTH)
    source.send(*sent)
    await ClockCycles(dut.clk, 2 * DEPTH + 10)
    taken = 0
    while not monitor.empty():
        await monitor.recv()
        taken += 1
    assert taken == DEPTH + 1
    assert dut.i_tready.value == 0
    held[0] = False
    for expected in sent:
        assert (await sink.recv()).data == expected


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_reset_empties_it(dut):
    held = [True]
    source, sink = StreamSource(dut, "i"), StreamSink(dut, "o", lambda: held[0])
    await start(dut)
    source.send(*range(DEPTH))
    await ClockCycles(dut.clk, DEPTH + 2)
    await reset(dut)
    held[0] = False
    await ClockCycles(dut.clk, DEPTH + 2)
    assert sink.empty()
    source.send(77)
    assert (await sink.recv()).data == 77
