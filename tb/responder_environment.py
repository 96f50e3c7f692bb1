"""The responder's surroundings in a bench: its peers, its memory, its model, and an ear on the memory's port."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import asdict
from itertools import repeat
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiBus, AxiRam, AxiResp, AxiSlave

from xoe.cam import Cam, CamError, Page, Window
from xoe.config import NicConfig
from xoe.memory import Memory, MemoryRangeError
from xoe.operation import Operation
from xoe.responder import Responder as Model
from xoe.wire import ATOMICS, Opcode, Rights, Status, TrafficClass
from xoe_hdl.cam_writer import write_layout
from xoe_hdl.layouts import WINDOW
from xoe_tb import PAUSES, OperationSink, OperationSource, StreamSource, pack, params, start
from xoe_tb.axi import AxiWatch

CONFIG = NicConfig(**params()["config"])
IS_FULL = params()["full"]  # else a shorter run
BYTES = CONFIG.data_width // 8
ALL = Rights.READ | Rights.WRITE | Rights.ATOMIC
NODE, STRANGER = 0x8001, 0x0180
BASE, SIZE_LOG2 = 0x3EDC_BA98_4000_0000, 20  # a window that the tests may do anything in
RAM_SIZE = 1 << 62  # the largest that cocotbext-axi takes
SMALL_SIZE = 0xFEDC_BA98_4000_0000 + (1 << SIZE_LOG2 - 1)  # of a memory that ends in the middle of another window
SMALL_WINDOW = Page(NODE, SMALL_SIZE >> SIZE_LOG2 << SIZE_LOG2, SIZE_LOG2, Window(ALL))


class BadMemory(Memory):
    """Memory that ends early, and in which whole beats of the bus refuse before that."""

    def __init__(self, bad_beats: Iterable[int] = ()) -> None:
        super().__init__(SMALL_SIZE)
        self.bad_beats = frozenset(bad_beats)  # their addresses

    def read(self, address: int, length: int) -> bytes:
        self._refuse(address, length)
        return super().read(address, length)

    def write(self, address: int, data: bytes) -> None:
        self._refuse(address, len(data))
        super().write(address, data)

    def _refuse(self, address: int, length: int) -> None:
        if not self.bad_beats.isdisjoint(range(address // BYTES * BYTES, address + length, BYTES)):
            raise MemoryRangeError(f"a bad beat at {address:#x}")


class Target:
    """What stands behind cocotbext-axi's slave, which answers SLVERR to what this refuses."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    async def read(self, address: int, length: int) -> bytes:
        return self.memory.read(address, length)

    async def write(self, address: int, data: bytes) -> None:
        self.memory.write(address, bytes(data))


def mix_errors(slave: AxiSlave, rng: Random) -> None:
    """Let a slave answer DECERR instead of SLVERR now and then."""
    for channel, field in ((slave.write_if.b_channel, "bresp"), (slave.read_if.r_channel, "rresp")):

        async def send(answer: Any, send: Any = channel.send, field: str = field) -> None:
            if getattr(answer, field) == AxiResp.SLVERR and rng.random() < 0.5:
                setattr(answer, field, AxiResp.DECERR)
            await send(answer)

        channel.send = send


