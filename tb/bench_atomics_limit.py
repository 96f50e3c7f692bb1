"""The limit of atomics without an answer: with answers late, too many, and of others; counts and epochs all round."""

from __future__ import annotations

import cocotb

from limit_environment import EPOCHS, QUEUE_PAIRS, LimitBench, Owner
from xoe.config import SLOTS_MAX
from xoe_tb import PAUSES, params

CLOCKS = params()["clocks"]
COUNTS = 1 << SLOTS_MAX.bit_length()  # after so many a count is round
SOME = (1, 2, 3, 128, SLOTS_MAX - 1, SLOTS_MAX)
AT_ONCE = 5  # clocks from a head to its permit


async def make(dut, slots: int | None = None) -> LimitBench:
    bench = LimitBench(dut)
    await bench.start()
    for qp in range(QUEUE_PAIRS):
        await bench.begin(qp, bench.rng.randrange(EPOCHS), slots or bench.rng.choice((1, 2, 5, SLOTS_MAX)))
    await bench.idle(10)
    return bench


def some_answer(bench: LimitBench) -> Owner | None:
    """Mostly one that is waited for; now and then one too many, or of another incarnation."""
    rng, qp = bench.rng, bench.rng.randrange(QUEUE_PAIRS)
    draw, owes = rng.random(), [qp for qp, link in enumerate(bench.links) if link.owed]
    if draw < 0.3 and owes:
        return bench.present(rng.choice(owes))
    if draw < 0.33:
        return Owner(qp, (bench.links[qp].epoch + rng.choice((0, 0, -1, 1, 7))) % EPOCHS)
    return None


