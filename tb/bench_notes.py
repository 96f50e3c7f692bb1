"""Acknowledgements and control frames: what they say, which go first, and which are not sent."""

from __future__ import annotations

import cocotb

from notes_environment import CONFIG, NotesBench
from xoe_hdl.transport.layouts import CLASSES
from xoe_hdl.transport.notes import WAITING
from xoe_tb import PAUSES, params

EVENTS = params()["events"]
EACH = 12  # clocks that a note takes, and a few more


async def any_notes(bench: NotesBench, count: int) -> None:
    rng = bench.rng
    for _ in range(count):
        if rng.random() < 0.3:
            bench.answer()
        else:
            bench.report(rng.choice((None,) * 8 + ("is_open", "epoch")))
        while sum(map(len, bench.waiting.values())) > rng.randrange(5):
            await bench.edge


@cocotb.test(timeout_time=500, timeout_unit="us")
@cocotb.parametrize(pause=list(PAUSES), stays=[0, 30])
async def notes_of_both_kinds(dut, pause, stays):
    bench = await NotesBench.started(dut, pause)
    bench.changes, bench.stays = 0.1, stays
    await any_notes(bench, EVENTS)
    await bench.settle()
    assert len(bench.made) == EVENTS
    assert min(bench.made.count(kind) for kind in ("control", "acknowledgement", "dropped")) > 0


@cocotb.test(timeout_time=500, timeout_unit="us")
async def each_reason_not_to_send_one(dut):
    """Alone, between others: over in the report, the table, or the sending end, or of another epoch in one of them."""
    bench = await NotesBench.started(dut)
    reasons = {
        "nothing": lambda entry, progress: None,
        "closed": lambda entry, progress: entry.update(is_open=0),
        "failed": lambda entry, progress: progress.update(alive=0),
        "table": lambda entry, progress: entry.update(epoch=entry["epoch"] ^ 1),
        "sender": lambda entry, progress: progress.update(epoch=progress["epoch"] ^ 128),
    }
    for spoil in reasons.values():
        qp = bench.rng.randrange(CONFIG.queue_pairs)
        entry, progress = bench.table[qp], bench.sending[qp]
        was = dict(entry), dict(progress)
        bench.report(qp=qp)
        spoil(entry, progress)
        await bench.settle()
        entry.update(was[0])
        progress.update(was[1])
        bench.report(qp=qp)
        await bench.settle()
    for flaw in ("is_open", "epoch"):
        bench.report(flaw)
        bench.report()
        await bench.settle()
    sent = ["acknowledgement"]
    assert bench.made == 2 * sent + (len(reasons) + 1) * ["dropped", *sent]


@cocotb.test(timeout_time=500, timeout_unit="us")
async def control_frames_go_first(dut):
    bench = await NotesBench.started(dut)
    bench.report()
    for _ in range(4):
        bench.report()
        bench.answer()
    await bench.settle()
    assert sorted(bench.made[1:5]) == 4 * ["control"] or bench.made[:4] == 4 * ["control"]


@cocotb.test(timeout_time=500, timeout_unit="us")
async def consumed_credits_are_told_class_after_class(dut):
    """Of each connection, however many take turns; one that is not sent is none of the classes' turns."""
    bench = await NotesBench.started(dut)
    for users in range(1, min(4, CONFIG.queue_pairs) + 1):
        for turn in range(2 * CLASSES):
            for qp in range(users):
                bench.report(qp=qp)
            if turn % 2:
                bench.report("epoch", 0)
        await bench.clocks(EACH * len(bench.waiting["reported"]))
        assert len(bench.headers) == 2 * CLASSES * users
        await bench.settle()


@cocotb.test(timeout_time=500, timeout_unit="us")
async def no_more_notes_than_headers_have_room(dut):
    """Nobody takes the headers: no note is made that has no room for its own; then all go on."""
    bench = await NotesBench.started(dut)
    bench.sinks["headers"].pause = lambda: True
    for _ in range(WAITING + 6):
        bench.report()
    await bench.clocks(EACH * (WAITING + 8))
    assert WAITING <= len(bench.made) <= WAITING + 1
    bench.sinks["headers"].pause = lambda: False
    await bench.settle()


@cocotb.test(timeout_time=500, timeout_unit="us")
async def resets_in_the_middle(dut):
    bench = await NotesBench.started(dut)
    for clocks in range(40):
        bench.stays = clocks % 9
        bench.hold_back(bench.rng.choice(list(PAUSES)))
        await any_notes(bench, 3)
        await bench.clocks(clocks % 14)
        dut.leaves.value = 0
        await bench.reset()
    await any_notes(bench, 10)
    await bench.settle()