class ResponderBench:
    """A responder between a source of requests, a sink of responses, and a memory."""

    def __init__(self, dut, bad_beats: Iterable[int] | None = None) -> None:
        """With ``bad_beats``, even none, memory is a ``BadMemory``."""
        self.dut = dut
        self.rng = Random(cocotb.RANDOM_SEED)
        self.source = OperationSource(dut, "requests")
        self.sink = OperationSink(dut, "responses")
        self.windows = StreamSource(dut, "window_write")
        self.watch = AxiWatch(dut, "m_axi")
        bus = AxiBus.from_prefix(dut, "m_axi")
        if bad_beats is None:
            self.memory = Memory()
            self.slave = self.ram = AxiRam(bus, dut.clk, dut.rst, size=RAM_SIZE)
        else:
            self.memory = BadMemory(bad_beats)
            self.slave, self.ram = AxiSlave(bus, dut.clk, dut.rst, Target(BadMemory(bad_beats))), None
            mix_errors(self.slave, self.rng)
        for part in (self.slave.write_if, self.slave.read_if):
            part.log.setLevel(logging.ERROR)
        self.model = Model(self.memory, Cam(CONFIG.windows))
        self.expected: list[tuple[Operation, dict]] = []

    def pause(self, requests: str, responses: str, *channels: str) -> None:
        """Set the patterns of pauses; of AXI's channels AW, W, B, AR and R the last holds for all that follow."""
        self.source.pause = PAUSES[requests](self.rng)
        self.sink.pause = PAUSES[responses](self.rng)
        for index, end in enumerate(self.channels().values()):
            end.set_pause_generator(PAUSES[channels[min(index, len(channels) - 1)]](self.rng))

    def channels(self) -> dict[str, Any]:
        """Memory's ends of AXI's channels."""
        write, read = self.slave.write_if, self.slave.read_if
        return {
            "aw": write.aw_channel,
            "w": write.w_channel,
            "b": write.b_channel,
            "ar": read.ar_channel,
            "r": read.r_channel,
        }

    async def stall(self, where: str, clocks: int) -> None:
        """Stop a channel, or ``responses``, for a long time."""
        if where == "responses":
            self.sink.pause = repeat(True)
        else:
            self.channels()[where].pause = True
        await ClockCycles(self.dut.clk, clocks)
        if where == "responses":
            self.sink.pause = repeat(False)
        else:
            self.channels()[where].pause = False

    async def write_window(self, index: int, page: Page | None) -> None:
        """Write an entry, in the model as well."""
        fields = {"index": index, "valid": 1, **asdict(page)} if page else {"index": index}
        self.windows.send(pack(write_layout(WINDOW), fields))
        await RisingEdge(self.dut.clk)
        while self.dut.window_written_valid.value != 1:
            await RisingEdge(self.dut.clk)
        assert self.dut.window_written_error.value == CamError.OK
        assert self.model.windows.write(index, page) == CamError.OK

    async def begin(self) -> ResponderBench:
        await start(self.dut)
        cocotb.start_soon(self.watch.run())
        await self.write_window(0, Page(NODE, BASE, SIZE_LOG2, Window(ALL)))
        return self

    def fill(self, address: int, data: bytes) -> None:
        """Put bytes into the memory, and into the model's."""
        self.memory.write(address, data)
        self.ram.write(address, data)

    def send(self, request: Operation, node: int = NODE) -> None:
        """Queue a request from ``node``, and note what the model answers."""
        bits = self.rng.getrandbits
        route = {"mac": bits(48), "node": node, "remote_qp": bits(12), "local_qp": bits(12)}
        route |= {"traffic_class": bits(3), "epoch": bits(8)}
        self.source.send(request, route)
        answer = self.model.execute(request, node)
        if answer is not None:
            self.expected.append((answer, route | {"traffic_class": TrafficClass.RESPONSE}))

    def tag(self) -> int:
        return self.rng.getrandbits(16)

    def write(self, address: int, length: int) -> None:
        self.send(Operation(Opcode.WRITE, self.tag(), address, length, self.rng.randbytes(length)))

    def read(self, address: int, length: int) -> None:
        self.send(Operation(Opcode.READ, self.tag(), address, length))

    def atomic(self, opcode: int, address: int, size: int, *operands: int) -> None:
        data = b"".join(operand.to_bytes(8, "little") for operand in operands)
        self.send(Operation(opcode, self.tag(), address, size, data))

    async def settle(self) -> None:
        """Wait for all responses; compare them, memory and counters with the model's."""
        for answer, route in self.expected:
            found = await self.sink.recv()
            assert found == (answer, route), f"{found} instead of {answer, route}"
        self.expected.clear()
        await self.source.drain()
        await ClockCycles(self.dut.clk, 12)
        assert self.sink.empty(), "a response that nobody asked for"
        self.compare_counters()
        if self.ram:
            for page in self.memory.pages():
                assert bytes(self.ram.read(page, 4096)) == self.memory.read(page, 4096), f"page {page:#x}"

    def compare_counters(self) -> None:
        for outcome, count in self.model.counters.items():
            found = int(getattr(self.dut, f"counters_{outcome.name.lower()}").value)
            assert found == count % (1 << CONFIG.counter_width), outcome.name


