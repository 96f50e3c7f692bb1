"""The atomics' arithmetic held against its model, a new one every clock."""

from __future__ import annotations

from collections import deque
from random import Random

import cocotb
from cocotb.triggers import RisingEdge

from xoe.atomic import SIZES, execute
from xoe.wire import ATOMICS, Opcode
from xoe_hdl.responder.atomic import ATOMIC_INPUT, Atomic
from xoe_tb import drive_struct, start

CORNERS = {
    size: sorted({0, 1, 2, (1 << 8 * size) - 2, (1 << 8 * size) - 1, *((1 << 8 * size - 1) + n for n in (-1, 0, 1))})
    for size in SIZES
}


class AtomicBench:
    """Gives values and compares what comes out, and when."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.rng = Random(cocotb.RANDOM_SEED)
        self._edge = RisingEdge(dut.clk)
        self._expected: deque[int | None] = deque([None] * Atomic.latency)
        dut.i_valid.value = 0

    async def clock(self, opcode: int = 0, size: int = 8, *values: int) -> None:
        """One clock with old value, operand and swap; without them, one without a valid input."""
        self.dut.i_valid.value = bool(values)
        if values:
            fields = dict(zip(("old", "operand", "swap"), values, strict=True))
            drive_struct(self.dut, "i", ATOMIC_INPUT, {"opcode": opcode, "is_wide": size == 8, **fields})
        await self._edge
        expected = self._expected.popleft()
        assert self.dut.o_valid.value == (expected is not None)
        if expected is not None:
            assert self.dut.o.value == expected, f"{int(self.dut.o.value):#x} instead of {expected:#x}"
        self._expected.append(execute(opcode, size, *values) if values else None)

    async def flush(self) -> None:
        for _ in range(Atomic.latency + 1):
            await self.clock()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def corners(dut):
    bench = AtomicBench(dut)
    await start(dut)
    for size in SIZES:
        junk = 0 if size == 8 else bench.rng.getrandbits(32) << 32
        for opcode in sorted(ATOMICS):
            for old in CORNERS[size]:
                for operand in CORNERS[size]:
                    await bench.clock(opcode, size, old | junk, operand | junk, bench.rng.getrandbits(64))
    await bench.flush()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def anything(dut):
    bench = AtomicBench(dut)
    await start(dut)
    for _ in range(6000):
        values = [bench.rng.getrandbits(bench.rng.choice((1, 2, 31, 32, 33, 63, 64))) for _ in range(3)]
        values[1] = bench.rng.choice((values[0], values[0] + 1 & (1 << 64) - 1, values[1]))
        if bench.rng.random() < 0.2:
            await bench.clock()
        await bench.clock(bench.rng.choice(sorted(ATOMICS)), bench.rng.choice(SIZES), *values)
    await bench.flush()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def by_hand(dut):
    """Values worked out by hand, that no mistake shared with the model can hide."""
    dut.i_valid.value = 0
    await start(dut)
    cases = [
        (Opcode.ADD, 1, 0x0102030405060708, 0x1011121314151617, 0, 0x11131517191B1D1F),
        (Opcode.SUB, 0, 1, 2, 0, 0xFFFFFFFF),
        (Opcode.SMIN, 0, 0x80000000, 1, 0, 0x80000000),
        (Opcode.SMAX, 1, 0x80000000, 1, 0, 0x80000000),
        (Opcode.UMIN, 0, 0x80000000, 1, 0, 1),
        (Opcode.INC, 0, 5, 5, 0, 0),
        (Opcode.DEC, 0, 0, 5, 0, 5),
        (Opcode.COMPARE_SWAP, 1, 7, 7, 9, 9),
        (Opcode.COMPARE_SWAP, 1, 8, 7, 9, 8),
    ]
    for opcode, wide, old, operand, swap, new in cases:
        values = {"opcode": opcode, "is_wide": wide, "old": old, "operand": operand, "swap": swap}
        drive_struct(dut, "i", ATOMIC_INPUT, values)
        for _ in range(Atomic.latency + 1):
            await RisingEdge(dut.clk)
        assert dut.o.value == new


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_empties_the_pipeline(dut):
    bench = AtomicBench(dut)
    await start(dut)
    await bench.clock(Opcode.ADD, 8, 1, 2, 3)
    dut.i_valid.value = 0
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    dut.rst.value = 0
    for _ in range(Atomic.latency + 1):
        await RisingEdge(dut.clk)
        assert dut.o_valid.value == 0
