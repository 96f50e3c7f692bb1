"""The acknowledger held against its model: what is due is offered in time, and nothing else is."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from xoe.acknowledger import Acknowledger
from xoe.transport import TransportSettings
from xoe_hdl.transport import receive_layouts as layouts
from xoe_hdl.transport.acknowledger import ACK_CFG
from xoe_hdl.transport.layouts import qp_bits
from xoe_tb import PAUSES, StreamSink, StreamSource, drive_struct, pack, params, reset, start

QUEUE_PAIRS, EVENTS = (params()[name] for name in ("queue_pairs", "events"))
BITS = qp_bits(QUEUE_PAIRS)
MANY = 1 << 30  # credits that are granted, so that a few are never urgent
NEVER = 100_000  # clocks, beyond the end of a test
CLASSES = 3
PORTS = {
    "owe": layouts.owe_layout(BITS),
    "paid": layouts.paid_layout(BITS),
    **dict.fromkeys(("open", "shut"), layouts.qp_layout(BITS)),
}
LOOK = 24 * (1 << BITS) + 60  # the longest that a look at a connection takes to come
IDLE_LOOK = 6 * (1 << BITS) + 10


class Bench:
    """Gives each event to the models when it is taken, and keeps for each connection since when it has been due."""

    def __init__(self, dut: Any, patience: int, **settings: int) -> None:
        self.dut, self.rng, self.edge = dut, Random(cocotb.RANDOM_SEED), RisingEdge(dut.clk)
        self.settings = TransportSettings(**settings)
        names = ("ack_every", "ack_delay", "sync_interval")
        drive_struct(dut, "cfg", ACK_CFG, {name: getattr(self.settings, name) for name in names})
        self.sources = {port: StreamSource(dut, port) for port in PORTS}
        self.due = StreamSink(dut, "due")
        self.patience = patience  # the longest that anything due may wait
        self.now = self.offers = 0
        self._forget()

    def _forget(self) -> None:
        self.models: list[Acknowledger | None] = [None] * QUEUE_PAIRS
        self.since: list[int | None] = [None] * QUEUE_PAIRS  # when it became due, if it is
        self.until = [-(1 << 31)] * QUEUE_PAIRS  # when it was due last
        self.waiting = {port: [] for port in PORTS}

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._run())

    async def reset(self) -> None:
        self.dut.rst.value = 1
        await self.edge
        self._forget()
        await reset(self.dut)

    def send(self, port: str, qp: int, **fields: int) -> None:
        self.waiting[port].append((qp, {**dict.fromkeys(("urgent", "is_credit", "traffic_class"), 0), **fields}))
        self.sources[port].send(pack(PORTS[port], {"qp": qp, **fields}))

    async def taken(self) -> None:
        while any(self.waiting.values()):
            await self.edge

    async def _run(self) -> None:
        dut = self.dut
        ports = [(port, getattr(dut, f"{port}_tvalid"), getattr(dut, f"{port}_tready")) for port in PORTS]
        while True:
            await self.edge
            self.now += 1
            if dut.rst.value == 1:
                continue
            for port, valid, ready in ports:
                if valid.value == 1 and ready.value == 1:
                    self._on_event(port, *self.waiting[port].pop(0))
            if dut.due_tvalid.value == 1 and dut.due_tready.value == 1:
                self._on_due(int(dut.due_tdata.value))
            self._look()

    def _on_due(self, qp: int) -> None:
        self.offers += 1
        ago = self.now - self.until[qp]
        assert ago <= max(LOOK, self.patience), f"{qp} was not due for {ago} clocks"
        if self.models[qp]:
            self.models[qp].pay(self.now)

    def _on_event(self, port: str, qp: int, fields: dict[str, int]) -> None:
        model = self.models[qp]
        if port == "open":
            self.models[qp] = Acknowledger(self.settings, [MANY] * CLASSES, self.now)
        elif port == "shut":
            self.models[qp] = None
        elif model is not None and port == "paid":
            model.pay_with_data(fields["traffic_class"])
        elif model is not None and fields["is_credit"]:
            model.free(self.now, fields["traffic_class"], MANY if fields["urgent"] else 1)
        elif model is not None:
            model.take(self.now, bool(fields["urgent"]))

    def _look(self) -> None:
        for qp, model in enumerate(self.models):
            if model is None or self.now < model.deadline:
                self.since[qp] = None
                continue
            self.until[qp] = self.now
            if self.since[qp] is None:
                self.since[qp] = self.now
            waited = self.now - self.since[qp]
            assert waited <= self.patience, f"{qp} has been due for {waited} clocks"


async def any_events(bench: Bench, events: int) -> None:
    rng = bench.rng
    for _ in range(events):
        qp, draw = rng.randrange(QUEUE_PAIRS), rng.random()
        if bench.models[qp] is None and draw < 0.3:
            bench.send("open", qp)
        elif draw < 0.6:
            values = {"is_credit": rng.getrandbits(1), "traffic_class": rng.randrange(CLASSES)}
            bench.send("owe", qp, urgent=int(rng.random() < 0.1), **values)
        elif draw < 0.9:
            bench.send("paid", qp, traffic_class=rng.randrange(CLASSES))
        elif draw < 0.92 and bench.models[qp] is not None:
            bench.send("shut", qp)
        while sum(map(len, bench.waiting.values())) > rng.randrange(6):
            await bench.edge
        if rng.random() < 0.1:
            await ClockCycles(bench.dut.clk, rng.randint(1, 200))
    await bench.taken()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=list(PAUSES), times=[(1, NEVER), (4, 3000), (64, NEVER)])
async def what_is_due_is_offered(dut, pause, times):
    ack_every, sync_interval = times
    slowest = 14 if pause == "bursts" else 8
    patience = (LOOK + 60) * 2 + QUEUE_PAIRS * slowest * 4
    bench = Bench(dut, patience, ack_every=ack_every, ack_delay=200, sync_interval=sync_interval)
    for port in (*bench.sources.values(), bench.due):
        port.pause = PAUSES[pause](bench.rng)
    await bench.start()
    await any_events(bench, EVENTS)
    await ClockCycles(dut.clk, patience + 3200)
    assert bench.offers > EVENTS // 200


@cocotb.test(timeout_time=400, timeout_unit="us")
async def resets_in_the_middle(dut):
    bench = Bench(dut, 3 * LOOK, ack_delay=100, sync_interval=500)
    await bench.start()
    for _ in range(10):
        await any_events(bench, EVENTS // 10)
        await bench.reset()
    offers = bench.offers
    await ClockCycles(dut.clk, 2000)
    assert bench.offers == offers, "nothing is open"


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(ack_delay=[0, 1, 500])
async def one_that_waits_is_offered_after_the_delay(dut, ack_delay):
    bench = Bench(dut, IDLE_LOOK, ack_delay=ack_delay, sync_interval=NEVER)
    await bench.start()
    qp = QUEUE_PAIRS - 1
    bench.send("open", qp)
    await bench.taken()
    rounds: list[int] = []
    while len(rounds) < 5:
        bench.send("owe", qp, urgent=0)
        await bench.taken()
        began = bench.now
        while bench.offers == len(rounds):
            await bench.edge
        rounds.append(bench.now)
        assert ack_delay <= bench.now - began <= ack_delay + IDLE_LOOK
        await ClockCycles(dut.clk, bench.rng.randint(1, 50))
    await ClockCycles(dut.clk, 1000)
    assert bench.offers == 5


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(traffic_class=list(range(CLASSES)))
async def a_data_frame_pays_for_the_frames_and_the_credits_of_its_class(dut, traffic_class):
    """Whatever else is owed stays so, and its time runs on from the first thing owed."""
    bench = Bench(dut, IDLE_LOOK, ack_delay=3 * IDLE_LOOK, sync_interval=NEVER)
    await bench.start()
    bench.send("open", 0)
    await bench.taken()
    for owes_frame, *freed in itertools.product((0, 1), repeat=1 + CLASSES):
        offers = bench.offers
        owed = [{"is_credit": 1, "traffic_class": number} for number in range(CLASSES) if freed[number]]
        owed += [{"traffic_class": 7}] * owes_frame  # the class has no meaning
        bench.rng.shuffle(owed)
        for fields in owed:
            bench.send("owe", 0, **fields)
            await ClockCycles(dut.clk, 2 * IDLE_LOOK // len(owed))
        await ClockCycles(dut.clk, bench.rng.randint(0, IDLE_LOOK // 2))
        bench.send("paid", 0, traffic_class=traffic_class)
        await ClockCycles(dut.clk, 5 * IDLE_LOOK)
        is_left = any(freed[number] for number in range(CLASSES) if number != traffic_class)
        assert bench.offers - offers == is_left, (owes_frame, freed)


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(owed=[{"is_credit": 0}, {"is_credit": 1, "traffic_class": 1}])
async def what_was_late_and_was_paid_is_not_offered(dut, owed):
    """A data frame goes out while the acknowledgement waits for its turn; it pays for what it tells."""
    if QUEUE_PAIRS == 1:
        return
    bench = Bench(dut, 1 << 30, ack_delay=20, sync_interval=NEVER)
    bench.due.pause = lambda: bench.is_held
    bench.is_held = True
    await bench.start()
    for qp in (0, 1):
        bench.send("open", qp)
    await bench.taken()
    bench.send("owe", 0, urgent=1)
    await ClockCycles(dut.clk, LOOK)
    assert dut.due_tvalid.value == 1
    for traffic_class, offers in ((0, 1 + owed["is_credit"]), (1, 1)):
        bench.send("owe", 1, **owed)
        await ClockCycles(dut.clk, 2 * LOOK)
        bench.send("paid", 1, traffic_class=traffic_class)
        await ClockCycles(dut.clk, 2 * LOOK)
        before, bench.is_held = bench.offers, False
        await ClockCycles(dut.clk, LOOK)
        assert bench.offers - before == offers
        bench.is_held = True
        bench.send("owe", 0, urgent=1)
        await ClockCycles(dut.clk, LOOK)


@cocotb.test(timeout_time=400, timeout_unit="us")
async def what_is_urgent_is_offered_at_once(dut):
    """While nothing else is due; also when the last of several makes it so, and when a data frame wants to pay."""
    bench = Bench(dut, IDLE_LOOK, ack_every=3, ack_delay=1 << 20, sync_interval=NEVER)
    bench.due.pause = lambda: bench.is_held
    bench.is_held = True
    await bench.start()
    bench.send("open", 0)
    await bench.taken()
    for kinds in ((1,), (0, 0, 0), (0, 1)):
        for urgent in kinds:
            bench.send("owe", 0, urgent=urgent)
        await bench.taken()
        for _ in range(12):
            await bench.edge
        assert dut.due_tvalid.value == 1
        bench.send("paid", 0)
        await bench.taken()
        offers, bench.is_held = bench.offers, False
        while bench.offers == offers:
            await bench.edge
        bench.is_held = True
        await ClockCycles(dut.clk, 3 * IDLE_LOOK)
        assert dut.due_tvalid.value == 0


@cocotb.test(timeout_time=400, timeout_unit="us")
async def nobody_is_forgotten(dut):
    """One connection is urgent again and again, the others once; each has its turn."""
    bench = Bench(dut, 40 * (QUEUE_PAIRS + 1) + 2 * LOOK, ack_delay=1 << 20, sync_interval=NEVER)
    bench.due.pause = PAUSES["random"](bench.rng)
    await bench.start()
    for qp in range(QUEUE_PAIRS):
        bench.send("open", qp)
    await bench.taken()
    for qp in range(1, QUEUE_PAIRS):
        bench.send("owe", qp, urgent=1)
    for _ in range(300):
        bench.send("owe", 0, urgent=1)
        await bench.taken()
    await ClockCycles(dut.clk, 2 * LOOK)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def the_time_is_kept_while_other_events_never_stop(dut):
    if QUEUE_PAIRS == 1:
        return
    bench = Bench(dut, LOOK, ack_delay=50, sync_interval=NEVER)
    await bench.start()
    bench.send("open", 0)
    await bench.taken()
    bench.send("owe", 0, urgent=0)
    for _ in range(LOOK):
        bench.send("paid", QUEUE_PAIRS - 1)
    while bench.waiting["paid"]:
        await bench.edge
    assert bench.offers == 1


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def what_has_passed_stays_passed(dut):
    """However long ``due`` stands still."""
    if QUEUE_PAIRS == 1:
        return
    bench = Bench(dut, 1 << 30, ack_delay=10, sync_interval=20)
    bench.due.pause = lambda: bench.is_held
    bench.is_held = True
    await bench.start()
    for qp in range(QUEUE_PAIRS):
        bench.send("open", qp)
    await bench.taken()
    for qp in range(QUEUE_PAIRS):
        bench.send("owe", qp, urgent=0)
    await ClockCycles(dut.clk, 5000)
    assert bench.offers == 0
    bench.is_held = False
    await ClockCycles(dut.clk, 3 * LOOK)
    assert bench.offers >= QUEUE_PAIRS
