"""The framer's pace: when frames are closed, how full the wire is, and how soon."""

from __future__ import annotations

import dataclasses
import itertools

import cocotb
from cocotb.triggers import RisingEdge

from framer_environment import (
    LATENCY,
    RESPONSE_ROUTE,
    RESPONSES,
    ROUTE,
    Bench,
    Line,
    write,
)
from xoe import Opcode, Operation
from xoe.wire import RESPONSE_BIT
from xoe_tb import params


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(size=[0, 8, 64, 72, 256], tagged=[False, True])
async def frames_of_one_operation_are_back_to_back(dut, size, tagged):
    """Not a clock is lost between frames, however short: their routes differ, so none is shared.

    But for the last, which nothing follows that would close it.
    """
    bench = Bench(dut)
    await bench.start()
    bench.set(tagged=tagged)
    line = Line(dut)
    for count in range(60):
        operation = write(bench.rng, size) if size else Operation(Opcode.READ)
        bench.send(operation, dataclasses.replace(ROUTE, node=count % 2))
    await bench.check()
    assert len(bench.frames) == 60
    assert line.idle_before(bench.frames[-1]) == 0


@cocotb.test(timeout_time=8, timeout_unit="ms")
@cocotb.parametrize(size=[64, 256], inputs=[1, 2])
async def the_wire_is_full(dut, size, inputs):
    """Payload over what the beats could carry, saturated, with the configured MTU."""
    bench = Bench(dut)
    await bench.start()
    bench.set(mtu=params()["mtu"])
    line = Line(dut)
    count = 20 * bench.size * 64 // size
    for _ in range(count):
        bench.send(write(bench.rng, size))
        if inputs == 2:
            bench.send(Operation(Opcode.READ | RESPONSE_BIT, 0, 0, size, bench.rng.randbytes(size)), RESPONSE_ROUTE)
    await bench.check()
    efficiency = inputs * count * size / bench.size / (line.beats[-1] - line.beats[0] + 1)
    dut._log.info("efficiency %d: %.3f", size, efficiency)
    if inputs == 1:
        assert line.idle_before(bench.frames[-1]) == 0
    assert efficiency >= (0.9 if size == 256 else 0.77)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(gather=[0, 272, 280, 1024])
async def an_idle_wire_waits_for_what_is_to_be_gathered(dut, gather):
    """The first frame has just enough. From then on the wire is never idle, and frames grow by the beats of headers."""
    bench = Bench(dut)
    await bench.start()
    bench.set(mtu=params()["mtu"], gather=gather)
    line = Line(dut)
    for _ in range(64):
        bench.send(write(bench.rng, 256))
    await bench.check()
    sizes = [len(frame) for frame in bench.frames]
    least = max(1, -(-gather // 272))
    assert sizes[0] == 14 + 26 + 272 * least
    assert line.idle_before(bench.frames[-1]) == 0
    if bench.size == 8:
        assert max(sizes) > sizes[0]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def what_is_gathered_counts_from_the_frame_begun(dut):
    """Short operations after a large frame: theirs waits for enough of them, and for hardly more."""
    bench = Bench(dut)
    await bench.start()
    bench.set(mtu=params()["mtu"], gather=240)
    for _ in range(3):
        bench.send(write(bench.rng, 256))
        await bench.check()
        first = len(bench.frames)
        for _ in range(40):
            bench.send(write(bench.rng, 48))
        await bench.check()
        assert 240 <= len(bench.frames[first]) - 40 <= 240 + 3 * 64


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_wire_that_stops_for_long(dut):
    """Both inputs are held back once the store is full, nothing is lost, and it goes on."""
    bench = Bench(dut)
    await bench.start()
    bench.set(mtu=params()["mtu"])
    held = True
    bench.sink.pause = lambda: held
    line = Line(dut)
    for _ in range(3 * params()["mtu"] // 256):
        bench.send(write(bench.rng, 256))
        bench.send(Operation(Opcode.READ | RESPONSE_BIT, 0, 0, 256, bench.rng.randbytes(256)), RESPONSE_ROUTE)
    while not line.accepted or line.clock < line.accepted[-1] + 60:
        await RisingEdge(dut.clk)
    assert len(line.accepted) < 6 * params()["mtu"] // bench.size
    held = False
    await bench.check()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def what_trickles_in_does_not_hold_up_the_other_input(dut):
    """A response now and then goes out between frames of requests, which grow; the wire is idle for one request."""
    bench = Bench(dut)
    await bench.start()
    bench.set(mtu=params()["mtu"], gather=0)
    clock = itertools.count()
    bench.sources[RESPONSES].pause = lambda: next(clock) % 40 != 0
    line = Line(dut)
    for _ in range(80):
        bench.send(write(bench.rng, 256))
    for _ in range(200 // bench.size):
        bench.send(Operation(Opcode.WRITE | RESPONSE_BIT, length=256), RESPONSE_ROUTE)
    order = await bench.check()
    assert line.idle_before(bench.frames[-1]) <= 272 // bench.size + 3  # the first request
    last = len(order) - order[::-1].index(RESPONSES) - 1
    if bench.size == 8:
        assert len(bench.frames[last - 1]) >= 3 * 272


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(tagged=[False, True])
async def the_first_beat_is_soon_out(dut, tagged):
    bench = Bench(dut)
    await bench.start()
    bench.set(tagged=tagged)
    await bench.check()
    for operation, route in (
        (Operation(Opcode.READ), ROUTE),
        (Operation(Opcode.READ | RESPONSE_BIT), RESPONSE_ROUTE),
        (write(bench.rng, bench.size), ROUTE),
    ):
        line = Line(dut)
        bench.send(operation, route)
        await bench.check()
        dut._log.info("latency %d", line.beats[0] - line.accepted[0])
        assert line.beats[0] - line.accepted[0] <= LATENCY
