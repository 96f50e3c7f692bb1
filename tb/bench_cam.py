"""The CAM held against its model, clock by clock."""

from __future__ import annotations

from itertools import pairwise

import cocotb

from xoe.cam import ADDRESS_BITS, PAGE_LOG2_MAX, PAGE_LOG2_MIN, CamError
from xoe_hdl.layouts import TRANSLATION, WINDOW
from xoe_tb import PAUSES, params, start
from xoe_tb.cam import CamBench

SIZES = range(PAGE_LOG2_MIN, PAGE_LOG2_MAX + 1)
ENTRIES, PAYLOAD = params()["entries"], params()["payload"]
LAYOUT = {"translation": TRANSLATION, "window": WINDOW}[PAYLOAD]
PAIR_SIZES = params()["pair_sizes"]
WRITE_CLOCKS, REFUSED_CLOCKS = ENTRIES + 76, ENTRIES + 8  # as the CAM's documentation has it
SPACES = (0, 1, 0x8001)


async def make(dut) -> CamBench:
    bench = CamBench(dut, ENTRIES, LAYOUT)
    await start(dut)
    return bench


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def every_page_size_at_its_bounds(dut):
    bench = await make(dut)
    for size in SIZES:
        addresses = (0, (1 << 64) - (1 << size), bench.rng.getrandbits(ADDRESS_BITS - size) << size)
        for address in addresses:
            page = bench.page(size, address, bench.rng.getrandbits(16))
            index = bench.rng.randrange(ENTRIES)
            assert await bench.write(index, page) == CamError.OK
            await bench.settle(bench.around(page))
            # One bit of the address or of the space at a time: outside the page it must miss, inside it must not.
            wrong = [(page.space, page.address ^ 1 << bit, 1) for bit in range(ADDRESS_BITS)]
            await bench.settle(wrong + [(page.space ^ 1 << bit, page.address, 1) for bit in range(16)])
            assert await bench.write(index, None) == CamError.OK


