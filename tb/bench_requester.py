"""The requester held against its model, one behaviour after the other, while all connections are open."""

from __future__ import annotations

import dataclasses

import cocotb
from cocotb.triggers import ClockCycles

from requester_environment import BUS, CONFIG, PAGES, SPACE, Environment, clock
from xoe import Status
from xoe.wire import ATOMICS, Opcode
from xoe_tb import StreamMonitor
from xoe_tb.command import beats

LATENCY = 7  # clocks from a command's last beat to its request
RESPONSE_LATENCY = 6  # for one beat
BOUNDARIES = range(1, 2 * BUS + 2)
HOME = 0x10000  # of the page that grants all


async def serve(env: Environment) -> None:
    """Answer each request as it comes."""
    while True:
        await env.edge
        while env.arrived:
            env.answer(env.arrived.popleft())


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_opcode(dut):
    env = Environment(dut)
    await env.start()
    cocotb.start_soon(serve(env))
    for opcode in range(256):
        env.send(env.command(opcode, 0 if opcode == Opcode.FENCE else 8))
    await env.settle()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def every_length(dut):
    env = Environment(dut)
    await env.start()
    cocotb.start_soon(serve(env))
    for length in [*BOUNDARIES, *range(248, 259), 0, 511]:
        for opcode in (Opcode.WRITE, Opcode.READ):
            env.send(env.command(opcode, length, HOME + env.rng.randrange(1024)))
    for opcode in sorted(ATOMICS):
        for length in range(18):
            env.send(env.command(opcode, length))
    for length in (0, 1, 256):
        env.send(env.command(Opcode.FENCE, length))
    await env.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_write_ends_in_zeros(dut):
    env = Environment(dut)
    beats = StreamMonitor(dut, "requests")
    await env.start()
    cocotb.start_soon(serve(env))
    for length in BOUNDARIES:
        env.send(env.command(Opcode.WRITE, length))
        await env.settle()
        data = b""
        while not beats.empty():
            data += (await beats.recv()).data.to_bytes(1024, "little")[:BUS]
        assert not any(data[length : -(-length // 8) * 8])


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def data_of_the_wrong_size(dut):
    env = Environment(dut)
    await env.start()
    cocotb.start_soon(serve(env))
    swap, add, fence = Opcode.COMPARE_SWAP, Opcode.ADD, Opcode.FENCE
    for opcode, length in [(Opcode.WRITE, n) for n in (1, BUS, BUS + 1, 256)] + [
        (Opcode.READ, 8),
        (swap, 8),
        (add, 4),
        (fence, 0),
    ]:
        for size in (1, 2, 3, 256 // BUS, 256 // BUS + 1, 40):
            env.send(env.command(opcode, length, data=env.rng.randbytes(size * BUS)))
            env.send(env.command(Opcode.WRITE, env.rng.choice(BOUNDARIES)))
    await env.settle()


FAULTS = {  # in the order of their tests
    "unsupported": {"opcode": Opcode.HALF_ADD},
    "length": {"length": 3},
    "qp": {"qp": 0xFFF},
    "size": {"data": bytes(3 * BUS)},
    "misaligned": {"address": HOME + 1},
    "space": {"address_space": SPACE ^ 0x8000},
    "page": {"address": 0x20000},
    "rights": {"address": 0x11000},
    "crosses": {"address": HOME + 0x1000 - 4},
}


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_pair_of_faults(dut):
    """The model says which of two comes first; its own tests say so by hand."""
    env = Environment(dut)
    await env.start(mtu=256)
    cocotb.start_soon(serve(env))
    for one in FAULTS.values():
        for other in FAULTS.values():
            for opcode, length in ((Opcode.ADD, 8), (Opcode.WRITE, 209), (Opcode.READ, 208), (Opcode.READ, 209)):
                fields = {"opcode": opcode, "length": length, "address": HOME} | one | other
                env.send(env.command(**fields))
    await env.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def rights_and_ends_of_pages(dut):
    env = Environment(dut)
    await env.start()
    cocotb.start_soon(serve(env))
    for address, size, _ in PAGES:
        for opcode, length in (
            (Opcode.READ, 16),
            (Opcode.WRITE, 16),
            (Opcode.OR, 8),
            (Opcode.INC, 4),
            (Opcode.FENCE, 0),
        ):
            end = address + (1 << size)
            for place in (address - 1, address, end - 17, end - 16, end - 15, end - 8, end - 4, end - 1, end):
                env.send(env.command(opcode, length, place % (1 << 64)))
    await env.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(mtu=[256, 257, 263, 264, 265, 297, 298, 299, 4096])
async def what_fits_a_frame(dut, mtu):
    env = Environment(dut)
    await env.start(mtu)
    cocotb.start_soon(serve(env))
    for length in (1, 207, 208, 209, 215, 216, 217, 223, 224, 225, 247, 248, 249, 255, 256):
        env.send(env.command(Opcode.READ, length), env.command(Opcode.WRITE, length))
    env.send(env.command(Opcode.COMPARE_SWAP), env.command(Opcode.FENCE, 0))
    await env.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def every_way_to_answer(dut):
    env = Environment(dut)
    await env.start()
    requests = [(Opcode.READ, 1), (Opcode.READ, 8), (Opcode.READ, 2 * BUS + 1), (Opcode.READ, 256)]
    requests += [(Opcode.WRITE, 20), (Opcode.FENCE, 0), (Opcode.SUB, 4), (Opcode.COMPARE_SWAP, 8)]
    changes = [{"status": status} for status in range(16)]
    changes += [{"status": status, "data": bytes(2 * BUS)} for status in range(16)]
    changes += [{"data": env.rng.randbytes(8 * words)} for words in (0, 1, 2, 3, 31, 32, 33, 255)]
    changes += [{"opcode": opcode} for opcode in (0x01, 0x41, 0x42, 0x43, 0x51, 0x52, 0x7F, 0xC1)]
    for opcode, length in requests:
        for change in changes:
            env.send(env.command(opcode, length))
            while not env.arrived:
                await env.edge
            env.answer(env.arrived.popleft(), **change)
    await env.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def an_answer_counts_once(dut):
    """The same response again, at once and later; responses to tags that are free, or were never given."""
    env = Environment(dut)
    await env.start()
    for opcode, length in ((Opcode.WRITE, 8), (Opcode.READ, 2 * BUS + 3), (Opcode.FENCE, 0)):
        for copies in (1, 2, 3):
            env.send(env.command(opcode, length))
            while not env.arrived:
                await env.edge
            response = env.answer(env.arrived.popleft())
            for _ in range(copies):
                env.stray(response)
            await env.settle()
            env.stray(response)
            env.stray(dataclasses.replace(response, tag=response.tag ^ 0x8000))
            env.stray(dataclasses.replace(response, tag=response.tag ^ 1))
            await env.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def tags_run_out(dut):
    env = Environment(dut)
    await env.start()
    env.send(*(env.command(Opcode.READ, 40) for _ in range(CONFIG.tags)))
    refused = env.command(Opcode.READ, 0)
    late = env.command(Opcode.WRITE, 2 * BUS)
    env.send(refused, late, env.command(Opcode.FENCE, 1))
    await ClockCycles(dut.clk, 3 * CONFIG.tags + 300)
    assert dut.in_flight.value.to_unsigned() == CONFIG.tags == len(env.arrived)
    assert env.completed == 0  # what is refused needs no tag, but room for its completion
    env.answer(env.arrived[CONFIG.tags // 2])
    while len(env.arrived) == CONFIG.tags:
        await env.edge
    assert env.arrived[-1].command == late
    del env.arrived[CONFIG.tags // 2]
    for waiting in reversed(env.arrived):
        env.answer(waiting)
    await env.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_user_that_stops_in_a_command_holds_up_nobody(dut):
    env = Environment(dut)
    held = [False]
    env.commands.pause = lambda: held[0]
    await env.start()
    env.send(*(env.command(Opcode.READ, 256) for _ in range(3)), env.command(Opcode.WRITE, 3 * BUS))
    while env.commands._sendQ or not dut.commands_tvalid.value:  # the write's first beat is out
        await env.edge
    held[0] = True
    await ClockCycles(dut.clk, 50)
    assert [waiting.command.opcode for waiting in env.arrived] == [Opcode.READ] * 3
    for waiting in env.arrived:
        env.answer(waiting)
    await ClockCycles(dut.clk, 150)
    assert env.completed == 3
    assert dut.requests_tvalid.value == 0
    env.arrived.clear()
    held[0] = False
    cocotb.start_soon(serve(env))
    await env.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def requests_that_are_held_do_not_hold_completions(dut):
    env = Environment(dut)
    held = [False]
    env.requests.pause = lambda: held[0]
    await env.start()
    env.send(*(env.command(Opcode.READ, 100) for _ in range(3)))
    while len(env.arrived) < 3:
        await env.edge
    held[0] = True
    env.send(*(env.command(Opcode.WRITE, 256) for _ in range(30)))
    await ClockCycles(dut.clk, 600)
    assert dut.commands_tready.value == 0
    for waiting in env.arrived:
        env.answer(waiting)
    await ClockCycles(dut.clk, 100)
    assert env.completed == 3
    env.arrived.clear()
    held[0] = False
    cocotb.start_soon(serve(env))
    await env.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def completions_that_are_held_are_not_lost(dut):
    env = Environment(dut)
    held = [False]
    env.completions.pause = lambda: held[0]
    await env.start()
    cocotb.start_soon(serve(env))
    held[0] = True
    for _ in range(2 * CONFIG.tags):
        env.send(env.command(Opcode.READ, 100), env.command(Opcode.READ, 0))
    await ClockCycles(dut.clk, 40 * CONFIG.tags + 500)
    assert env.completed == 0
    assert len(env.answers) == CONFIG.tags // 2, "there is room for no more completions"
    assert dut.responses_tready.value == 1, "responses wait for nobody"
    held[0] = False
    await env.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def refusals_and_responses_take_turns(dut):
    env = Environment(dut)
    held = [True]
    await env.start()
    count = CONFIG.tags // 4
    env.send(*(env.command(Opcode.FENCE, 0) for _ in range(count)))
    while len(env.arrived) < count:
        await env.edge
    env.responses.pause = lambda: held[0]
    for waiting in env.arrived:
        env.answer(waiting)
    order = StreamMonitor(dut, "completions")
    env.send(*(env.command(Opcode.FENCE, 1) for _ in range(3 * count)))
    while order.empty():
        await env.edge
    held[0] = False
    await env.settle()
    statuses = []
    while not order.empty():
        statuses.append((await order.recv()).data >> 8 * BUS + 16 + 8 + 9)
    begin, end = statuses.index(Status.DONE), len(statuses) - statuses[::-1].index(Status.DONE)
    assert statuses[begin:end] == [Status.DONE, Status.MALFORMED] * (count - 1) + [Status.DONE]


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def latencies(dut):
    env = Environment(dut)
    await env.start()
    for opcode, length in ((Opcode.READ, 64), (Opcode.WRITE, 8), (Opcode.WRITE, 256)):
        env.send(env.command(opcode, length))
        while not (dut.commands_tvalid.value and dut.commands_tready.value and dut.commands_tlast.value):
            await env.edge
        begun = clock()
        while not dut.requests_tvalid.value:
            await env.edge
        assert clock() - begun == LATENCY
        while not env.arrived:
            await env.edge
        env.answer(env.arrived.popleft())
        while not (dut.responses_tvalid.value and dut.responses_tready.value):
            await env.edge
        begun = clock()
        while not dut.completions_tvalid.value:
            await env.edge
        assert clock() - begun == RESPONSE_LATENCY + (beats(length, BUS) - 1 if opcode == Opcode.READ else 0)
        await env.settle()
