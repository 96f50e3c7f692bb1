"""Opening and closing held against the model: any events in any order, time-outs, resets."""

from __future__ import annotations

from collections import Counter
from random import Random

import cocotb
from cocotb.triggers import ClockCycles

from connection_environment import COUNTER_WIDTH, EVENTS, INPUTS, LARGEST, LOOKS, QUEUE_PAIRS, Bench, Model
from xoe.config import credits_needed
from xoe.connection import State
from xoe.cyclic import after
from xoe.wire import ControlBody, Message
from xoe_hdl.transport.connection_layouts import BODY, Action
from xoe_hdl.transport.connection_memories import VIEWS
from xoe_tb import PAUSES, pack

CREDITS = ("credit_request", "credit_response", "credit_atomic")
SIZES = (0, 4, 5, 11, 12, 15)  # credit sizes: in and out of bounds
WINDOWS = (0, 1, 128, 129, 255)


def random_body(bench: Bench, model: Model) -> tuple[ControlBody, int | None]:
    """A control frame that may well mean something."""
    rng = bench.rng
    epochs = (model.epoch, model.proposal, after(model.epoch, -1, 8), rng.getrandbits(8))
    echo = rng.choice((None, model.epoch, model.proposal, model.proposal, rng.choice(epochs)))
    epoch = rng.choice((model.peer_epoch, model.peer_epoch, after(model.peer_epoch, 1, 8), rng.getrandbits(8)))
    message = rng.choice((Message.OPEN,) * 5 + (Message.CLOSE, Message.CLOSED, 3, 15))
    fields = {name: rng.getrandbits(width) for name, width in BODY.items()}
    values = {"message": message, "epoch": epoch, "echo_valid": int(echo is not None), "is_open": rng.getrandbits(1)}
    offer = sound_offer(rng) if rng.random() < 0.8 else edge_offer(rng)
    return ControlBody(**{**fields, **offer, **values}), echo


def least(credit_size: int) -> list[int]:
    """Credits that the largest operation of each class takes."""
    return [credits_needed(size, 1 << credit_size) for size in LARGEST]


def sound_offer(rng: Random) -> dict[str, int]:
    """What an end may offer: any that can be used, often only just."""
    size = rng.randint(5, 11)
    values = {"credit_size": size, "atomic_slots": rng.choice((1, 255, rng.randint(1, 255)))}
    values["window"] = rng.choice((1, 128, rng.randint(1, 128)))
    credits = zip(CREDITS, least(size), strict=True)
    return {**values, **{name: rng.choice((few, rng.randint(few, 4095))) for name, few in credits}}


def edge_offer(rng: Random) -> dict[str, int]:
    """One that could be used, but for a single thing, at most."""
    offer = sound_offer(rng)
    name = rng.choice(list(offer))
    if name in CREDITS:
        few = least(offer["credit_size"])[CREDITS.index(name)]
        return {**offer, name: few - rng.randint(0, few)}
    return {**offer, name: rng.choice({"credit_size": SIZES, "atomic_slots": (0, 0, 1), "window": WINDOWS}[name])}


async def any_event(bench: Bench) -> None:
    rng = bench.rng
    qp, draw = rng.randrange(QUEUE_PAIRS), rng.random()
    model = bench.ends[qp].model
    bench.drain(rng.random() < 0.8, rng.random() < 0.8)
    if draw < 0.15:
        action = rng.choice((Action.LISTEN, Action.LISTEN, Action.OPEN, Action.OPEN, Action.CLOSE))
        await bench.connect(qp, action)
    elif draw < 0.2:
        await bench.lose(qp, rng.choice((model.peer_epoch, rng.getrandbits(8))))
    elif draw < 0.3:
        await bench.meet(qp, rng.choice((model.proposal, model.proposal, model.epoch, rng.getrandbits(8))))
    else:
        body, echo = random_body(bench, model)
        await bench.control(qp, body, echo, stranger=rng.random() < 0.1)


