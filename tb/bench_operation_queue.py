"""The queue of operations: all that goes in comes out, in order, each operation whole before it is offered."""

from __future__ import annotations

from random import Random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from xoe import Opcode, Operation
from xoe_tb import PAUSES, OperationSink, OperationSource, ProtocolError, StreamMonitor, params, reset, start

WIDTH, OPERATIONS, BEATS = (params()[name] for name in ("width", "operations", "beats"))
BUS = WIDTH // 8
LATENCY = 3  # clocks
EXTRA = 2  # payloads that a queue's output registers hold besides its memory


class WholeSink(OperationSink):
    """Takes operations, and objects to a gap inside one."""

    def _on_idle(self) -> None:
        super()._on_idle()
        if self._parts:
            raise ProtocolError(f"{self.name}: a gap after beat {len(self._parts)} of an operation")


def some_operation(rng: Random, words: int) -> tuple[Operation, dict[str, int]]:
    """An operation of no known opcode, so that nobody looks at how its fields fit together."""
    operation = Operation(
        0x7F,
        rng.getrandbits(16),
        rng.getrandbits(64),
        rng.getrandbits(12),
        rng.randbytes(8 * words),
        rng.getrandbits(4),
    )
    route = {
        "mac": rng.getrandbits(48),
        "node": rng.getrandbits(16),
        "remote_qp": rng.getrandbits(12),
        "local_qp": rng.getrandbits(12),
        "traffic_class": rng.getrandbits(3),
        "epoch": rng.getrandbits(8),
    }
    return operation, route


def beats(words: int) -> int:
    return max(1, -(-words * 8 // BUS))


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(source_pause=list(PAUSES), sink_pause=list(PAUSES))
async def operations_pass_whole(dut, source_pause, sink_pause):
    rng = Random(cocotb.RANDOM_SEED)
    source = OperationSource(dut, "i", PAUSES[source_pause](rng))
    sink = WholeSink(dut, "o", PAUSES[sink_pause](rng))
    await start(dut)
    sent = [some_operation(rng, words) for words in [*range(2 * BUS // 8 + 2), 32, 255, *rng.choices(range(40), k=20)]]
    for operation, route in sent:
        source.send(operation, route)
    for expected in sent:
        assert await sink.recv() == expected
    await ClockCycles(dut.clk, 10)
    assert sink.empty()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def an_unfinished_operation_is_not_offered(dut):
    rng = Random(cocotb.RANDOM_SEED)
    held = [False]
    source, sink = OperationSource(dut, "i", lambda: held[0]), WholeSink(dut, "o")
    await start(dut)
    words = 3 * BUS // 8
    first, second = some_operation(rng, words), some_operation(rng, words)
    source.send(*first)
    source.send(*second)
    for _ in range(5):  # three beats of the first, two of the second
        await RisingEdge(dut.clk)
        while not (dut.i_tvalid.value and dut.i_tready.value):
            await RisingEdge(dut.clk)
    held[0] = True
    assert await sink.recv() == first
    for _ in range(50):
        await RisingEdge(dut.clk)
        assert dut.o_tvalid.value == 0
    held[0] = False
    assert await sink.recv() == second


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(words=[0, 32])
async def it_fills_up_and_loses_nothing(dut, words):
    rng = Random(cocotb.RANDOM_SEED)
    held = [True]
    source, sink = OperationSource(dut, "i"), WholeSink(dut, "o", lambda: held[0])
    monitor = StreamMonitor(dut, "i")
    await start(dut)
    sent = [some_operation(rng, words) for _ in range(2 * max(OPERATIONS, BEATS // beats(words)))]
    for operation, route in sent:
        source.send(operation, route)
    await ClockCycles(dut.clk, 2 * BEATS + 100)
    taken = 0
    while not monitor.empty():
        await monitor.recv()
        taken += 1
    assert dut.i_tready.value == 0
    least = min(OPERATIONS * beats(words), BEATS)
    assert least <= taken <= least + EXTRA * beats(words)
    held[0] = False
    for expected in sent:
        assert await sink.recv() == expected


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(words=[0, BUS // 8, 32])
async def full_speed_is_a_beat_a_clock(dut, words):
    rng = Random(cocotb.RANDOM_SEED)
    source, sink = OperationSource(dut, "i"), WholeSink(dut, "o")
    await start(dut)
    sent = [some_operation(rng, words) for _ in range(40)]
    for operation, route in sent:
        source.send(operation, route)
    while not dut.i_tvalid.value:
        await RisingEdge(dut.clk)
    clocks = 0
    for _ in sent:
        for _ in range(beats(words)):
            clocks += 1
            await RisingEdge(dut.clk)
            assert dut.i_tready.value == 1
    for expected in sent:
        assert await sink.recv() == expected


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latency_is_three_clocks(dut):
    source = OperationSource(dut, "i")
    sink = OperationSink(dut, "o")
    await start(dut)
    source.send(Operation(Opcode.READ), {})
    while not (dut.i_tvalid.value and dut.i_tready.value):
        await RisingEdge(dut.clk)
    clocks = 0
    while not dut.o_tvalid.value:
        await RisingEdge(dut.clk)
        clocks += 1
    assert clocks == LATENCY
    await sink.recv()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_reset_forgets_what_is_inside(dut):
    rng = Random(cocotb.RANDOM_SEED)
    source, sink = OperationSource(dut, "i"), WholeSink(dut, "o", PAUSES["random"](rng))
    await start(dut)
    for clocks in range(3, 30, 4):
        for _ in range(20):
            source.send(*some_operation(rng, 32))
        await ClockCycles(dut.clk, clocks)
        await reset(dut)
        while not sink.empty():
            await sink.recv()
        sent = [some_operation(rng, words) for words in (0, 32, 1)]
        for operation, route in sent:
            source.send(operation, route)
        for expected in sent:
            assert await sink.recv() == expected
