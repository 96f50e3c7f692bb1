"""The requester while connections begin and end: which commands go, what is lost, and how many atomics may wait."""

from __future__ import annotations

import cocotb
from cocotb.triggers import ClockCycles

from requester_environment import CONFIG, Environment
from xoe import Operation
from xoe.wire import RESPONSE_BIT, Opcode


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def commands_go_only_where_they_are_connected(dut):
    env = Environment(dut)
    await env.start()
    qp, entry = CONFIG.queue_pairs - 1, env.table[-1]
    for change in ("is_open", "mac", "node", "remote_qp"):
        for flipped in (1, 0):
            env.table[qp] = entry | {change: entry[change] ^ flipped}
            await ClockCycles(dut.clk, 20)
            env.send(*(env.command(opcode, 8, qp=qp) for opcode in (Opcode.READ, Opcode.WRITE, Opcode.ADD)))
            env.send(env.command(Opcode.READ, 8, qp=0), env.command(Opcode.READ, 0, qp=qp))
            await ClockCycles(dut.clk, 80)
            while env.arrived:
                env.answer(env.arrived.popleft())
            await env.settle()
    assert env.counts["not_connected"] == 12


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(change=[{"is_open": 0}, {"epoch": 77}], timeout=[0, 1 << 20])
async def what_an_incarnation_had_in_flight_is_lost(dut, change, timeout):
    """Its late answers are strays; other connections go on, and so does its next incarnation."""
    env = Environment(dut)
    await env.start(timeout=timeout)
    for qp in (1, 0, 1):
        entry = env.table[qp]
        env.send(*(env.command(Opcode.READ, 8, qp=number % 2) for number in range(CONFIG.tags)))
        while len(env.arrived) < CONFIG.tags:
            await env.edge
        ours = [waiting for waiting in env.arrived if waiting.command.qp == qp]
        env.lost |= {waiting.command.id for waiting in ours}
        env.table[qp] = entry | change
        while env.counts["connection_lost"] % (CONFIG.tags // 2) or not env.counts["connection_lost"]:
            await env.edge
        await ClockCycles(dut.clk, 20 * CONFIG.tags)
        assert len(env.answers) == CONFIG.tags - len(ours), "the others are not"
        for waiting in env.arrived:
            if waiting in ours:
                env.stray(Operation(waiting.command.opcode | RESPONSE_BIT, waiting.tag, 0, 8, bytes(8)))
            else:
                env.answer(waiting)
        env.arrived.clear()
        await env.settle()
        env.table[qp] = entry | {"epoch": (entry["epoch"] + 5) % 256}
        await ClockCycles(dut.clk, 20)
        env.send(env.command(Opcode.READ, 8, qp=qp))
        while not env.arrived:
            await env.edge
        env.answer(env.arrived.popleft())
        await env.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(slots=[1, 2, 3])
async def no_more_atomics_wait_than_the_other_end_has_slots(dut, slots):
    """Whatever is behind one that waits waits too; an answer lets the next go, and a new incarnation begins anew."""
    env = Environment(dut)
    await env.start()
    for number, qp in enumerate((2, 3, 2)):
        # An incarnation of its own: what was in flight on another one, before a reset too, does not count.
        env.table[qp] |= {"atomic_slots": slots, "epoch": 100 + 3 * slots + number}
        await ClockCycles(dut.clk, 20)
        env.send(*(env.command(Opcode.ADD, 8, qp=qp) for _ in range(slots + 2)), env.command(Opcode.READ, 8, qp=0))
        for left in range(3):
            await ClockCycles(dut.clk, 60)
            seen = [waiting for waiting in env.arrived if waiting.command.opcode == Opcode.ADD]
            assert len(seen) == min(slots, slots + 2 - left)
            assert (len(env.arrived) == len(seen)) == (left < 2)
            env.answer(env.arrived.popleft())
        while env.arrived or env.expected:
            await ClockCycles(dut.clk, 40)
            while env.arrived:
                env.answer(env.arrived.popleft())
        await env.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(change=[{"is_open": 0}, {"epoch": 77}])
async def an_atomic_waits_no_longer_than_its_incarnation(dut, change):
    """Else the commands behind it would wait until the next reset, as nobody answers any more."""
    env = Environment(dut)
    await env.start()
    entry = env.table[1] | {"atomic_slots": 1, "epoch": 50 + len(change) + change.get("epoch", 0)}
    env.table[1] = entry
    await ClockCycles(dut.clk, 20)
    atomics = [env.command(Opcode.ADD, 8, qp=1) for _ in range(3)]
    env.send(*atomics, env.command(Opcode.READ, 8, qp=0))
    await ClockCycles(dut.clk, 200)
    assert len(env.arrived) == 1, "there is one slot"
    env.lost |= {atomic.id for atomic in atomics}
    env.table[1] = entry | change
    while len(env.arrived) < 4:
        await env.edge
    env.answer(env.arrived.pop())
    await env.settle()
    assert env.counts["connection_lost"] == 3


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def atomics_of_an_incarnation_do_not_count_in_one_of_the_same_epoch(dut):
    """An epoch comes again after 256 incarnations."""
    env = Environment(dut)
    await env.start()
    entry = env.table[3] | {"atomic_slots": 1, "epoch": 30}
    for _ in range(2):
        await env.begin(3)
        env.table[3] = entry
        await ClockCycles(dut.clk, 20)
        lost = env.command(Opcode.ADD, 8, qp=3)
        env.send(lost)
        while not env.arrived:
            await env.edge
        env.arrived.clear()
        env.lost.add(lost.id)
        env.table[3] = entry | {"is_open": 0}
        await env.settle()
