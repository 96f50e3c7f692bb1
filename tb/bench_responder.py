"""The responder held against its model: every response, all of memory, every counter, and the rules of AXI4."""

from __future__ import annotations

import cocotb

from responder_environment import (
    ALL,
    BASE,
    BYTES,
    NODE,
    SIZE_LOG2,
    STRANGER,
    ResponderBench,
    faults,
    lengths,
    sample,
)
from xoe.cam import Page, Window
from xoe.operation import Operation
from xoe.wire import ATOMICS, Opcode


@cocotb.test(timeout_time=400, timeout_unit="us")
async def every_length_at_every_alignment(dut):
    bench = await ResponderBench(dut).begin()
    bench.fill(BASE, bench.rng.randbytes(1 << SIZE_LOG2))
    cases, at = [], 0
    for length in lengths():
        for offset in sample(bench.rng, range(BYTES), 8):
            cases.append((BASE + at + offset, length))
            at += -(-(offset + length) // BYTES + 1) * BYTES
    for address, length in cases:
        bench.write(address, length)
    await bench.settle()
    for address, length in cases:
        bench.read(address, length)
    await bench.settle()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def four_kilobyte_crossings(dut):
    bench = await ResponderBench(dut).begin()
    bench.fill(BASE, bench.rng.randbytes(1 << 16))
    before = sorted({1, 2, 7, 8, 9, BYTES - 1, BYTES, BYTES + 1, 128, 248, 255, 256})
    cases = []
    for length in sample(bench.rng, (2, 8, 9, BYTES, BYTES + 1, 2 * BYTES, 255, 256), 4):
        for there in before:
            if there <= length:
                cases.append((BASE + 4096 * bench.rng.randint(1, 15) - there, length))
    for address, length in cases:
        bench.write(address, length)
        if bench.rng.random() < 0.3:
            bench.read(address, length)
    for address, length in cases:
        bench.read(address, length)
    await bench.settle()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def every_atomic_with_corner_operands(dut):
    bench = await ResponderBench(dut).begin()
    at = 0
    for opcode in sorted(ATOMICS):
        for size in (4, 8):
            sign, top = 1 << 8 * size - 1, (1 << 8 * size) - 1
            corners = (0, 1, sign - 1, sign, top)
            pairs = [(old, operand) for old in corners for operand in corners]
            for old, operand in sample(bench.rng, pairs, 8):
                address = BASE + at
                at += size
                junk = bench.rng.getrandbits(32) << 32 if size == 4 else 0
                bench.fill(address, old.to_bytes(size, "little"))
                swap = (bench.rng.getrandbits(64),) if opcode == Opcode.COMPARE_SWAP else ()
                bench.atomic(opcode, address, size, operand | junk, *swap)
        at = -(-at // 8) * 8
    await bench.settle()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def byte_order_by_hand(dut):
    """The example of the documentation, with no help from the model."""
    bench = await ResponderBench(dut).begin()
    bench.ram.write(BASE + 8, bytes.fromhex("1716151413121110"))
    add = Operation(Opcode.ADD, 0x1234, BASE + 8, 8, bytes.fromhex("0807060504030201"))
    swap = Operation(Opcode.COMPARE_SWAP, 2, BASE + 12, 4, bytes.fromhex("17151311ffffffff0a0b0c0dffffffff"))
    for request in (add, swap, Operation(Opcode.READ, 3, BASE + 9, 8)):
        bench.source.send(request, {"node": NODE})
    answers = [(await bench.sink.recv())[0] for _ in range(3)]
    assert answers == [
        Operation(0x50, 0x1234, 0, 8, bytes.fromhex("1716151413121110")),
        Operation(0x5C, 2, 0, 4, bytes.fromhex("1715131100000000")),
        Operation(0x41, 3, 0, 8, bytes.fromhex("1d1b190a0b0c0d00")),
    ]
    assert bytes(bench.ram.read(BASE + 8, 8)).hex() == "1f1d1b190a0b0c0d"


@cocotb.test(timeout_time=400, timeout_unit="us")
async def windows_and_their_rights(dut):
    bench = await ResponderBench(dut).begin()
    small, size = BASE + (1 << 30), 4096
    for rights in range(8):
        node = 0x100 + rights
        await bench.write_window(1 + rights % 3, None)
        await bench.write_window(1 + rights % 3, Page(node, small, 12, Window(rights)))
        for asker in (node, node ^ 0x8000, STRANGER):
            for address in (small - 1, small, small + size - 1, small + size):
                bench.read(address, 1), bench.send(Operation(Opcode.READ, 1, address, 2), asker)
                for length in (1, 2, 256):
                    data = bench.rng.randbytes(length)
                    bench.send(Operation(Opcode.WRITE, bench.tag(), address, length, data), asker)
                    bench.send(Operation(Opcode.READ, bench.tag(), address, length), asker)
            for address in (small - 8, small, small + size - 8, small + size, (1 << 64) - 8):
                bench.send(Operation(Opcode.ADD, bench.tag(), address, 8, bench.rng.randbytes(8)), asker)
            bench.send(Operation(Opcode.FENCE, bench.tag(), bench.rng.getrandbits(64)), asker)
        await bench.settle()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def a_window_taken_away(dut):
    """The last look-up before an invalidation still passes, the first after it no more; another entry stays."""
    bench = await ResponderBench(dut).begin()
    await bench.write_window(1, Page(NODE, 0, 12, Window(ALL)))
    for _ in range(3):
        bench.write(5, 9)
        bench.write(BASE, 9)
        await bench.settle()
        await bench.write_window(1, None)
        bench.read(5, 9)
        bench.read(BASE, 9)
        await bench.settle()
        await bench.write_window(1, Page(NODE, 0, 13, Window(ALL)))


@cocotb.test(timeout_time=400, timeout_unit="us")
async def faults_are_answered_in_order_and_touch_nothing(dut):
    bench = await ResponderBench(dut).begin()
    bench.fill(BASE, bench.rng.randbytes(8192))
    for request in faults(bench.rng):
        bench.send(request)
        bench.write(BASE + bench.rng.randrange(4096), bench.rng.randint(1, 64))
    await bench.settle()
    shuffled = faults(bench.rng)
    bench.rng.shuffle(shuffled)
    for request in shuffled:  # back to back
        bench.send(request)
    await bench.settle()
