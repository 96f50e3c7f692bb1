"""The parser against its model: what comes out of which frames."""

from __future__ import annotations

import cocotb
from cocotb.triggers import with_timeout

from parser_environment import Environment
from parser_stimulus import KINDS, OTHERS, any_frame, ethernet, good, ours, payload, too_large
from xoe.operation import Operation
from xoe.parser import CONTROL_FRAME_MAX, DROPPED, HOST_FRAME_MAX, Outcome
from xoe.wire import ETHERTYPE, MAC_CONTROL_ETHERTYPE, Opcode, OperationHeader
from xoe_tb import PAUSES

LIMIT = {"timeout_time": 5, "timeout_unit": "ms"}


@cocotb.test(**LIMIT)
@cocotb.parametrize(source=list(PAUSES), sink=list(PAUSES))
async def anything_at_any_pace(dut, source, sink):
    bench = Environment(dut)
    bench.source.pause = PAUSES[source](bench.rng)
    for name, stream in bench.sinks.items():
        stream.pause = PAUSES[sink if name == "operations" else bench.rng.choice(list(PAUSES))](bench.rng)
    await bench.start()
    for _ in range(150):
        bench.send(*any_frame(bench.rng, bench.most if bench.rng.randrange(8) == 0 else 200))
    await bench.check()


@cocotb.test(**LIMIT)
@cocotb.parametrize(kind=list(KINDS | OTHERS))
async def around_good_frames(dut, kind):
    """Alone, twice, and back to back before and after good frames: these are unharmed."""
    bench = Environment(dut)
    await bench.start()
    maker = (KINDS | OTHERS)[kind]
    for most in (16, 80, 300, bench.most):
        for _ in range(12):
            bench.send(*maker(bench.rng, most))
            for _ in range(bench.rng.randrange(3)):
                assert bench.send(*good(bench.rng, bench.rng.choice([16, 40, 300]))) is Outcome.ACCEPTED
        await bench.check()


@cocotb.test(**LIMIT)
async def every_cause_is_met(dut):
    """The stimulus makes each outcome, and what it calls good is good."""
    bench = Environment(dut)
    await bench.start()
    met = set()
    while not met.issuperset(DROPPED):
        met.add(bench.send(*any_frame(bench.rng, 100)))
    await bench.check()


@cocotb.test(**LIMIT)
@cocotb.parametrize(tags=[0, 1, 2])
async def truncation_at_every_byte(dut, tags):
    bench = Environment(dut)
    await bench.start()
    data = ours(bench.rng, payload(bench.rng, 200), tags)
    for size in range(1, len(data)):
        bench.send(data[:size])
        if size % 3 == 0:
            bench.send(*good(bench.rng, 100))
    await bench.check()