async def hear_others(bench: Bench, qp: int | None = None) -> None:
    """Something comes in most clocks, to any connection but ``qp``."""
    numbers = [number for number in range(max(2, QUEUE_PAIRS)) if number != qp]
    while True:
        if bench.rng.random() < 0.75:
            await bench.hear(bench.rng.choice(numbers))
        else:
            await bench.edge


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(pause=list(PAUSES))
async def any_events(dut, pause):
    bench = Bench(dut)
    for port in (*bench.sources.values(), *bench.sinks.values()):
        port.pause = PAUSES[pause](bench.rng)
    await bench.start()
    cocotb.start_soon(hear_others(bench))
    seen = Counter[State]()
    while seen.total() < EVENTS * QUEUE_PAIRS or set(seen) != set(State):
        await any_event(bench)
        seen.update(end.model.state for end in bench.ends)
        if bench.rng.random() < 0.005:
            await bench.reset()
    while bench.strangers <= 1 << COUNTER_WIDTH:
        await bench.connect(0, Action.LISTEN)
        body, echo = random_body(bench, bench.ends[0].model)
        await bench.control(0, body, echo, stranger=True)


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def an_offer_that_cannot_be_used_is_ignored(dut):
    """Each bound, from both sides, while the frame would open the connection; the counter past its end."""
    bench = Bench(dut)
    await bench.start()
    await bench.connect(0, Action.LISTEN)
    edges = [{"window": window} for window in WINDOWS] + [{"atomic_slots": slots} for slots in (0, 1, 128)]
    for size in range(16):
        enough = dict(zip(CREDITS, least(size), strict=True)) | {"credit_size": size}
        edges += [enough] + [{**enough, name: enough[name] - 1} for name in CREDITS]
    for edge in edges:
        model, usual = bench.ends[0].model, sound_offer(bench.rng)
        before, opened = bench.bad_offers, model.incarnation
        body = ControlBody(epoch=bench.rng.getrandbits(8), is_open=1, **(usual | edge))
        await bench.control(0, body, model.proposal)
        assert bench.bad_offers + model.incarnation == before + opened + 1
        if model.state is State.OPEN:
            await bench.lose(0, model.peer_epoch)
    assert bench.bad_offers > 1 << COUNTER_WIDTH


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(retries=[0, 3, 15])
async def nobody_answers(dut, retries):
    """Opening and closing are asked again, each so often, and then given up."""
    bench = Bench(dut, open_timeout=3000, retries=retries)
    await bench.start()
    qp = QUEUE_PAIRS - 1
    await bench.connect(qp, Action.OPEN)
    for _ in range(retries + 1):
        await bench.late(qp)
    model = bench.ends[qp].model
    assert model.state is State.LISTENING
    await bench.late(qp)
    body = ControlBody(epoch=9, is_open=1, echo_valid=1, **sound_offer(bench.rng))
    await bench.control(qp, body, model.proposal)
    assert model.state is State.OPEN
    await ClockCycles(dut.clk, 4000)
    await bench.connect(qp, Action.CLOSE)
    for _ in range(retries + 1):
        await bench.late(qp)
    assert model.state is State.CLOSED


async def open_listening(bench: Bench, qp: int) -> None:
    model = bench.ends[qp].model
    body = ControlBody(epoch=bench.rng.getrandbits(8), is_open=1, **sound_offer(bench.rng))
    await bench.control(qp, body, model.proposal)
    assert model.state is State.OPEN


