"""The requester under traffic of every kind at once, with time-outs, resets and a table that changes."""

from __future__ import annotations

import dataclasses
from random import Random

import cocotb
from cocotb.triggers import ClockCycles

from requester_environment import ALL, BUS, CONFIG, PAGES, SPACE, Environment, Waiting, clock
from xoe import Operation
from xoe.command import Command, Completion
from xoe.requester import Requester
from xoe.wire import ATOMICS, SUPPORTED, Opcode, Rights
from xoe_tb import PAUSES, params

COMMANDS = params()["commands"]
SCAN = 8 * CONFIG.tags + 40  # clocks that it may take to find a request that timed out, and to complete it
HOME = PAGES[0][0]


def some_command(env: Environment) -> Command:
    """Mostly good ones, of every kind; each refusal now and then."""
    rng = env.rng
    opcode = rng.choice((Opcode.READ, Opcode.WRITE, rng.choice(sorted(ATOMICS)), rng.choice(sorted(SUPPORTED))))
    if rng.random() < 0.05:
        opcode = rng.randrange(256)
    length = rng.choice((rng.randint(1, 256), rng.randint(1, 2 * BUS + 1), 64))
    if opcode in ATOMICS:
        length = rng.choice((4, 8))
    if opcode == Opcode.FENCE:
        length = 0
    page, size, _ = PAGES[0] if rng.random() < 0.7 else rng.choice(PAGES)
    address = page + rng.choice((rng.randrange(1 << size), (1 << size) - rng.randrange(300))) & -rng.choice((1, 8, 8))
    fields = {"address": address % (1 << 64)}
    if rng.random() < 0.1:
        fault = rng.choice(("length", "qp", "address_space", "data", "address"))
        fields[fault] = {
            "length": rng.randrange(512),
            "qp": rng.randrange(1 << 12),
            "address_space": rng.choice((0, SPACE ^ 1 << rng.randrange(16))),
            "data": rng.randbytes(BUS * rng.randint(1, 3 + 256 // BUS)),
            "address": rng.getrandbits(64),
        }[fault]
    return env.command(**{"opcode": opcode, "length": length} | fields)


def some_answer(env: Environment, waiting: Waiting) -> None:
    """Mostly good; sometimes an error, one that does not fit, or one that comes again."""
    rng, changes = env.rng, {}
    if rng.random() < 0.2:
        changes["status"] = rng.randrange(16)
    if rng.random() < 0.1:
        changes["data"] = rng.randbytes(8 * rng.randrange(36))
    if rng.random() < 0.05:
        changes["opcode"] = rng.choice((waiting.command.opcode, 0x41, 0x42, 0x43))
    response = env.answer(waiting, **changes)
    while rng.random() < 0.2:
        env.stray(response)
    if rng.random() < 0.1:
        env.stray(dataclasses.replace(response, tag=(response.tag - CONFIG.tags) % (1 << 16)))


async def serve_in_any_order(env: Environment, hold: int) -> None:
    """Keep up to ``hold`` requests back, and answer any of those."""
    while True:
        await env.edge
        if env.arrived and (len(env.arrived) > hold or env.rng.random() < 0.1):
            place = env.rng.randrange(len(env.arrived))
            some_answer(env, env.arrived[place])
            del env.arrived[place]


def set_pauses(env: Environment, names: tuple[str, str, str, str]) -> None:
    streams = (env.commands, env.requests, env.responses, env.completions)
    for stream, name in zip(streams, names, strict=True):
        stream.pause = PAUSES[name](Random(env.rng.random()))


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(
    pauses=[
        ("never",) * 4,
        ("always_other",) * 4,
        ("bursts",) * 4,
        ("random",) * 4,
        ("never", "bursts", "never", "never"),
        ("never", "never", "never", "bursts"),
        ("random", "never", "bursts", "always_other"),
    ]
)
async def everything_at_once(dut, pauses):
    env = Environment(dut)
    await env.start()
    set_pauses(env, pauses)
    cocotb.start_soon(serve_in_any_order(env, CONFIG.tags // 2))
    for _ in range(COMMANDS):
        env.send(some_command(env))
    await env.settle()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def some_answers_come_late_or_never(dut):
    env, timeout = Environment(dut), 700
    await env.start(timeout=timeout)
    lost: list[Waiting] = []

    async def serve() -> None:
        while True:
            await env.edge
            while env.arrived:
                waiting = env.arrived.popleft()
                if env.rng.random() < 0.25:
                    lost.append(waiting)
                else:
                    some_answer(env, waiting)

    cocotb.start_soon(serve())
    for _ in range(5):
        for _ in range(COMMANDS // 5):
            env.send(some_command(env))
        await env.settle()
        assert {waiting for waiting, _ in env.timed_out} >= set(lost)
        for waiting in lost:  # too late
            env.stray(Operation(waiting.command.opcode | 0x40, waiting.tag, 0, 8, bytes(8)))
        lost.clear()
    assert env.timed_out
    for waiting, clocks in env.timed_out:
        assert timeout <= clocks <= timeout + SCAN, f"{waiting}: {clocks} clocks"


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(timeout=[1, 50])
async def all_time_out_at_once(dut, timeout):
    env = Environment(dut)
    await env.start(timeout=timeout)
    held = [False]
    env.completions.pause = lambda: held[0]
    held[0] = True
    env.send(*(env.command(Opcode.READ) for _ in range(CONFIG.tags)))
    await ClockCycles(dut.clk, timeout + 2 * SCAN)
    held[0] = False
    await env.settle()
    assert len(env.timed_out) == CONFIG.tags
    for waiting in env.arrived:
        env.stray(Operation(0x41, waiting.tag, 0, 8, bytes(8)))
    await env.finish()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def nothing_times_out_without_a_time_out(dut):
    env = Environment(dut)
    await env.start(timeout=0)
    env.send(*(env.command(Opcode.READ) for _ in range(CONFIG.tags)))
    await ClockCycles(dut.clk, 3000)
    assert len(env.arrived) == CONFIG.tags
    for waiting in env.arrived:
        env.answer(waiting)
    await env.settle()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def an_answer_meets_its_time_out(dut):
    """Whichever comes first completes the command, the other leaves no trace but a stray response."""
    env, timeout = Environment(dut), 40
    await env.start(timeout=timeout)
    for delay in range(timeout - 2, timeout + 4 * CONFIG.tags + 12):
        env.send(env.command(Opcode.READ, 2 * BUS))
        while not env.arrived:
            await env.edge
        waiting = env.arrived.popleft()
        while clock() < waiting.since + delay:
            await env.edge
        is_late = waiting.command.id not in env.answers
        env.answer(waiting)
        if is_late:
            del env.answers[waiting.command.id]
            env.counts["stray"] += 1
        else:
            env.racing.add(waiting.command.id)
        await env.settle()
    assert 0 < len(env.timed_out) < timeout + 4 * CONFIG.tags


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def resets_in_the_middle(dut):
    """Afterwards, nobody waits for what was asked before."""
    env = Environment(dut)
    await env.start()
    set_pauses(env, ("never", "random", "random", "bursts"))
    cocotb.start_soon(serve_in_any_order(env, CONFIG.tags // 2))
    for clocks in (1, 20, 21, 22, 60, 150, 400):
        for _ in range(60):
            env.send(some_command(env))
        await ClockCycles(dut.clk, clocks)
        old = [waiting for _, waiting in env.answers.values()]
        await env.reset()
        for _ in range(10):
            env.send(some_command(env))
        for waiting in old:
            env.stray(Operation(waiting.command.opcode | 0x40, waiting.tag, 0, 8, bytes(8)))
        await env.settle()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def the_table_changes_under_traffic(dut):
    """Each command sees the table whole, as it was before a write or as it is after; once the outcome is out, after."""
    env = Environment(dut)
    await env.start()
    cocotb.start_soon(serve_in_any_order(env, 0))
    going = True

    async def ask() -> None:
        while going:
            if len(env.expected) < 4:
                opcode, length = env.rng.choice(((Opcode.READ, 16), (Opcode.WRITE, 16), (Opcode.ADD, 8)))
                address = HOME + env.rng.choice((0, 0xFF0, 0x1000 - 8, 0x1800, 0x3FF0))
                env.send(env.command(opcode, length, address))
            await env.edge

    asking = cocotb.start_soon(ask())
    for _ in range(12):
        rights = env.rng.choice((ALL, Rights.READ, Rights.WRITE))
        await env.map(1, None)
        await env.map(0, env.rng.choice((None, env.page(HOME, 12, rights), env.page(HOME, 13, ALL))))
        await ClockCycles(dut.clk, env.rng.randrange(40))
    going = False
    await asking
    await env.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(opcode=[Opcode.WRITE, Opcode.READ])
async def one_line_after_the_other(dut, opcode):
    """64-byte operations without a clock lost, in and out, as long as there are tags."""
    if CONFIG.tags < 64:
        return
    env, count = Environment(dut), 200
    await env.start()
    spans: dict[str, list[int]] = {"commands": [], "requests": [], "completions": []}

    async def watch(name: str) -> None:
        valid, ready = getattr(dut, f"{name}_tvalid"), getattr(dut, f"{name}_tready")
        while True:
            await env.edge
            if valid.value and ready.value:
                spans[name].append(clock())

    async def serve() -> None:
        while True:
            await env.edge
            while env.arrived:
                env.answer(env.arrived.popleft())

    cocotb.start_soon(serve())
    for name in spans:
        cocotb.start_soon(watch(name))
    env.send(*(env.command(opcode, 64, HOME + 64 * (number % 64)) for number in range(count)))
    await env.settle()
    line = max(1, 64 // BUS)
    for name, clocks in spans.items():
        beats = line if (opcode == Opcode.WRITE) != (name == "completions") else 1
        assert len(clocks) == count * beats
        if beats == line:
            assert clocks[-1] - clocks[0] == count * beats - 1, name


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def step_by_step_with_the_whole_model(dut):
    """One thing at a time, so that the model has to agree on tags, counters and every completion."""
    env = Environment(dut)
    await env.start()
    model = Requester(CONFIG, env.cam)
    flying: list[tuple[int, Operation]] = []  # the requester's tag, the model's request
    for _ in range(COMMANDS // 2):
        command = some_command(env)
        if len(flying) == CONFIG.tags or (flying and env.rng.random() < 0.4):
            tag, request = flying.pop(env.rng.randrange(len(flying)))
            waiting = next(waiting for waiting in env.arrived if waiting.tag == tag)
            env.arrived.remove(waiting)
            response = env.answer(waiting, env.rng.choice((0, 0, 3, 9)))
            wanted = model.respond(dataclasses.replace(response, tag=request.tag))
            assert env.answers[waiting.command.id][0] == wanted
            while waiting.command.id in env.answers:
                await env.edge
            continue
        outcome, arrived, completed = model.submit(command), len(env.arrived), env.completed
        env.send(command)
        if isinstance(outcome, Completion):
            while env.completed == completed:
                await env.edge
            continue
        while len(env.arrived) == arrived:
            await env.edge
        tag = env.arrived[-1].tag
        assert tag % CONFIG.tags == outcome.operation.tag % CONFIG.tags
        flying.append((tag, outcome.operation))
    for waiting in env.arrived:
        env.answer(waiting)
    await env.settle()
    for event, count in model.counters.items():
        assert env.counts[event.name.lower()] == count
