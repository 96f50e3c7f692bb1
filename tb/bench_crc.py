"""The CRC in hardware held against the model, frames back to back and with pauses."""

from __future__ import annotations

from random import Random

import cocotb
from cocotb.triggers import RisingEdge
from cocotb.utils import get_sim_time

from xoe.crc import frame_crc
from xoe.frame import clear_mark
from xoe_tb import PAUSES, params, start
from xoe_tb.bench import CLOCK_NS

LEAD = 32  # bytes in front of the operations in canonical alignment


def some_frames(rng, size):
    """Headers and operations: every number of words up to two beats and one more, and some longer."""
    words = [*range(2 * size // 8 + 2), *(rng.randrange(80) for _ in range(40))]
    rng.shuffle(words)
    return [(rng.randbytes(22), rng.randbytes(8 * count)) for count in words]


def to_beats(rng, size, operations):
    """A frame's beats with their marks; the last one may come after the operations' end."""
    body = bytes(LEAD) + operations
    count = -(-len(body) // size)
    if len(body) % size == 0 and rng.random() < 0.5:
        count += 1
    body += bytes(count * size - len(body))
    zeros = (count * size - LEAD - len(operations)) // 8
    for at in range(count):
        last = at == count - 1
        # Of beats that are not the last, zeros means nothing.
        yield body[at * size : (at + 1) * size], at == 0, last, zeros if last else rng.randint(0, size // 8)


def now():
    """The time in clocks."""
    return round(get_sim_time("ns")) // CLOCK_NS


async def collect(dut, arrived):
    """Each CRC that comes out, with its clock."""
    edge = RisingEdge(dut.clk)
    while True:
        await edge
        if dut.done.value == 1:
            arrived.append((dut.crc.value.to_unsigned(), now()))


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(pause=list(PAUSES))
async def crcs_are_the_models(dut, pause):
    rng = Random(cocotb.RANDOM_SEED)
    held, edge = PAUSES[pause](rng), RisingEdge(dut.clk)
    size = len(dut.beat_data) // 8
    dut.valid.value = 0
    await start(dut)
    expected, arrived = [], []
    cocotb.start_soon(collect(dut, arrived))
    for header, operations in some_frames(rng, size):
        for data, first, last, zeros in to_beats(rng, size, operations):
            while next(held):
                dut.valid.value = 0
                dut.beat_data.value = rng.getrandbits(8 * size)
                await edge
            dut.valid.value = 1
            dut.beat_data.value = int.from_bytes(data, "little")
            dut.beat_first.value, dut.beat_last.value, dut.beat_zeros.value = int(first), int(last), zeros
            dut.header.value = int.from_bytes(header if last else rng.randbytes(22), "little")
            await edge
        expected.append((frame_crc(clear_mark(header), operations), now() + params()["latency"]))
    dut.valid.value = 0
    for _ in range(10):
        await edge
    assert arrived == expected
