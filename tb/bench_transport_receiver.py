"""The receiving end held against its models: any events in any order, with every port held back."""

from __future__ import annotations

import cocotb
from cocotb.triggers import ClockCycles

from receiver_environment import Environment
from xoe.cyclic import CREDIT_BITS, SEQ_BITS, after
from xoe_tb import PAUSES, params, random_pause

PARAMETERS = params()
WINDOW, PAGES, QUEUE_PAIRS = (PARAMETERS[name] for name in ("window", "pages", "queue_pairs"))
EVENTS = PARAMETERS["events"]


def random_seq(bench: Environment, qp: int) -> int:
    """The PSN of a frame: mostly the next one, or one inside the window."""
    rng, receiver = bench.rng, bench.links[qp].receiver
    draw, expected = rng.random(), receiver.expected
    if draw < 0.5:
        return expected
    if draw < 0.8:
        return expected + rng.randrange(min(receiver.window, rng.choice((3, 128))))
    if draw < 0.9:
        return expected + rng.randint(-4, -1)
    if draw < 0.95:
        return expected + receiver.window + rng.randint(-1, 1)
    return expected + (1 << SEQ_BITS - 1) + rng.randint(-2, 1)


async def send_random_frame(bench: Environment, qp: int) -> None:
    """If the buffer has room for it, now or soon; all of it may be full of frames behind gaps."""
    rng = bench.rng
    for _ in range(40):
        if bench.free_pages:
            break
        await bench.edge
    traffic_class = rng.choice((0, 0, 1, 1, 2, 2, 3, 7))
    words = rng.choice((0, 1, 2, rng.randint(0, 40), rng.randint(0, 1125), 2047))
    other = {"epoch": rng.getrandbits(8)} if rng.random() < 0.05 else {}
    bench.arrive(qp, random_seq(bench, qp), traffic_class, words, **other)


async def reconcile(bench: Environment, qp: int) -> None:
    """Credits that the other end has consumed besides. Nothing is freed meanwhile, so that the models see one order."""
    rng, link, late = bench.rng, bench.links[qp], bench.frees_late
    bench.frees_late = iter(lambda: True, None)
    await bench.taken("freed", "arrivals")
    while link.receiver.held and rng.random() < 0.9 and bench.arrive(qp, link.receiver.expected):
        await bench.taken("arrivals")
    epoch = after(link.epoch, rng.choice((0, 0, 0, 0, 0, 1)), 8)
    seq = after(link.receiver.expected, rng.choice((0, 0, 0, 0, 0, 0, 1, -1)), SEQ_BITS)
    traffic_class = rng.choice((0, 1, 2, 0, 1, 2, 3, 4))
    consumed = link.credits[traffic_class % 3].consumed
    more = rng.choice((0, 1, 5, 300, 9))
    fields = {"qp": qp, "epoch": epoch, "seq": seq, "traffic_class": traffic_class}
    bench.send("reconcile", {**fields, "credits": after(consumed, more, CREDIT_BITS)})
    while bench.offered["reconcile"] or any(bench.owes.values()):
        await bench.edge
    bench.frees_late = late


async def any_event(bench: Environment) -> None:
    """One more event, of any kind that makes sense now."""
    rng = bench.rng
    qp = rng.randrange(QUEUE_PAIRS)
    link, draw = bench.links[qp], rng.random()
    if qp in bench.shutting or bench.offered["open"]:
        return
    if not link.is_open:
        if draw < 0.2:
            await send_random_frame(bench, qp)
        elif not link.present:
            await bench.taken("arrivals")
            bench.open(qp)
        else:
            await bench.edge
    elif draw < 0.75:
        await send_random_frame(bench, qp)
    elif draw < 0.89:
        bench.send("report", {"qp": qp})
    elif draw < 0.99:
        await reconcile(bench, qp)
    else:
        await bench.taken("arrivals")
        bench.shut(qp)


async def many_events(bench: Environment, events: int) -> None:
    for _ in range(events):
        await any_event(bench)
        while sum(map(len, bench.offered.values())) > bench.rng.randrange(5) or bench.shutting:
            await bench.edge


def hold_back(bench: Environment, pause: str) -> None:
    """Let every port pause in a pattern, each on its own."""
    for port in (*bench.sources.values(), *bench.sinks.values()):
        port.pause = PAUSES[pause](bench.rng)
    bench.frees_late = random_pause(bench.rng, 0.8)


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=list(PAUSES), go_back_n=[False, True])
async def any_events(dut, pause, go_back_n):
    bench = Environment(dut, PARAMETERS)
    hold_back(bench, pause)
    bench.go_back_n = go_back_n
    dut.cfg_go_back_n.value = go_back_n
    await bench.start()
    await many_events(bench, EVENTS)
    if EVENTS >= 1000:
        names = {"new", "duplicate", "outside", "stale", "reconciled"}
        await pass_the_counters(bench, names | ({"out_of_order"} if go_back_n else set()))
    await bench.settle()
    dut._log.info("%s", dict(bench.counters))


async def pass_the_counters(bench: Environment, names: set[str]) -> None:
    """More events, until every counter has been round. Each round takes a clock at least, whatever comes of it."""
    rounds = 1 << PARAMETERS["counter_width"]
    while any(bench.counters[name] < rounds for name in names):
        await bench.edge
        await many_events(bench, 5)
        for qp, link in enumerate(bench.links):
            if bench.counters["reconciled"] < rounds and link.is_open and qp not in bench.shutting:
                await reconcile(bench, qp)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def resets_in_the_middle(dut):
    bench = Environment(dut, PARAMETERS)
    hold_back(bench, "bursts")
    await bench.start()
    for _ in range(12):
        await many_events(bench, EVENTS // 20)
        await ClockCycles(dut.clk, bench.rng.randint(1, 20))
        await bench.reset()
    await many_events(bench, EVENTS // 10)
    await bench.settle()
