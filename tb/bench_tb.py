"""The bench classes held against each other, and against cocotbext-axi, through a design that only stores."""

from __future__ import annotations

from random import Random

import cocotb
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from xoe import Opcode, Operation
from xoe.wire import RESPONSE_BIT
from xoe_tb import (
    PAUSES,
    FrameMonitor,
    FrameSink,
    FrameSource,
    OperationSink,
    OperationSource,
    StreamSink,
    StreamSource,
    always_other,
    params,
    reset,
    start,
)

ROUTE = {"mac": 0x020304050607, "node": 0x1234, "remote_qp": 0xABC, "local_qp": 0x123, "traffic_class": 5, "epoch": 6}


async def begin(dut):
    """Start, with the fault that this run is about."""
    dut.fault.value = params()["fault"]
    await start(dut)


def some_frames(dut, rng):
    """Every length from 1 to twice the bus plus one, some of them bad."""
    return [(rng.randbytes(size), rng.random() < 0.2) for size in range(1, 2 * len(dut.s_axis_tdata) // 8 + 2)]


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(source_pause=list(PAUSES), sink_pause=list(PAUSES))
async def frames_pass(dut, source_pause, sink_pause):
    rng = Random(cocotb.RANDOM_SEED)
    source = FrameSource(dut, "s_axis", PAUSES[source_pause](rng))
    sink = FrameSink(dut, "m_axis", PAUSES[sink_pause](rng))
    watcher = FrameMonitor(dut, "m_axis")
    await begin(dut)
    frames = some_frames(dut, rng)
    for frame, bad in frames:
        source.send(frame, bad)
    for expected in frames:
        assert await sink.recv() == expected
        assert await watcher.recv() == expected
    await source.drain()
    assert sink.empty()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def full_speed_is_a_beat_a_clock(dut):
    source, sink = FrameSource(dut, "s_axis"), FrameSink(dut, "m_axis", gapless=True)
    await begin(dut)
    beats = 100
    source.send(bytes(beats * len(dut.s_axis_tdata) // 8))
    begun = cocotb.utils.get_sim_time("ns")
    await sink.recv()
    clocks = (cocotb.utils.get_sim_time("ns") - begun) / 4
    assert clocks <= beats + 6


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_reset_drops_what_is_under_way(dut):
    rng = Random(cocotb.RANDOM_SEED)
    source = FrameSource(dut, "s_axis", PAUSES["random"](rng))
    sink = FrameSink(dut, "m_axis", PAUSES["random"](rng))
    await begin(dut)
    for clocks in range(20, 40):
        for _ in range(2):  # one under way, one waiting
            source.send(rng.randbytes(4 * len(dut.s_axis_tdata)))
        await ClockCycles(dut.clk, clocks)
        await reset(dut)
        while not sink.empty():  # what was whole before the reset
            await sink.recv()
        frame = rng.randbytes(100)
        source.send(frame)
        assert await sink.recv() == (frame, False)
        await ClockCycles(dut.clk, 10)
        assert sink.empty()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cocotbext_axi_sends_and_takes_the_same(dut):
    rng = Random(cocotb.RANDOM_SEED)
    await begin(dut)
    frames = some_frames(dut, rng)
    theirs = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
    ours = FrameSink(dut, "m_axis", PAUSES["random"](rng))
    for frame, bad in frames:
        await theirs.send(AxiStreamFrame(frame, tuser=[0] * (len(frame) - 1) + [int(bad)]))
    for expected in frames:
        assert await ours.recv() == expected


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def cocotbext_axi_takes_what_we_send(dut):
    rng = Random(cocotb.RANDOM_SEED)
    await begin(dut)
    frames = some_frames(dut, rng)
    ours = FrameSource(dut, "s_axis", PAUSES["random"](rng))
    theirs = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
    theirs.set_pause_generator(PAUSES["bursts"](rng))
    for frame, bad in frames:
        ours.send(frame, bad)
    for frame, bad in frames:
        received = await theirs.recv()
        last_user = received.tuser[-1] if isinstance(received.tuser, list) else received.tuser
        assert (bytes(received.tdata), bool(last_user)) == (frame, bad)


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=list(PAUSES))
async def operations_pass(dut, pause):
    rng = Random(cocotb.RANDOM_SEED)
    source = OperationSource(dut, "i", PAUSES[pause](rng))
    sink = OperationSink(dut, "o", PAUSES[pause](rng))
    await begin(dut)
    sent = [Operation(Opcode.FENCE, tag=7)]
    sent.append(Operation(Opcode.COMPARE_SWAP, 0xFFFF, 8, 4, rng.randbytes(16), status=6))
    for length in (1, 7, 8, 9, 63, 64, 65, 255, 256):
        sent.append(Operation(Opcode.WRITE, length, 0x123456789ABCDEF0, length, rng.randbytes(length)))
        sent.append(Operation(Opcode.READ | RESPONSE_BIT, length, 0, length, rng.randbytes(length)))
    for operation in sent:
        source.send(operation, ROUTE)
    for expected in sent:
        assert await sink.recv() == (expected, ROUTE)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def numbers_pass(dut):
    source, sink = StreamSource(dut, "i_number"), StreamSink(dut, "o_number", always_other())
    await begin(dut)
    source.send(*range(40))
    assert [(await sink.recv()).data for _ in range(40)] == list(range(40))