def next_head(bench: LimitBench) -> None:
    ready = [qp for qp, link in enumerate(bench.links) if not link.settles]
    if bench.head is None and ready and bench.rng.random() < 0.8:
        bench.head = bench.present(bench.rng.choice(ready[:2] if bench.rng.random() < 0.7 else ready))


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(pause=list(PAUSES))
async def atomics_answers_and_incarnations(dut, pause):
    """The head is taken in a pattern; each connection begins anew now and then, with atomics of before at the head."""
    bench = await make(dut)
    waits = PAUSES[pause](bench.rng)
    for _ in range(CLOCKS):
        next_head(bench)
        if bench.rng.random() < 0.003:
            await bench.begin(bench.rng.randrange(QUEUE_PAIRS), slots=bench.rng.choice((1, 2, 5, SLOTS_MAX)))
        await bench.clock(some_answer(bench), takes=not next(waits))
    assert bench.counts["issued"] > CLOCKS // 30
    assert bench.counts["ignored"] > CLOCKS // 100
    assert bench.counts["answered"] > CLOCKS // 40


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(slots=list(SOME))
async def no_more_than_there_are_slots(dut, slots):
    """Of each connection; until the counts have been round. Each answer lets one more go."""
    bench = await make(dut, slots)
    for _ in range(2 + COUNTS // (slots + 3)):
        qp = bench.rng.randrange(QUEUE_PAIRS)
        assert await bench.go(qp, slots + 1) == slots
        for _ in range(3):
            await bench.answer(qp, 1)
            assert await bench.go(qp, 2) == 1
        bench.head = None
        await bench.answer(qp, slots)
        await bench.idle(8)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(many=[1, COUNTS - 1, COUNTS, 2 * COUNTS + 1])
async def answers_that_nobody_waits_for(dut, many):
    """None of them lets an atomic go: not before the first, not in between, not with others without an answer."""
    for slots in (1, 3, SLOTS_MAX):
        bench = await make(dut, slots)
        qp = bench.rng.randrange(QUEUE_PAIRS)
        await bench.answer(qp, many)
        await bench.use_all(qp)
        await bench.answer(qp, many)
        await bench.use_all(qp)
        assert await bench.go(qp, 1) == 1
        await bench.answer(qp, 1 + many)
        await bench.use_all(qp)
        assert await bench.go(qp, 1) == 1
        for epoch in (bench.links[qp].epoch - 1, bench.links[qp].epoch + 1):  # of others
            await bench.answer(qp, many, epoch % EPOCHS)
        assert await bench.go(qp, slots) == slots - 1
        bench.head = None
        await bench.answer(qp, slots)
        await bench.use_all(qp)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(between=["nothing", "sent", "answered"])
async def an_epoch_comes_again(dut, between):
    """After 256 incarnations. What was without an answer then is not waited for, whatever was sent between."""
    for slots, lost in ((1, 1), (4, 1), (4, 4), (SLOTS_MAX, 200)):
        bench = await make(dut, slots)
        qp = bench.rng.randrange(QUEUE_PAIRS)
        await bench.use_all(qp)
        assert await bench.go(qp, lost) == lost
        if between != "nothing":
            await bench.begin(qp)
            await bench.idle(10)
            assert await bench.go(qp, 1) == 1
            await bench.answer(qp, between == "answered")
        while bench.counts["begun"] < EPOCHS - (between != "nothing"):
            await bench.begin(qp)
            bench.counts["begun"] += 1
        await bench.idle(10)
        bench.head = bench.present(qp)
        await bench.idle(10)
        await bench.answer(qp, 3)  # too late by 256 incarnations
        await bench.use_all(qp)
        await bench.use_all(qp)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_same_epoch_begins_again_behind_the_last_atomic(dut):
    """The head is the same as it was: what was counted for it is not."""
    bench = await make(dut, 4)
    for qp in range(QUEUE_PAIRS):
        assert await bench.go(qp, 3) == 3
        await bench.begin(qp, bench.links[qp].epoch)
        await bench.use_all(qp)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def an_incarnation_ends_before_its_atomics_are_gone(dut):
    """They all go, and do not count in the next one."""
    bench = await make(dut, 2)
    qp = bench.rng.randrange(QUEUE_PAIRS)
    assert await bench.go(qp, 3) == 2
    was = bench.head
    await bench.begin(qp)
    for _ in range(300):
        bench.head = was
        while bench.head:
            await bench.clock(takes=True)
    assert bench.counts["over"] == 300
    await bench.answer(qp, 300, was.epoch)
    await bench.use_all(qp)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def other_connections_between_two_atomics(dut):
    """What was answered to them is not taken for answers to this one."""
    bench = await make(dut, 20)
    others = range(1, QUEUE_PAIRS)
    for qp in others:
        await bench.use_all(qp)
    assert await bench.go(0, 20) == 20
    for between in range(200):
        bench.head = None
        await bench.idle(between % 8)
        bench.head = bench.present(0)
        await bench.idle(between % 7)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def an_atomic_in_every_clock(dut):
    """Five clocks after the first; and an answer in every clock is counted."""
    bench = await make(dut, SLOTS_MAX)
    for _ in range(4):
        for qp in range(min(2, QUEUE_PAIRS)):
            await bench.idle(10)
            while QUEUE_PAIRS > 1 and bench.shown("head").qp == qp:
                await bench.clock()
            bench.head, went = bench.present(qp), []
            for _ in range(AT_ONCE + SLOTS_MAX):
                went.append(await bench.clock(takes=True))
                bench.head = bench.present(qp)
            first = went.index(True)
            assert first == AT_ONCE if QUEUE_PAIRS > 1 else first <= AT_ONCE
            assert went[first:] == [True] * SLOTS_MAX + [False] * (AT_ONCE - first)
            bench.head = None
        owes = [bench.present(qp) for qp in range(min(2, QUEUE_PAIRS)) for _ in range(SLOTS_MAX)]
        if bench.rng.random() < 0.5:
            bench.rng.shuffle(owes)
        for who in owes:
            await bench.clock(answer=who)
        await bench.idle(8)
        assert not any(link.owed for link in bench.links)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def resets_in_the_middle(dut):
    bench = await make(dut)
    for _ in range(40):
        for _ in range(bench.rng.randrange(60)):
            next_head(bench)
            await bench.clock(some_answer(bench), takes=bench.rng.random() < 0.8)
        await bench.reset()
    await bench.idle(8)
    for qp in range(min(2, QUEUE_PAIRS)):
        await bench.use_all(qp)