@cocotb.test(timeout_time=10, timeout_unit="ms", skip=ENTRIES < 2)
async def overlap_of_every_pair_of_sizes(dut):
    bench = await make(dut)
    for one in PAIR_SIZES:
        for other in PAIR_SIZES:
            large = 1 << max(one, other)
            start_ = large * bench.rng.randrange(2, 1 << 30)
            inner = bench.rng.randrange(large >> one) << one
            assert await bench.write(0, bench.page(one, start_ + inner)) == CamError.OK
            places = [start_, start_ + large - (1 << other), start_ + (inner >> other << other)]
            places += [start_ - (1 << other), start_ + large]
            last = ENTRIES - 1
            for place in places:
                bench.send(last, bench.page(other, place))
                bench.send(last, None)
            bench.send(last, bench.page(other, places[2], space=0x4001))
            bench.send(last, None)
            await bench.settle()
            outcomes = [outcome for _, outcome in bench.written[-12::2]]
            assert outcomes[2:] == [CamError.OVERLAP, CamError.OK, CamError.OK, CamError.OK]
            assert await bench.write(0, bench.page(other, places[2])) == CamError.OK, "replaced in place"


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def refusals_change_nothing(dut):
    bench = await make(dut)
    kept = bench.page(20, 5 << 20)
    assert await bench.write(0, kept) == CamError.OK
    for size in sorted(set(range(32)) - set(SIZES)):
        assert await bench.write(0, bench.page(size, 0)) == CamError.BAD_SIZE
    for size in SIZES:
        for bit in {0, 11, 12, size - 2, size - 1} & set(range(size)):
            assert await bench.write(0, bench.page(size, 1 << 40 | 1 << bit)) == CamError.MISALIGNED
            if bench.has_base:
                assert await bench.write(0, bench.page(size, 1 << 40, base=1 << bit)) == CamError.MISALIGNED
    for index in range(ENTRIES, 256):
        assert await bench.write(index, bench.rng.choice((None, kept, bench.page(31, 1)))) == CamError.BAD_INDEX
    await bench.settle(bench.around(kept))
    assert bench.model.pages[0] == kept


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def full_then_emptied(dut):
    bench = await make(dut)
    sizes = [bench.rng.choice(SIZES) for _ in range(ENTRIES)]
    pages = [bench.page(size, (index + 1) << PAGE_LOG2_MAX) for index, size in enumerate(sizes)]
    for index in bench.rng.sample(range(ENTRIES), ENTRIES):
        bench.send(index, pages[index])
    await bench.settle()
    lookups = [(1, page.address, 64) for page in pages]
    await bench.settle(lookups)
    assert bench.hits == list(range(ENTRIES)), "each entry was hit, back to back"
    for page in pages:
        await bench.settle(bench.around(page))
    for index in range(ENTRIES):  # replaced while all the others are there
        bench.send(index, bench.page(PAGE_LOG2_MAX, (index + 1) << PAGE_LOG2_MAX))
    await bench.settle()
    await bench.settle(lookups)
    for index in bench.rng.sample(range(ENTRIES), ENTRIES):
        assert await bench.write(index, None) == CamError.OK
        bench.hits.clear()
        await bench.settle(lookups)
        assert index not in bench.hits


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(gap=[0, 1, 2, 3])
async def writes_race_lookups(dut, gap):
    """An entry is rewritten in place, moved and taken away while look-ups come every clock, or every few."""
    bench = await make(dut)
    size = 0
    for _ in range(24):
        old, index = bench.model.pages[0], 0
        size = bench.rng.choice([other for other in SIZES if other != size])
        page = bench.rng.choice((bench.page(size, 0), bench.page(size, 1 << size), None))
        bench.send(index, page)
        while bench.pending:
            await bench.clock(bench.near([old, page]))
            for _ in range(gap):
                await bench.clock()
        for _ in range(8):
            await bench.clock(bench.near([old, page]))
    await bench.settle()


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def writes_back_to_back(dut):
    bench = await make(dut)
    for _ in range(3):
        bench.send(0, bench.page(12, 0))
        bench.send(0, None)
        bench.send(0, bench.page(12, 1))
    await bench.settle()
    clocks = [clock for clock, _ in bench.written]
    taken = [later - earlier for earlier, later in pairwise(clocks)]
    assert taken == ([REFUSED_CLOCKS, REFUSED_CLOCKS, WRITE_CLOCKS] * 3)[:-1]


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def reset_at_every_clock_of_a_write(dut):
    bench = await make(dut)
    for clocks in range(WRITE_CLOCKS + 4):
        await bench.write(ENTRIES - 1, bench.page(16, 1 << 16))
        bench.send(ENTRIES - 1, bench.page(13, 1 << 16))
        for _ in range(clocks):
            await bench.clock((1, 1 << 16, 1))
        await bench.reset(bench.rng.randint(1, 3))
        await bench.settle([(1, 1 << 16, 1)] * 8)
    assert await bench.write(0, bench.page(13, 1 << 16)) == CamError.OK
    await bench.settle([(1, 1 << 16, 1), (1, 3 << 15, 1)])
    assert bench.hits[-1] == 0


@cocotb.test(timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(pause=list(PAUSES), lookup_pause=list(PAUSES))
async def anything(dut, pause, lookup_pause):
    bench = await make(dut)
    bench.writer.pause = PAUSES[pause](bench.rng)
    idle = PAUSES[lookup_pause](bench.rng)
    for _ in range(2500):
        if len(bench.pending) < 2:
            size = bench.rng.choice((*SIZES, 12, 12, 13, 29, 30, bench.rng.randrange(32)))
            address = (bench.rng.randrange(6) << size) + bench.rng.choice((0, 0, 0, 1 << bench.rng.randrange(30)))
            page = bench.page(size, address, bench.rng.choice(SPACES))
            index = bench.rng.choice((*range(ENTRIES), bench.rng.randrange(256)))
            bench.send(index, page if bench.rng.random() < 0.8 else None)
        pages = [*bench.model.pages, *(page for _, page in bench.pending)]
        await bench.clock(None if next(idle) else bench.near(pages))
    await bench.settle()