async def fall_silent(bench: Bench, qp: int, since: int) -> None:
    """Wait until a connection is lost to whose end nothing came since a clock, which was in time."""
    while not bench.out["m_axis_notice"]:
        await bench.edge
    await ClockCycles(bench.dut.clk, 20)
    assert 0 <= bench.noticed - since - bench.settings.silence_timeout <= LOOKS
    bench.ends[qp].model.lose()
    await bench.check(qp)


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(others=[False, True])
async def silence_ends_what_is_open(dut, others):
    """It begins anew with each frame and each opening, also if something comes to other connections all the time."""
    bench = Bench(dut, sync_interval=200, silence_timeout=1000 + LOOKS)
    await bench.start()
    qp = QUEUE_PAIRS - 1
    murmur = cocotb.start_soon(hear_others(bench, qp)) if others else None
    await bench.connect(qp, Action.LISTEN)
    for _ in range(6):
        await open_listening(bench, qp)
        await fall_silent(bench, qp, bench.noticed)
        await ClockCycles(dut.clk, bench.rng.randint(0, 2 * bench.settings.silence_timeout))
        assert not any(bench.out.values()), "it listens"
    await open_listening(bench, qp)
    await open_listening(bench, qp)
    if murmur:
        murmur.cancel()
        dut.heard_valid.value = 0
    since = await bench.hear(qp)
    for _ in range(6):
        await ClockCycles(dut.clk, bench.settings.silence_timeout - bench.rng.randint(20, 60))
        since = await bench.hear(qp)
        assert not any(bench.out.values()), "it was heard"
    await fall_silent(bench, qp, since)
    await bench.connect(qp, Action.OPEN)
    await ClockCycles(dut.clk, 2 * bench.settings.silence_timeout)
    assert not any(bench.out.values()), "it is opening"


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def delivered_frames_hold_the_next_incarnation_back(dut):
    """Those that are there already, so that nothing ends; those that come until it has ended; at last none."""
    bench = Bench(dut)
    await bench.start()
    qp = QUEUE_PAIRS - 1
    model = bench.ends[qp].model
    await bench.connect(qp, Action.LISTEN)
    await open_listening(bench, qp)
    for step in range(20):
        incarnation, proposal = model.incarnation, model.proposal
        body = ControlBody(epoch=after(model.peer_epoch, 1, 8), is_open=step % 2, **sound_offer(bench.rng))
        bench.drain(False, False)
        await bench.control(qp, body, proposal)
        await bench.control(qp, body, None)
        await bench.meet(qp, proposal)
        assert (model.incarnation, model.state) == (incarnation, State.OPEN)
        bench.drain(True, False)
        await bench.control(qp, body, proposal)
        assert (model.incarnation, model.state) == (incarnation + 1, State.LISTENING)
        bench.drain(False, False)
        await bench.control(qp, body, proposal)
        bench.drain(True, True)
        await bench.control(qp, body, proposal)
        assert (model.incarnation, model.state, model.epoch) == (incarnation + 2, State.OPEN, proposal)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def epochs_outlive_a_reset(dut):
    bench = Bench(dut)
    await bench.start()
    for _ in range(4):
        before = [end.model.epoch for end in bench.ends]
        for qp in range(QUEUE_PAIRS):
            await bench.connect(qp, Action.OPEN)
        await bench.reset()
        assert [end.model.epoch for end in bench.ends] == [after(epoch, 1, 8) for epoch in before]
    for qp in range(QUEUE_PAIRS):
        await bench.connect(qp, Action.OPEN)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_reset_in_the_middle_opens_nothing(dut):
    bench = Bench(dut)
    bench.sinks["open_sender"].pause = lambda: True
    await bench.start()
    await bench.connect(0, Action.OPEN)
    bench.sources["control"].send(
        pack(
            INPUTS["control"],
            {
                "qp": 0,
                **bench.ends[0].peer,
                "echo": bench.ends[0].model.epoch,
                "echo_valid": 1,
                **sound_offer(bench.rng),
            },
        )
    )
    await ClockCycles(dut.clk, 100)
    assert dut.open_sender_tvalid.value == 1
    for name in VIEWS:
        assert getattr(dut, f"{name}_is_open").value == 0
    await bench.reset()
    bench.sinks["open_sender"].pause = PAUSES["never"](bench.rng)
    await ClockCycles(dut.clk, 100)
    assert not any(bench.out.values())
    await bench.check_view("parser", 0)
    await bench.connect(0, Action.OPEN)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_table_is_closed_while_the_parts_are_told(dut):
    """When the other end begins anew: before the first of them shuts, and until the last of them is open again."""
    bench = Bench(dut)
    await bench.start()
    await bench.connect(0, Action.LISTEN)
    model = bench.ends[0].model
    await bench.control(0, ControlBody(epoch=7, is_open=1, **sound_offer(bench.rng)), model.proposal)
    views = [getattr(dut, f"{name}_is_open") for name in VIEWS]
    assert [view.value for view in views] == [1] * len(VIEWS)
    slow = [bench.sinks[name] for prefix in ("shut", "open") for name in bench.sinks if name.startswith(prefix)]
    for sink in slow:
        sink.pause = lambda: True
    body = {
        **bench.ends[0].peer,
        "echo": model.proposal,
        "echo_valid": 1,
        "epoch": 8,
        "is_open": 1,
        **sound_offer(bench.rng),
    }
    bench.sources["control"].send(pack(INPUTS["control"], {"qp": 0, **body}))
    while dut.shut_receiver_tvalid.value == 0:
        await bench.edge
    await ClockCycles(dut.clk, 3)
    for sink in slow:
        for _ in range(40):
            await bench.edge
            assert [view.value for view in views] == [0] * len(VIEWS)
        sink.pause = PAUSES["never"](bench.rng)
    await ClockCycles(dut.clk, 40)
    assert [view.value for view in views] == [1] * len(VIEWS)
    model.epoch = model.proposal


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def an_answer_within_thirty_clocks(dut):
    bench = Bench(dut)
    await bench.start()
    await bench.connect(0, Action.LISTEN)
    bench.sources["control"].send(
        pack(INPUTS["control"], {"qp": 0, **bench.ends[0].peer, "epoch": 7, **sound_offer(bench.rng)})
    )
    clocks = 0
    while dut.control_tvalid.value == 0:
        await bench.edge
    while dut.answers_tvalid.value == 0:
        await bench.edge
        clocks += 1
    dut._log.info("answered after %s clocks", clocks)
    assert clocks <= 30
