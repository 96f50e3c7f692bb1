"""The block that admits frames, held against what the document says of each frame that comes."""

from __future__ import annotations

import cocotb

from admission_environment import CONFIG, OUTPUTS, AdmissionBench
from xoe.wire import GRID, Kind
from xoe_hdl.transport.admission import ACKS, CONTROLS, COUNTERS
from xoe_tb import PAUSES, params

EVENTS = params()["events"]
KINDS = tuple(Kind)
CAUSES = {  # kind and flaw of frames that are dropped, and what counts them
    **{(kind, "bad"): None for kind in KINDS},
    **{(kind, flaw): "stranger" for kind in (Kind.DATA, Kind.ACK) for flaw in ("mac", "src_node", "src_qp")},
    **{(kind, flaw): "other_epoch" for kind in (Kind.DATA, Kind.ACK) for flaw in ("epoch", "src_epoch", "closed")},
    (Kind.ACK, "short"): "bad_body",
    (Kind.CONTROL, "short"): "bad_body",
    (Kind.DATA, "class"): "bad_class",
}
ROUNDS = 1 << CONFIG.counter_width


async def any_frames(bench: AdmissionBench, count: int) -> None:
    """Frames of all kinds, most of them right; several wait at the input."""
    rng = bench.rng
    for _ in range(count):
        kind, flaw = rng.choice((Kind.DATA, Kind.DATA, Kind.ACK, Kind.CONTROL)), None
        if rng.random() < 0.4:
            name = rng.choice((None, *COUNTERS[:-1]))
            kind, flaw = rng.choice(
                [cause for cause, counts in CAUSES.items() if counts == name and cause[1] != "closed"]
            )
        bench.offer(kind, flaw=flaw)
        while len(bench.waiting["frames"]) > rng.randrange(3):
            await bench.edge


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(pause=list(PAUSES))
async def frames_of_every_kind(dut, pause):
    bench = await AdmissionBench.started(dut, pause)
    bench.changes = 0.1
    await any_frames(bench, EVENTS)
    await bench.settle()
    assert min(bench.counts[name] for name in (*COUNTERS[:-1], "kept", "acknowledgement", "control", "bad", "told")) > 3


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def each_cause_of_a_drop_between_good_frames(dut):
    """Until each counter has been round, with nothing but that cause."""
    bench = await AdmissionBench.started(dut, "random")
    for (kind, flaw), name in CAUSES.items():
        for _ in range(ROUNDS + 1 if name else 2):
            qp, before = bench.rng.randrange(CONFIG.queue_pairs), dict(bench.counters)
            await bench.pass_on(Kind.DATA, qp)
            await bench.pass_on(kind, qp, flaw)
            bench.table[qp]["is_open"] = 1
            await bench.pass_on(kind, qp)
            changed = {other for other in COUNTERS if bench.counters[other] != before.get(other, 0)}
            assert changed == ({name} if name else set())
            assert bench.heard == []
    await bench.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def control_frames_are_passed_on_whoever_sent_them(dut):
    bench = await AdmissionBench.started(dut)
    for flaw in (None, "mac", "src_node", "src_qp", "epoch", "src_epoch", "closed"):
        qp = bench.rng.randrange(CONFIG.queue_pairs)
        await bench.pass_on(Kind.CONTROL, qp, flaw)
        bench.table[qp]["is_open"] = 1
    await bench.settle()
    assert bench.counters == {"control": 7}


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def control_frames_that_find_no_room_are_dropped(dut):
    """Those that have room wait; data passes meanwhile, and each one that is taken makes room for one more."""
    bench = await AdmissionBench.started(dut)
    controls = bench.sinks["controls"]
    controls.pause = lambda: True
    for _ in range(CONTROLS + 1 + ROUNDS + 2):
        await bench.pass_on(Kind.CONTROL)
        await bench.pass_on(Kind.DATA)
    assert bench.counters["control_dropped"] == ROUNDS + 2
    pauses = iter((False,))
    controls.pause = lambda: next(pauses, True)
    await bench.clocks(10)
    assert len(bench.expected["controls"]) == CONTROLS
    for _ in range(3):
        await bench.pass_on(Kind.CONTROL)
    assert bench.counters["control_dropped"] == ROUNDS + 4
    controls.pause = lambda: False
    await bench.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_refused_frame_is_told_of_until_that_is_taken(dut):
    """None of those that come meanwhile is; all are counted."""
    bench = await AdmissionBench.started(dut)
    told = bench.sinks["unaccepted"]
    for flaw in ("epoch", "src_epoch"):
        for late in (0, 1, 5, 40):
            told.pause = lambda: True
            count = bench.counts["told"]
            for qp in range(CONFIG.queue_pairs):
                await bench.pass_on(Kind.DATA, qp, flaw)
                await bench.pass_on(Kind.ACK, qp, flaw)
                await bench.pass_on(Kind.DATA, qp)
            await bench.clocks(late)
            assert dut.unaccepted_tvalid.value == 1
            assert bench.counts["told"] == count
            told.pause = lambda: False
            await bench.clocks(4)
            assert bench.counts["told"] == count + 1
            await bench.pass_on(Kind.DATA, None, flaw)
            await bench.clocks(4)
            assert bench.counts["told"] == count + 2
    await bench.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def what_a_frame_acknowledges_comes_before_it(dut):
    """While nobody takes that, frames wait behind it once the queue is full; then all go on."""
    bench = await AdmissionBench.started(dut)
    await bench.pass_on(Kind.DATA, ack_valid=1)
    assert not bench.expected["acks"]
    bench.sinks["acks"].pause = lambda: True
    for _ in range(ACKS + 6):
        bench.offer(Kind.DATA, ack_valid=1)
    await bench.clocks(12 * (ACKS + 6))
    assert len(bench.waiting["frames"]) == 5
    assert dut.arrivals_tvalid.value == 0
    assert len(bench.expected["arrivals"]) == 1
    bench.sinks["acks"].pause = lambda: False
    await bench.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def each_bit_of_sack(dut):
    """Further ones only where the frame has a word for them, whatever is behind the body else."""
    bench = await AdmissionBench.started(dut)
    for words in (2, 3):
        for bit in range(128):
            word, place = divmod(bit, 64)
            body = bytearray(3 * GRID)
            at = (2 * GRID if word else 0) + 7 - place // 8  # each word has its most significant byte first
            body[at] = 1 << place % 8
            found = {"words": words, "ack_valid": 1, "body": int.from_bytes(body, "little")}
            bench.offer(Kind.ACK, **found)
            bench.offer(Kind.DATA, **found)  # it has operations there
    await bench.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def credits_of_each_class_are_told(dut):
    bench = await AdmissionBench.started(dut)
    for kind in (Kind.DATA, Kind.ACK):
        for credit_class in range(8):
            for credit_valid in (0, 1):
                for traffic_class in range(8):
                    classes = {"credit_class": credit_class, "traffic_class": traffic_class}
                    bench.offer(kind, ack_valid=1, credit_valid=credit_valid, **classes)
    await bench.settle()


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def resets_in_the_middle(dut):
    """Whatever the step, and with all that waits at an output."""
    bench = await AdmissionBench.started(dut)
    for clocks in range(60):
        bench.hold_back(bench.rng.choice(list(PAUSES)))
        await any_frames(bench, 3)
        await bench.clocks(clocks % 12)
        await bench.reset()
        assert all(bench.counter(name) == 0 for name in COUNTERS)
        assert not any(getattr(dut, f"{name}_tvalid").value == 1 for name in OUTPUTS)
    await any_frames(bench, 20)
    await bench.settle()