def lengths() -> list[int]:
    """Around the bus width, its double, and all powers of two."""
    around = {size + off for size in (BYTES, 2 * BYTES, *(1 << n for n in range(9))) for off in (-1, 0, 1)}
    return sorted(length for length in around if 1 <= length <= 256)


def sample(rng: Random, items: Iterable, count: int) -> list:
    """All of the items in a full run, else some."""
    items = list(items)
    return items if IS_FULL else rng.sample(items, min(count, len(items)))


def faults(rng: Random) -> list[Operation]:
    """One request of every kind that is refused, or ignored."""
    wrong_sizes = [length for length in range(16) if length not in (4, 8)]
    found = [
        Operation(Opcode.READ, 0, BASE, 8, b"", Status.MALFORMED),
        Operation(Opcode.WRITE, 0, BASE, 256, b"", Status.MALFORMED),
        Operation(Opcode.READ, 0, BASE, 0),
        Operation(Opcode.WRITE, 0, BASE, 0),
        *(Operation(Opcode.READ, 0, BASE, length) for length in (257, 512, 4095)),
        *(Operation(Opcode.WRITE, 0, BASE, length, rng.randbytes(length)) for length in (257, 512, 2040)),
        *(Operation(Opcode.WRITE, 0, BASE, 100, rng.randbytes(length)) for length in (8, 96, 112, 1024)),
        Operation(Opcode.WRITE, 0, BASE, 100),
        Operation(Opcode.READ, 0, BASE, 8, rng.randbytes(8)),
        Operation(Opcode.FENCE, 0, 0, 1),
        Operation(Opcode.FENCE, 0, 0, 0, rng.randbytes(8)),
        Operation(0x42, 0, 0, 8),
        Operation(0x41, 0, 0, 256, rng.randbytes(256)),
        Operation(Opcode.WRITE, 0, BASE - 1, 256, rng.randbytes(256)),
        Operation(Opcode.READ, 0, BASE + (1 << SIZE_LOG2) - 255, 256),
        Operation(Opcode.WRITE, 0, BASE + (1 << SIZE_LOG2) - 255, 256, rng.randbytes(256)),
        Operation(Opcode.READ, 0, (1 << 64) - 1, 256),
    ]
    for opcode in sorted(ATOMICS):
        words = 16 if opcode == Opcode.COMPARE_SWAP else 8
        found.append(Operation(opcode, 0, BASE, rng.choice(wrong_sizes), rng.randbytes(words)))
        found.append(Operation(opcode, 0, BASE, 8, rng.randbytes(rng.choice((0, 24 - words, 24, 256)))))
        found.append(Operation(opcode, 0, BASE + rng.choice((1, 2, 4, 7)), 8, rng.randbytes(words)))
        found.append(Operation(opcode, 0, BASE + rng.choice((1, 2, 3)), 4, rng.randbytes(words)))
    known = {*ATOMICS, Opcode.READ, Opcode.WRITE, Opcode.FENCE}
    for opcode in set(range(256)) - known - set(range(0x40, 0x80)) - set(range(0xC0, 0x100)):
        found.append(Operation(opcode, 0, BASE, 8, rng.randbytes(rng.choice((0, 8, 72)))))
    return found


def anything(bench: ResponderBench) -> None:
    """Send a random request to a small piece of memory, so that they meet there."""
    rng, start_ = bench.rng, BASE + 4096 - 300
    address, length = start_ + rng.randrange(600), rng.choice((*lengths(), rng.randint(1, 256)))
    match rng.choice("rrrrwwwwaafx"):
        case "r":
            bench.read(address, length)
        case "w":
            bench.write(address, length)
        case "a":
            size, opcode = rng.choice((4, 8)), rng.choice(sorted(ATOMICS))
            count = 2 if opcode == Opcode.COMPARE_SWAP else 1
            operands = [rng.getrandbits(64) for _ in range(count)]
            if rng.random() < 0.5:
                operands[0] = int.from_bytes(bench.memory.read(address // size * size, size), "little")
            bench.atomic(opcode, address // size * size, size, *operands)
        case "f":
            bench.send(Operation(Opcode.FENCE, bench.tag()))
        case _:
            bench.send(rng.choice(faults(rng)))
