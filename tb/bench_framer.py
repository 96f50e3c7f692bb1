"""The framer held against its model: what goes out."""

from __future__ import annotations

import dataclasses

import cocotb
from cocotb.triggers import RisingEdge

from framer_environment import (
    INPUTS,
    LATENCY,
    REQUESTS,
    RESPONSE_ROUTE,
    RESPONSES,
    ROUTE,
    SETTINGS,
    Bench,
    some_operation,
    some_route,
    write,
)
from xoe import Opcode, Operation
from xoe.framer import Framer
from xoe.wire import RESPONSE_BIT
from xoe_tb import PAUSES, params, reset


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(source_pause=list(PAUSES), sink_pause=list(PAUSES))
async def every_length_passes(dut, source_pause, sink_pause):
    bench = Bench(dut, SETTINGS, source_pause, sink_pause)
    await bench.start()
    for size in range(1, min(256, 2 * bench.size + 1) + 1):
        bench.send(write(bench.rng, size))
    await bench.check()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def every_length_passes_alone(dut):
    bench = Bench(dut)
    await bench.start()
    for size in range(1, 257):
        bench.send(write(bench.rng, size))
        await bench.check_frame()
        assert not bench.waiting[REQUESTS]
    await bench.check()


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(source_pause=list(PAUSES), sink_pause=list(PAUSES))
async def anything_passes(dut, source_pause, sink_pause):
    """All lengths, kinds, routes and classes, tagged or not, under every MTU; registers change between rounds."""
    bench = Bench(dut, SETTINGS, source_pause, sink_pause)
    await bench.start()
    sizes = bench.rng.sample(range(1, 257), 256)
    for count, mtu in enumerate((298, 303, 511, 1024)):
        bench.set(mtu=mtu, tagged=bench.rng.random() < 0.5, vid=bench.rng.getrandbits(12))
        for size in sizes[64 * count : 64 * (count + 1)]:
            bench.send(operation := write(bench.rng, size), some_route(bench.rng, operation))
            bench.send(operation := some_operation(bench.rng), some_route(bench.rng, operation))
        await bench.check()


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(mtu=[256, 257, 264, 600, "mtu", 9000])
async def frames_are_filled_to_the_mtu(dut, mtu):
    """The grouping is determined while the next operation is always there: frames equal the model's."""
    bench = Bench(dut)
    await bench.start()
    most = params()["mtu"]
    bench.set(mtu=most if mtu == "mtu" else mtu)
    limit = min(bench.settings.mtu, most)
    bench.model.settings = dataclasses.replace(bench.settings, mtu=limit)
    room = (limit - 26) // 8 * 8
    operations = []
    for excess in (0, 8, 0, -8, 8, 8, 0):  # fits exactly, by 8 bytes too long, ...
        left = room + excess
        while left > 200:
            operations.append(write(bench.rng, 80))
            left -= 96
        operations.append(write(bench.rng, left - 16))
    routed = [(operation, ROUTE) for operation in operations]
    expected = Framer(bench.model.settings, params()["first_sequence"]).frames(routed)
    assert max(map(len, expected)) == 14 + room + 26
    for operation in operations:
        bench.send(operation)
    await bench.check()
    assert bench.frames == expected


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def what_exceeds_the_mtu_goes_alone(dut):
    bench = Bench(dut)
    await bench.start()
    bench.set(mtu=256)
    for size in (256, 1, 1, 256, 256, 216, 1, 208, 1):
        bench.send(write(bench.rng, size))
    expected = Framer(bench.settings, params()["first_sequence"]).frames(bench.waiting[REQUESTS])
    assert len(expected) == 8
    await bench.check()
    assert bench.frames == expected


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(tagged=[False, True])
async def short_frames_are_padded(dut, tagged):
    bench = Bench(dut)
    await bench.start()
    bench.set(tagged=tagged)
    for opcode in (Opcode.FENCE, Opcode.READ, Opcode.WRITE | RESPONSE_BIT, Opcode.FENCE | RESPONSE_BIT):
        bench.send(operation := Operation(opcode), RESPONSE_ROUTE if operation.is_response else ROUTE)
        await bench.check_frame()
    await bench.check()
    assert [len(frame) for frame in bench.frames] == [60] * 4


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def sequence_numbers_wrap(dut):
    """Each queue pair and direction has its own count; the model has it too."""
    bench = Bench(dut)
    await bench.start()
    for qp in range(params()["queue_pairs"]):
        bench.send(Operation(Opcode.READ), dataclasses.replace(ROUTE, local_qp=qp))
        bench.send(Operation(Opcode.READ | RESPONSE_BIT), dataclasses.replace(RESPONSE_ROUTE, local_qp=qp))
    for _ in range(4):
        await bench.check()
        bench.send(Operation(Opcode.READ))
        bench.send(Operation(Opcode.READ | RESPONSE_BIT), RESPONSE_ROUTE)
    await bench.check()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(flows=[1, 2])
async def same_flow_in_frames_of_one_beat(dut, flows):
    """Frames of one flow right behind each other, apart only by their destination queue pair; or of two, by turns."""
    bench = Bench(dut)
    await bench.start()
    for count in range(100):
        route = dataclasses.replace(ROUTE, remote_qp=count % 2, local_qp=count // 2 % flows)
        bench.send(Operation(Opcode.READ, tag=count), route)
    await bench.check()
    assert len(bench.frames) == 100


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def reset_in_the_middle(dut):
    bench = Bench(dut, SETTINGS, "random", "random")
    await bench.start()
    for clocks in range(60, 100):
        for _ in range(20):
            bench.send(operation := some_operation(bench.rng), some_route(bench.rng, operation))
        for _ in range(clocks):
            await RisingEdge(dut.clk)
        await reset(dut)
        while not bench.sink.empty():
            await bench.sink.recv()
        bench.forget()
    bench.send(write(bench.rng, 100))
    await bench.check()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def neither_input_starves_the_other(dut):
    bench = Bench(dut)
    await bench.start()
    answer = Operation(Opcode.READ | RESPONSE_BIT, 1, 0, 256, bytes(256))
    for _ in range(60):
        bench.send(write(bench.rng, 256))
        bench.send(answer, RESPONSE_ROUTE)
    order = await bench.check()
    assert order[0] == RESPONSES
    both = 2 * min(order.count(REQUESTS), order.count(RESPONSES))
    assert order[:both] == [RESPONSES, REQUESTS] * (both // 2)


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(late=INPUTS)
async def a_late_comer_is_next(dut, late):
    """With the other input saturated, what comes late waits for no more than what is gathered already.

    Of short frames that is what the wire needs to be busy while one becomes known to it.
    """
    bench = Bench(dut)
    await bench.start()
    request, answer = (write(bench.rng, 256), ROUTE), (Operation(Opcode.READ | RESPONSE_BIT), RESPONSE_ROUTE)
    many, one = (request, answer) if late == "responses" else (answer, request)
    for _ in range(300):
        bench.send(*many)
    for _ in range(3):
        first = await bench.check_frame()
    bench.send(*one)
    order = await bench.check()
    assert order.index(1 - first) <= 2 + LATENCY * bench.size // len(bench.frames[0])