@cocotb.test(**LIMIT)
@cocotb.parametrize(tags=[0, 1, 2])
async def more_bytes_than_announced(dut, tags):
    bench = Environment(dut)
    await bench.start()
    for most in (0, 16, 100):
        data = ours(bench.rng, payload(bench.rng, most), tags)
        for extra in range(1, bench.width // 4 + 2):
            bench.send(data + bench.rng.randbytes(extra))
            bench.send(data)
    await bench.check()


@cocotb.test(**LIMIT)
@cocotb.parametrize(tags=[0, 1, 2])
async def single_bit_flips(dut, tags):
    """No operation of a frame with a flipped bit is done, but where nothing depends on the bit."""
    bench = Environment(dut)
    await bench.start()
    content = Operation(Opcode.WRITE, 1, 0x1234, 21, bench.rng.randbytes(21)).encode()
    data = ours(bench.rng, content, tags)
    harmless = {*range(6, 12), *(12 + 4 * tag + byte for tag in range(tags) for byte in (2, 3))}
    mark = 8 * (14 + 4 * tags + 1) + 3  # bit number on a bus: the congestion mark is the fifth of its byte
    for bit in range(8 * (18 + 4 * tags + 22 + len(content))):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        outcome = bench.send(bytes(flipped))
        assert (outcome is Outcome.ACCEPTED) == (bit // 8 in harmless or bit == mark), f"bit {bit}: {outcome}"
        if bit % 5 == 0:
            bench.send(data)
    await bench.check()


@cocotb.test(**LIMIT)
@cocotb.parametrize(tags=[0, 1, 2])
async def every_length_of_data(dut, tags):
    bench = Environment(dut)
    await bench.start()
    for length in range(1, min(256, bench.width // 4 + 1) + 1):
        data = bench.rng.randbytes(length)
        content = Operation(Opcode.WRITE, length, bench.rng.getrandbits(64), length, data).encode()
        assert bench.send(ours(bench.rng, content, tags)) is Outcome.ACCEPTED
    await bench.check()


@cocotb.test(**LIMIT)
async def every_size_at_every_offset(dut):
    """Operations of 0 to 33 words of data behind an unknown one of 0 to N - 1."""
    bench = Environment(dut)
    await bench.start()
    for before in range(bench.width // 64 + 1):
        for size in range(34):
            content = Operation(0x3F, 1, 2, 3, bench.rng.randbytes(8 * before)).encode()
            content += Operation(0x05, 4, 5, 6, bench.rng.randbytes(8 * size)).encode()
            content += Operation(Opcode.READ, 7, 8, 9).encode() * bench.rng.randrange(3)
            assert bench.send(ours(bench.rng, content)) is Outcome.ACCEPTED
    await bench.check()


@cocotb.test(**LIMIT)
async def operations_past_the_end(dut):
    """One that runs past the end comes as malformed; half a header is no operation."""
    bench = Environment(dut)
    await bench.start()
    for before in range(bench.width // 64 + 1):
        content = Operation(0x3F, 1, 2, 3, bench.rng.randbytes(8 * before)).encode()
        half = bench.rng.randbytes(8)
        for words in (1, 2, 3, 8, 9, 33, 255):
            header = OperationHeader(opcode=Opcode.WRITE, words=words, tag=5, length=8, address=77).pack()
            for there in {0, min(words, 9) - 1, min(words, 100) - 1}:
                assert bench.send(ours(bench.rng, content + header + bytes(8 * there))) is Outcome.ACCEPTED
            assert bench.send(ours(bench.rng, content + half)) is Outcome.ACCEPTED
        assert bench.send(ours(bench.rng, half)) is Outcome.ACCEPTED
        bench.send(*good(bench.rng, 100))
    await bench.check()


@cocotb.test(**LIMIT)
async def noise_as_operations(dut):
    """Frames whose operations are random bytes."""
    bench = Environment(dut)
    await bench.start()
    for _ in range(300):
        words = bench.rng.choice([bench.rng.randrange(12), bench.rng.randrange(bench.most // 8)])
        assert bench.send(ours(bench.rng, bench.rng.randbytes(8 * words))) is Outcome.ACCEPTED
    await bench.check()


@cocotb.test(**LIMIT)
async def the_largest_frames(dut):
    bench = Environment(dut)
    await bench.start()
    fits = bench.most
    for _ in range(4):
        for tags in range(3):
            assert bench.send(ours(bench.rng, bench.rng.randbytes(fits), tags)) is Outcome.ACCEPTED
            assert bench.send(ours(bench.rng, bench.rng.randbytes(fits), tags) + b"x") is Outcome.OVERLONG
            assert bench.send(ours(bench.rng, bench.rng.randbytes(fits + 8), tags)) is Outcome.OVERLONG
            assert bench.send(*too_large(bench.rng, bench.most)) is Outcome.OVERLONG
    for size in (8960, 16376):
        assert bench.send(ours(bench.rng, bench.rng.randbytes(size))) is Outcome.OVERLONG
    bench.send(*good(bench.rng, 100))
    await bench.check()


@cocotb.test(**LIMIT)
async def frames_of_others(dut):
    """Every length at which something could change, up to the limits and past them."""
    bench = Environment(dut)
    await bench.start()
    sizes = [*range(15, bench.width // 4 + 20), 9100, *range(HOST_FRAME_MAX - 2, HOST_FRAME_MAX + 3), 20000]
    for size in sizes:
        data = ethernet(bench.rng, bench.rng.choice([0x88CC, 0x0800, 46]), bench.rng.randbytes(size))[:size]
        bench.send(data, bench.rng.randrange(10) == 0)
    for size in range(14, CONTROL_FRAME_MAX + 6):
        bench.send(ethernet(bench.rng, MAC_CONTROL_ETHERTYPE, bench.rng.randbytes(size), 0)[:size])
        bench.send(*good(bench.rng, 30))
    await bench.check()


@cocotb.test(**LIMIT)
@cocotb.parametrize(stuck=["operations", "host", "control"])
async def an_output_that_stops(dut, stuck):
    """Nothing is lost however long an output stands still."""
    bench = Environment(dut)
    await bench.start()
    is_stuck = True
    bench.sinks[stuck].pause = lambda: is_stuck
    for _ in range(400):
        bench.send(*any_frame(bench.rng, 300))
    for _ in range(40):
        bench.send(*(good if stuck == "operations" else OTHERS[stuck])(bench.rng, bench.most))
    await bench.clocks(12000)
    assert not dut.s_axis_tready.value
    is_stuck = False
    await bench.check()


@cocotb.test(**LIMIT)
async def a_reset_inside_a_frame(dut):
    """The rest of a frame, which the MAC will call bad, is nothing; the next whole frame is right."""
    bench = Environment(dut)
    await bench.start()
    for _ in range(30):
        for _ in range(3):
            bench.source.send(*any_frame(bench.rng, 400))
        await bench.clocks(bench.rng.randint(1, 60))
        await bench.restart()
        assert bench.send(bench.rng.randbytes(bench.rng.randint(1, 100)), True) is Outcome.BAD  # the rest of a frame
        for _ in range(3):
            bench.send(*good(bench.rng, 200))
        await with_timeout(bench.check(), 100, "us")


@cocotb.test(**LIMIT)
async def another_ethertype(dut):
    bench = Environment(dut)
    bench.model.ethertype = 0xABCD
    dut.cfg_ethertype.value = 0xABCD
    await bench.start()
    data = ours(bench.rng, payload(bench.rng, 100), 1)
    assert bench.send(data) is Outcome.HOST
    assert bench.send(data.replace(ETHERTYPE.to_bytes(2, "big"), b"\xab\xcd")) is Outcome.ACCEPTED
    await bench.check()
