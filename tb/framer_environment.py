"""Around the framer: its inputs, its wire, and the model with what is still to come."""

from __future__ import annotations

import dataclasses
from random import Random

import cocotb
from cocotb.triggers import RisingEdge

from xoe import Opcode, Operation, TrafficClass
from xoe.framer import Framer, Route, Settings
from xoe.wire import ATOMICS, RESPONSE_BIT, Status
from xoe_hdl.framer import COUNTERS
from xoe_hdl.layouts import CFG, counters
from xoe_tb import PAUSES, FrameSink, OperationSource, drive_struct, never, params, read_struct, start

INPUTS = ("requests", "responses")
REQUESTS, RESPONSES = range(2)
LATENCY = 17  # clocks from an operation that comes alone to its first beat, at the most
GATHER_ALL = (1 << 14) - 1  # frames wait until they are full, while operations follow without a gap
SETTINGS = Settings(
    mac=0x0A0B0C0D0E0F,
    node=0x1234,
    ethertype=0x9ABC,
    mtu=1024,
    gather=GATHER_ALL,
    vid=0x5A3,
    pcp=(1, 6, 2, 3, 4, 5, 7, 0),
    ect=True,
)
ROUTE = Route(
    mac=0x020304050607, node=0x4321, remote_qp=0xABC, local_qp=5, traffic_class=TrafficClass.REQUEST, epoch=0xE7
)
RESPONSE_ROUTE = dataclasses.replace(ROUTE, traffic_class=TrafficClass.RESPONSE)


class Bench:
    """Sources for both inputs, a sink that allows no gap, and the model with what is still to come."""

    def __init__(self, dut, settings=SETTINGS, source_pause=None, sink_pause=None):
        self.dut = dut
        self.rng = Random(cocotb.RANDOM_SEED)
        self.settings = settings
        self.size = len(dut.m_axis_tdata) // 8
        self.sources = [OperationSource(dut, name, self._pause(source_pause)) for name in INPUTS]
        self.sink = FrameSink(dut, "m_axis", self._pause(sink_pause), gapless=True)
        self.forget()

    def _pause(self, name):
        return PAUSES[name](self.rng) if name else never()

    def forget(self):
        """As after a reset."""
        self.model = Framer(self.settings, params()["first_sequence"])
        self.waiting = [[], []]
        self.frames, self.operations = [], 0

    def set(self, **settings):
        """Change settings, while nothing is in flight; sequence numbers go on."""
        self.settings = self.model.settings = dataclasses.replace(self.settings, **settings)
        drive_struct(self.dut, "cfg", CFG, dataclasses.asdict(self.settings))

    async def start(self):
        self.set()
        await start(self.dut)

    def send(self, operation, route=ROUTE):
        index = RESPONSES if operation.is_response else REQUESTS
        self.waiting[index].append((operation, route))
        self.operations += 1
        self.sources[index].send(operation, dataclasses.asdict(route))

    async def check_frame(self):
        """The input whose operations the next frame has."""
        frame, bad = await self.sink.recv()
        assert not bad
        self.frames.append(frame)
        return self.model.check(frame, self.waiting)

    async def check(self):
        """All frames until nothing is left, and then none; the counters too."""
        order = []
        while any(self.waiting):
            order.append(await self.check_frame())
        for _ in range(30):
            await RisingEdge(self.dut.clk)
        assert self.sink.empty()
        width = params()["counter_width"]
        expected = {"frames": len(self.frames), "operations": self.operations, "bytes": sum(map(len, self.frames))}
        found = read_struct(self.dut, "counters", counters(*COUNTERS, width=width))
        assert found == {name: count % (1 << width) for name, count in expected.items()}
        return order


def write(rng, size):
    return Operation(Opcode.WRITE, rng.getrandbits(16), rng.getrandbits(64), size, rng.randbytes(size))


def some_operation(rng):
    """A request or response of any kind."""
    kind = rng.randrange(6)
    tag, address = rng.getrandbits(16), rng.getrandbits(64)
    if kind == 0:
        return Operation(Opcode.READ, tag, address, rng.randint(1, 256))
    if kind == 1:
        opcode = rng.choice(sorted(ATOMICS))
        return Operation(opcode, tag, address, 8, rng.randbytes(16 if opcode == Opcode.COMPARE_SWAP else 8))
    if kind == 2:
        return Operation(Opcode.FENCE, tag)
    if kind == 3:
        return Operation(Opcode.READ | RESPONSE_BIT, tag, 0, size := rng.randint(1, 256), rng.randbytes(size))
    if kind == 4:
        return Operation(Opcode.WRITE | RESPONSE_BIT, tag, 0, rng.randint(1, 256), status=rng.choice(list(Status)))
    return write(rng, rng.randint(1, 256))


def some_route(rng, operation):
    """One of a few routes, often the same."""
    qp, mac = rng.choice((0, 0, 0, 1, params()["queue_pairs"] - 1)), rng.choice((ROUTE.mac, ROUTE.mac, 0x0102030405FF))
    if operation.is_response:
        return dataclasses.replace(RESPONSE_ROUTE, local_qp=qp, mac=mac)
    return dataclasses.replace(ROUTE, local_qp=qp, mac=mac, traffic_class=rng.choice((0, 0, 2, 3)))


class Line:
    """What ``m_axis`` and the inputs do, clock by clock."""

    def __init__(self, dut):
        self.dut = dut
        self.clock = 0
        self.beats, self.accepted = [], []
        cocotb.start_soon(self._watch())

    async def _watch(self):
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        handles = [(getattr(dut, f"{name}_tvalid"), getattr(dut, f"{name}_tready")) for name in INPUTS]
        valid, ready = dut.m_axis_tvalid, dut.m_axis_tready
        while True:
            await edge
            self.clock += 1
            if valid.value == 1 and ready.value == 1:
                self.beats.append(self.clock)
            if any(one.value == 1 and two.value == 1 for one, two in handles):
                self.accepted.append(self.clock)

    def idle_before(self, frame):
        """Clocks without a beat from the first beat to the last before ``frame``, which is the last one."""
        beats = self.beats[: -len(frame) * 8 // len(self.dut.m_axis_tdata)]  # rounded away from 0
        return beats[-1] - beats[0] + 1 - len(beats)
