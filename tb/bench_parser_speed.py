"""The parser's pace: no clock lost, and how long an operation takes."""

from __future__ import annotations

import cocotb
from cocotb.triggers import RisingEdge

from parser_environment import Environment
from parser_stimulus import KINDS, OTHERS, ethernet, ours
from xoe.operation import Operation
from xoe.parser import Outcome
from xoe.wire import Opcode
from xoe_hdl.parser.parser import FRAMES, MARGIN
from xoe_tb import params

BURST = FRAMES - MARGIN - 8  # frames that come much faster than they are taken apart
LIMIT = {"timeout_time": 5, "timeout_unit": "ms"}


class Stopwatch:
    """Counts the clocks in which a beat waits at ``s_axis``, and notes when beats and operations move."""

    def __init__(self, bench: Environment) -> None:
        self.dut = bench.dut
        self.lost = self.beats = self.operations = self.clock = 0
        self.first_beat = self.last_beat = self.first_operation = self.last_operation = 0
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        while True:
            await edge
            self.clock += 1
            if dut.s_axis_tvalid.value:
                if not dut.s_axis_tready.value:
                    self.lost += 1
                    continue
                self.beats += 1
                self.first_beat = self.first_beat or self.clock
                self.last_beat = self.clock
            if dut.operations_tvalid.value and dut.operations_tready.value:
                self.operations += 1
                self.first_operation = self.first_operation or self.clock
                self.last_operation = self.clock


def write(bench: Environment, length: int) -> bytes:
    """A write of so many bytes."""
    return Operation(Opcode.WRITE, 1, bench.rng.getrandbits(64), length, bench.rng.randbytes(length)).encode()


async def settle(bench: Environment) -> Stopwatch:
    """Start, and wait until the parser is ready."""
    await bench.start()
    await bench.clocks(20)  # until pages enough are free
    return Stopwatch(bench)


async def check_pace(bench: Environment, watch: Stopwatch) -> None:
    """All came out right, and ``s_axis`` never waited, not even between frames."""
    await bench.check()
    assert watch.lost == 0, f"{watch.lost} clocks lost on {watch.beats} beats"
    assert watch.last_beat - watch.first_beat == watch.beats - 1
    watch.beats = watch.first_beat = watch.last_beat = 0


@cocotb.test(**LIMIT)
@cocotb.parametrize(tags=[0, 1, 2])
async def no_clock_is_lost_on_any_size(dut, tags):
    """Frames of one write of every length, back to back, operations taken at once."""
    bench = Environment(dut)
    watch = await settle(bench)
    for length in range(1, 257):
        bench.send(ours(bench.rng, write(bench, length), tags))
        if length % BURST == 0:
            await check_pace(bench, watch)
    await check_pace(bench, watch)


@cocotb.test(**LIMIT)
async def no_clock_is_lost_on_the_smallest(dut):
    """Frames of 60 bytes: at 512 bits a frame and a CRC in every clock, as many as may wait."""
    bench = Environment(dut)
    watch = await settle(bench)
    for tag in range(BURST):
        bench.send(ours(bench.rng, Operation(Opcode.READ, tag, 8, 8).encode(), 0))
    await check_pace(bench, watch)


@cocotb.test(**LIMIT)
@cocotb.parametrize(length=[64, 256])
async def no_clock_is_lost_on_packed_writes(dut, length):
    """Full frames of writes; at 512 bits those of 64 bytes come one a clock."""
    bench = Environment(dut)
    watch = await settle(bench)
    count = bench.most // (length + 16)
    for _ in range(20):
        bench.send(ours(bench.rng, b"".join(write(bench, length) for _ in range(count)), 0))
    await check_pace(bench, watch)


@cocotb.test(**LIMIT)
@cocotb.parametrize(kind=[name for name in (KINDS | OTHERS) if name not in ("good", "noise")])
async def no_clock_is_lost_on_what_is_dropped(dut, kind):
    """Any kind of frame among small good ones; 802.3 frames of few bytes among them."""
    bench = Environment(dut)
    watch = await settle(bench)
    for number in range(150):
        bench.send(*(KINDS | OTHERS)[kind](bench.rng, 100))
        if number % 3 == 0:
            bench.send(ours(bench.rng, Operation(Opcode.READ, number, 8, 8).encode()))
        if number % 7 == 0:
            bench.send(ethernet(bench.rng, 46, b"", 0))
    await check_pace(bench, watch)


@cocotb.test(**LIMIT)
async def latency(dut):
    """Last beat in to first operation out, whatever the frame, if there is no other in front."""
    bench = Environment(dut)
    await bench.start()
    found = set()
    for tags in range(3):
        for length in range(1, 257, 7):
            for count in (1, 4):
                watch = Stopwatch(bench)
                content = b"".join(write(bench, length) for _ in range(count))
                assert bench.send(ours(bench.rng, content, tags)) is Outcome.ACCEPTED
                await bench.check()
                found.add(watch.first_operation - watch.last_beat)
    dut._log.info("latency: %s", found)
    assert max(found) == params()["latency"]
