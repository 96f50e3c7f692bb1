"""The page store: what was written is fetched, as often as wanted, and no page is lost or has two owners."""

from __future__ import annotations

import cocotb

from page_store_environment import MARGIN, PAGES, ROWS, PageStoreBench, pages_of
from xoe_tb import PAUSES

STORE = PAGES * ROWS  # rows


async def make(dut) -> PageStoreBench:
    bench = PageStoreBench(dut)
    await bench.start()
    return bench


async def store(bench, *lengths):
    """Write frames of these many rows, back to back."""
    for rows in lengths:
        bench.write(rows)
    while bench.to_write:
        await bench.clock()
    await bench.clock()


async def empty(bench):
    """Fetch all that is stored in random order, give it back in another, and see all pages free."""
    for frame in bench.rng.sample(bench.stored, len(bench.stored)):
        bench.fetch(frame)
    await bench.settle()
    for frame in bench.rng.sample(bench.stored, len(bench.stored)):
        bench.give_back(frame)
    await bench.settle()
    assert bench.free == PAGES


def random_length(bench):
    """Mostly a few pages at the most, often an end of a page or one row off."""
    pages = bench.rng.randint(1, max(1, min(4, PAGES // 4)))
    ends = (pages * ROWS - 1, pages * ROWS, pages * ROWS + 1)
    return bench.rng.choice((1, bench.rng.randint(1, pages * ROWS), bench.rng.choice(ends)))


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(write=list(PAUSES), fetch=["never", "random"], free=["never", "bursts"])
async def anything(dut, write, fetch, free):
    """Frames are written back to back, fetched whole or in part, several times, and given back, all at once."""
    bench = await make(dut)
    held = [PAUSES[pause](bench.rng) for pause in (write, fetch, free)]
    for _ in range(1500):
        if len(bench.to_write) < 2:
            bench.write(random_length(bench))
        if not bench.to_fetch and bench.stored:
            frame = bench.rng.choice(bench.stored)
            if bench.rng.random() < 0.3:
                bench.fetch(frame, bench.rng.randint(1, len(frame.rows)))
            else:
                bench.fetch(frame)
                if bench.free < MARGIN or bench.rng.random() < 0.6:
                    bench.fetch(frame)
                    while bench.to_fetch:
                        await bench.clock(*(not next(pause) for pause in held))
                    bench.give_back(frame)
        await bench.clock(*(not next(pause) for pause in held))
    while bench.to_write:  # the last frames may have to wait for pages
        if bench.stored and not (bench.to_fetch or bench.to_free):
            bench.give_back(bench.stored[0])
        await bench.clock()
    await bench.clock()
    await empty(bench)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def frames_of_every_length(dut):
    """Up to some pages and one row, back to back; fetched back to back, every row in the clock after its fetch."""
    bench = await make(dut)
    for rows in range(1, min(STORE, 3 * ROWS + 1) + 1):
        await store(bench, *[rows] * min(3, PAGES // pages_of(rows)))
        await empty(bench)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def frames_that_end_with_a_page(dut):
    bench = await make(dut)
    for pages in (1, 2, 3, PAGES // 2):
        rows = pages * ROWS
        lengths = [rows, 1, rows - 1, rows + 1, rows, ROWS]
        while sum(map(pages_of, lengths)) > PAGES:
            lengths.pop()
        await store(bench, *lengths)
        for frame in bench.stored:  # from the middle of each to the beginning of each
            for other in bench.stored:
                bench.fetch(frame, bench.rng.randint(1, len(frame.rows)))
                bench.fetch(other, bench.rng.randint(1, len(other.rows)))
        await empty(bench)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def frames_of_a_row_in_every_clock(dut):
    """Each is fetched and given back in the clock in which it is known; the pages go round and round."""
    bench = await make(dut)
    waited = 0
    for _ in range(6 * PAGES):
        bench.write(1)
        while not await bench.clock():
            waited += 1
        for frame in list(bench.stored):
            bench.fetch(frame)
            bench.give_back(frame)
    assert waited == 0 or PAGES <= 6  # a page is away for six clocks
    await empty(bench)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def all_pages_are_used_and_come_back(dut):
    """With one frame that takes all, and with frames of a page; then a page at a time comes back and is used again."""
    bench = await make(dut)
    await store(bench, STORE)
    assert bench.free == 0
    assert not dut.room.value
    bench.write(1)
    await bench.idle(4)
    bench.fetch(bench.stored[0])
    bench.fetch(bench.stored[0])
    while bench.to_fetch:
        await bench.clock()
    bench.give_back(bench.stored[0])
    await empty(bench)
    await store(bench, *bench.rng.choices((1, ROWS - 1, ROWS), k=PAGES))
    assert bench.free == 0
    for _ in range(2 * PAGES):
        frame = bench.rng.choice(bench.stored)
        bench.write(bench.rng.choice((1, ROWS - 1, ROWS)))
        bench.fetch(frame)
        while len(bench.to_fetch) > 1:
            await bench.clock()
        bench.give_back(frame)  # as its last row is fetched
        await bench.clock()
        await bench.settle()
        assert bench.free == 0
    await empty(bench)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def bad_frames_are_given_back_unread(dut):
    """In the clock in which they are known; what is stored around them stays."""
    bench = await make(dut)
    await store(bench, 1)
    kept = bench.stored[0]
    for number in range(8 * PAGES):
        bench.write(bench.rng.randint(1, min(2 * ROWS + 1, STORE // 4)))
        while not await bench.clock() or bench.to_write:
            pass
        await bench.clock(writes=False)
        bench.give_back(bench.stored[-1])
        if number % 8 == 0:
            bench.fetch(kept)
    await bench.settle()
    assert bench.stored == [kept]
    await empty(bench)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def pages_given_back_before_all_were_handed_out(dut):
    bench = await make(dut)
    await bench.reset()
    for _ in range(PAGES):
        bench.write(bench.rng.choice((1, 2, ROWS + 1)))
        while bench.to_write:
            await bench.clock()
            while bench.stored:
                bench.give_back(bench.stored[0])
    await bench.settle()
    await bench.clock()
    await empty(bench)
    await store(bench, STORE)
    await empty(bench)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def reset_in_the_middle(dut):
    """Of frames, of fetches, of a segment on its way back, of the pages being handed out."""
    bench = await make(dut)
    for clocks in range(30):
        for _ in range(clocks):
            if not bench.to_write:
                bench.write(random_length(bench))
            if bench.stored and not bench.to_fetch and not bench.to_free:
                bench.fetch(bench.stored[-1])
                if len(bench.stored) > 1:
                    bench.give_back(bench.stored[0])
            await bench.clock()
        await bench.reset()
        if clocks % 3:
            await bench.idle(PAGES + 3)
            await store(bench, STORE // 2 + 1, 1)
            await empty(bench)
