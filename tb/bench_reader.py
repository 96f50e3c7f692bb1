"""The reader: frames taken apart in order, dropped with their incarnation, held up by nothing but room for requests."""

from __future__ import annotations

import cocotb

from reader_environment import CONFIG, LEAD, PAGES, ROOMS, WORDS, ReaderBench
from xoe.operation import Operation
from xoe.wire import GRID, Opcode
from xoe_hdl.transport.reader import DONE, REQUESTS_MAX
from xoe_tb import PAUSES, params

EVENTS = params()["events"]
SMALL = Operation(Opcode.READ, length=8).encode()
CHOICE = 5  # clocks from a frame to the next one
PORTS = ("requests", "responses")


async def any_frames(bench: ReaderBench, count: int) -> None:
    """Of both ports, some of an epoch that is over; room comes and goes."""
    rng = bench.rng
    for _ in range(count):
        if rng.random() < 0.3:
            bench.set_room(rng.choice(ROOMS))
        qp = rng.randrange(CONFIG.queue_pairs)
        epoch = bench.table[qp]["epoch"] - (rng.random() < 0.1)
        while not bench.deliver(rng.choice(PORTS), qp=qp, epoch=epoch % 256):
            bench.set_room(3)
            await bench.edge
        while sum(map(len, bench.waiting.values())) > rng.randrange(6):
            await bench.edge
            if rng.random() < 0.02:
                bench.set_room(rng.choice(ROOMS))
    bench.set_room(3)


@cocotb.test(timeout_time=300, timeout_unit="us")
@cocotb.parametrize(pause=list(PAUSES))
async def any_frames_in_any_order(dut, pause):
    bench = await ReaderBench.started(dut, pause)
    bench.changes = 0.05
    await any_frames(bench, EVENTS)
    await bench.settle()
    assert bench.dropped > EVENTS // 50
    assert bench.malformed > EVENTS // 50
    assert len(bench.given) == EVENTS


