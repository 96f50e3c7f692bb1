"""The responder under back-pressure, with a memory that refuses, at full speed, and through resets."""

from __future__ import annotations

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from responder_environment import (
    ALL,
    BASE,
    BYTES,
    CONFIG,
    IS_FULL,
    NODE,
    SIZE_LOG2,
    SMALL_SIZE,
    SMALL_WINDOW,
    ResponderBench,
    anything,
)
from xoe.cam import Cam, Page, Window
from xoe.operation import Operation
from xoe.responder import Outcome
from xoe.wire import Opcode
from xoe_tb import reset


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(
    pauses=[
        ("never", "never", "never"),
        ("random", "never", "never"),
        ("never", "random", "never"),
        ("never", "bursts", "never"),
        ("never", "always_other", "never"),
        ("never", "never", "random"),
        ("never", "never", "bursts"),
        ("never", "never", "always_other"),
        ("bursts", "bursts", "random"),
        ("never", "never", "bursts", "never"),
        ("never", "never", "never", "bursts", "never"),
        ("never", "never", "never", "never", "bursts", "never"),
        ("never", "never", "never", "never", "never", "bursts", "never"),
        ("never", "never", "never", "never", "never", "never", "bursts"),
    ]
)
async def everything_mixed_under_back_pressure(dut, pauses):
    bench = await ResponderBench(dut).begin()
    bench.fill(BASE, bench.rng.randbytes(8192))
    bench.pause(*pauses)
    for _ in range(200 if IS_FULL else 60):
        for _ in range(bench.rng.choice((1, 1, 1, 5))):
            anything(bench)
    await bench.settle()


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(where=["responses", "aw", "w", "b", "ar", "r"])
async def stopped_for_long(dut, where):
    """More operations of a kind than there is room for, the smallest and the largest, while something stands still."""
    bench = await ResponderBench(dut).begin()
    count = 100 if IS_FULL else 75
    largest = [(BASE + 4096 * index - 255, 256) for index in range(1, count + 1)]
    bytes_ = [(BASE + index, 1) for index in range(count)]
    for kind, cases in ((bench.write, bytes_), (bench.write, largest), (bench.read, bytes_), (bench.read, largest)):
        for address, length in cases:
            kind(address, length)
        await bench.stall(where, 700)
        await bench.settle()
    for index in range(count):
        bench.atomic(Opcode.ADD, BASE + 8 * index, 8, 1)
        bench.write(BASE + 8 * index, 256)
        bench.send(Operation(Opcode.FENCE, 0))
        bench.read(0, 1)
    await bench.stall(where, 700)
    await bench.settle()


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(pauses=["never", "random"])
async def a_memory_that_refuses(dut, pauses):
    """Its end lies inside the window; operations on both sides of it, and none across it."""
    bench = await ResponderBench(dut, bad_beats=()).begin()
    await bench.write_window(1, SMALL_WINDOW)
    bench.pause(pauses, pauses, pauses)
    for _ in range(60 if IS_FULL else 25):
        there = bench.rng.choice((0, 0, 4096))  # 4096: in the first page that is not there
        address = SMALL_SIZE - 4096 + there + 8 * bench.rng.randrange(200)
        bench.write(address, bench.rng.randint(1, 256))
        bench.read(address + 1, bench.rng.randint(1, 256))
        bench.atomic(bench.rng.choice((Opcode.ADD, Opcode.UMAX)), address, 8, bench.rng.getrandbits(64))
        # The first burst ends well, the second does not.
        bench.read(SMALL_SIZE - bench.rng.randint(1, 255), 256)
        bench.read(address, 8)
    await bench.settle()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def beats_that_memory_refuses(dut):
    """One bad beat anywhere in an operation, in its first burst or its second, fails that operation and no other."""
    for_reads, for_writes = SMALL_SIZE - 8192, SMALL_SIZE - 4096
    bench = await ResponderBench(dut, bad_beats=(for_reads, for_reads + 256, for_writes, for_writes + 256)).begin()
    await bench.write_window(1, SMALL_WINDOW)
    for _ in range(100 if IS_FULL else 30):
        # What a write that failed leaves behind is undefined, so nothing reads there.
        bench.write(for_writes - 512 + bench.rng.randrange(1024), bench.rng.randint(1, 256))
        for _ in range(2):
            bench.read(for_reads - 512 + bench.rng.randrange(1024), bench.rng.randint(1, 256))
        bench.atomic(Opcode.ADD, for_reads + 8 * bench.rng.randrange(-2, 2 + BYTES // 8), 8, 1)
    await bench.settle()


async def measure(bench: ResponderBench, channel: str) -> float:
    """Beats over clocks in the middle of a run."""
    watch, start_ = bench.watch, 200
    while watch.beats[channel] < start_:
        await RisingEdge(bench.dut.clk)
    watch.restart()
    while watch.beats[channel] < 600:
        await RisingEdge(bench.dut.clk)
    return watch.beats[channel] / watch.clocks


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(kind=["write", "read"], length=[256, 64])
async def line_rate(dut, kind, length):
    bench = await ResponderBench(dut).begin()
    count = 1100 * BYTES // length
    for index in range(count):
        getattr(bench, kind)(BASE + index * length, length)
    measured = await measure(bench, {"write": "w", "read": "r"}[kind])
    cocotb.log.info(f"{kind}s of {length} bytes, {8 * BYTES} bits: {measured:.3f} beats a clock")
    await bench.settle()
    assert measured >= 0.9
    assert bench.watch.outstanding >= 2


@cocotb.test(timeout_time=400, timeout_unit="us")
async def reset_in_the_middle(dut):
    bench = await ResponderBench(dut).begin()
    bench.pause("random", "random", "random")
    for clocks in (3, 17, 40, 90, 200, 333) if IS_FULL else (17, 90):
        await bench.settle()
        for _ in range(40):
            anything(bench)
        await ClockCycles(dut.clk, clocks)
        await reset(dut, bench.rng.randint(1, 4))
        while not bench.sink.empty():
            await bench.sink.recv()
        bench.expected.clear()
        bench.model.counters = dict.fromkeys(Outcome, 0)
        bench.model.windows = Cam(CONFIG.windows)
        bench.memory.write(BASE, bytes(bench.ram.read(BASE, 8192)))  # whatever was done before the reset stays
        bench.read(BASE, 8)
        await bench.settle()
        await bench.write_window(0, Page(NODE, BASE, SIZE_LOG2, Window(ALL)))
        bench.read(BASE, 256)
        bench.write(BASE + 1, 255)
    await bench.settle()