@cocotb.test(timeout_time=300, timeout_unit="us")
async def frames_of_every_length(dut):
    """From half a header on, up to several rows; with an operation after another."""
    bench = await ReaderBench.started(dut)
    for words in range(1, 4 * WORDS + 12):
        content = bench.rng.randbytes(GRID) if words == 1 else SMALL * (words // 2) + bytes(words % 2 * GRID)
        while not bench.deliver(PORTS[words % 2], content):
            await bench.edge
    await bench.settle()


def fill(words: int) -> bytes:
    """Operations of eight words, or less at the end; a single word is half a header."""
    content = b""
    while (left := words - len(content) // GRID) > 1:
        size = (min(left, 8) - 2) * GRID
        content += Operation(Opcode.WRITE, length=size, data=bytes(size)).encode()
    return content + bytes(left * GRID)


@cocotb.test(timeout_time=300, timeout_unit="us")
async def a_row_in_every_clock(dut):
    """If frames are long; and frames of a row are as fast as they can be chosen."""
    bench = await ReaderBench.started(dut)
    for rows, each in ((8, 8), (1, CHOICE)):
        frames = min(10, PAGES // 3)
        for _ in range(frames):
            bench.deliver("responses", fill(rows * WORDS - LEAD))
        clocks = 0
        while bench.waiting["responses"] or bench.to_read:
            await bench.edge
            clocks += 1
        assert clocks <= frames * each + 12
        await bench.settle()


@cocotb.test(timeout_time=300, timeout_unit="us")
@cocotb.parametrize(room=list(ROOMS))
async def requests_only_where_there_is_room(dut, room):
    """With everything behind them standing still; and responses pass them."""
    bench = await ReaderBench.started(dut)
    bench.set_room(room)
    frames = room.bit_length()
    for _ in range(3):
        bench.sinks["operations"].pause = lambda: True
        for _ in range(REQUESTS_MAX + 3):
            bench.deliver("requests", 8 * SMALL)
        await bench.clocks(80)
        taken = REQUESTS_MAX + 3 - len(bench.waiting["requests"])
        assert taken == frames
        bench.deliver("responses", SMALL)
        await bench.clocks(20)
        assert not bench.waiting["responses"]
        bench.sinks["operations"].pause = lambda: False
        await bench.clocks(80)
        bench.set_room(3)
        await bench.settle()
        bench.set_room(room)
        await bench.clocks(4)


@cocotb.test(timeout_time=300, timeout_unit="us")
async def responses_go_first(dut):
    bench = await ReaderBench.started(dut)
    for _ in range(3):
        bench.deliver("requests", SMALL)
        bench.deliver("responses", SMALL)
    await bench.clocks(3 * CHOICE + 2)
    assert len(bench.waiting["responses"]) == 0
    assert len(bench.waiting["requests"]) == 3
    await bench.settle()


@cocotb.test(timeout_time=300, timeout_unit="us")
@cocotb.parametrize(closes=[False, True])
async def an_incarnation_ends_while_its_frames_wait(dut, closes):
    """All that is not chosen yet is dropped, and leaves while what was chosen is held up; also the one that is next."""
    bench = await ReaderBench.started(dut)
    bench.sinks["operations"].pause = lambda: True
    frames = [bench.deliver("responses", 20 * SMALL * WORDS) for _ in range(min(8, PAGES // 3))]
    await bench.clocks(60)
    left = len(bench.waiting["responses"])
    assert left > 0
    entry = bench.table[frames[0].qp]
    for entry in bench.table:
        entry["epoch"] = (entry["epoch"] + (not closes)) % 256
        entry["is_open"] = int(not closes)
    next_one = frames[-left - 1]  # it was looked up, and waits for room
    next_one.is_dropped = True
    bench.to_read.remove(next_one)
    operations = bench.expected["operations"]
    bench.expected["operations"] = type(operations)(item for item in operations if item[0] is not next_one)
    next_one.unseen = 0
    await bench.clocks(60)
    assert not bench.waiting["responses"]
    assert bench.given == frames[-left - 1 :]
    bench.sinks["operations"].pause = lambda: False
    await bench.settle()


@cocotb.test(timeout_time=300, timeout_unit="us")
@cocotb.parametrize(drops=[0, 0.3, 1])
async def nobody_takes_what_has_left(dut, drops):
    """Neither of those who count: reading stops in time, and each is told of each frame once."""
    bench = await ReaderBench.started(dut)
    for name in ("freed", "give_back"):
        bench.sinks[name].pause = lambda: True
        entry = bench.table[0]
        while bench.deliver("responses", SMALL, 0, epoch=(entry["epoch"] - (bench.rng.random() < drops)) % 256):
            pass
        assert len(bench.stored) > DONE + 10
        await bench.clocks(10 * PAGES)
        assert bench.waiting["responses"]
        bench.sinks[name].pause = lambda: False
        await bench.settle()


@cocotb.test(timeout_time=300, timeout_unit="us")
async def frames_are_under_way_when_nobody_takes_what_has_left(dut):
    """As many as there can be; all that was begun still finds a place."""
    bench = await ReaderBench.started(dut)
    for before in range(DONE - 8, DONE + 2):
        bench.sinks["freed"].pause = lambda: True
        for _ in range(before):
            bench.deliver("responses", SMALL)
        await bench.clocks(8 * before + 40)
        bench.sinks["operations"].pause = lambda: True
        for _ in range(10):
            bench.deliver("responses", SMALL)
        await bench.clocks(100)
        bench.sinks["operations"].pause = lambda: False
        await bench.clocks(100)
        bench.sinks["freed"].pause = lambda: False
        await bench.settle()


@cocotb.test(timeout_time=300, timeout_unit="us")
async def resets_in_the_middle(dut):
    bench = await ReaderBench.started(dut)
    for _ in range(40):
        bench.hold_back(bench.rng.choice(list(PAUSES)))
        await any_frames(bench, 4)
        await bench.clocks(bench.rng.randrange(25))
        await bench.reset()
    await any_frames(bench, 10)
    await bench.settle()
