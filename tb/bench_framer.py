"""The framer held against its model."""

from __future__ import annotations

import dataclasses
import itertools
from random import Random

import cocotb
from cocotb.triggers import RisingEdge

from xoe import Opcode, Operation, TrafficClass
from xoe.framer import Framer, Route, Settings
from xoe.wire import ATOMICS, RESPONSE_BIT, Status
from xoe_hdl.framer import COUNTERS
from xoe_hdl.layouts import CFG, counters
from xoe_tb import PAUSES, FrameSink, OperationSource, drive_struct, never, params, read_struct, reset, start

INPUTS = ("requests", "responses")
REQUESTS, RESPONSES = range(2)
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
    epoch=0xE7,
)
ROUTE = Route(mac=0x020304050607, node=0x4321, remote_qp=0xABC, local_qp=5, traffic_class=TrafficClass.REQUEST)
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


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(source_pause=list(PAUSES), sink_pause=list(PAUSES))
async def every_length_passes(dut, source_pause, sink_pause):
    bench = Bench(dut, SETTINGS, source_pause, sink_pause)
    await bench.start()
    for size in range(1, min(256, 2 * bench.size + 1) + 1):
        bench.send(write(bench.rng, size))
    await bench.check()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def every_length_passes_alone(dut):
    bench = Bench(dut)
    await bench.start()
    for size in range(1, 257):
        bench.send(write(bench.rng, size))
        await bench.check_frame()
        assert not bench.waiting[REQUESTS]
    await bench.check()


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(source_pause=list(PAUSES), sink_pause=list(PAUSES))
async def anything_passes(dut, source_pause, sink_pause):
    """All lengths, kinds, routes and classes, tagged or not, under every MTU; registers change between rounds."""
    bench = Bench(dut, SETTINGS, source_pause, sink_pause)
    await bench.start()
    sizes = bench.rng.sample(range(1, 257), 256)
    for count, mtu in enumerate((298, 303, 511, 1024)):
        bench.set(mtu=mtu, tagged=bench.rng.random() < 0.5, vid=bench.rng.getrandbits(12))
        for size in sizes[64 * count : 64 * (count + 1)]:
            bench.send(operation := write(bench.rng, size), some_route(bench.rng, operation))
            bench.send(operation := some_operation(bench.rng), some_route(bench.rng, operation))
        await bench.check()


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(mtu=[256, 257, 264, 600, "mtu", 9000])
async def frames_are_filled_to_the_mtu(dut, mtu):
    """The grouping is determined while the next operation is always there: frames equal the model's."""
    bench = Bench(dut)
    await bench.start()
    most = params()["mtu"]
    bench.set(mtu=most if mtu == "mtu" else mtu)
    limit = min(bench.settings.mtu, most)
    bench.model.settings = dataclasses.replace(bench.settings, mtu=limit)
    room = (limit - 26) // 8 * 8
    operations = []
    for excess in (0, 8, 0, -8, 8, 8, 0):  # fits exactly, by 8 bytes too long, ...
        left = room + excess
        while left > 200:
            operations.append(write(bench.rng, 80))
            left -= 96
        operations.append(write(bench.rng, left - 16))
    routed = [(operation, ROUTE) for operation in operations]
    expected = Framer(bench.model.settings, params()["first_sequence"]).frames(routed)
    assert max(map(len, expected)) == 14 + room + 26
    for operation in operations:
        bench.send(operation)
    await bench.check()
    assert bench.frames == expected


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def what_exceeds_the_mtu_goes_alone(dut):
    bench = Bench(dut)
    await bench.start()
    bench.set(mtu=256)
    for size in (256, 1, 1, 256, 256, 216, 1, 208, 1):
        bench.send(write(bench.rng, size))
    expected = Framer(bench.settings, params()["first_sequence"]).frames(bench.waiting[REQUESTS])
    assert len(expected) == 8
    await bench.check()
    assert bench.frames == expected


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(tagged=[False, True])
async def short_frames_are_padded(dut, tagged):
    bench = Bench(dut)
    await bench.start()
    bench.set(tagged=tagged)
    for opcode in (Opcode.FENCE, Opcode.READ, Opcode.WRITE | RESPONSE_BIT, Opcode.FENCE | RESPONSE_BIT):
        bench.send(operation := Operation(opcode), RESPONSE_ROUTE if operation.is_response else ROUTE)
        await bench.check_frame()
    await bench.check()
    assert [len(frame) for frame in bench.frames] == [60] * 4


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def sequence_numbers_wrap(dut):
    """Each queue pair and direction has its own count; the model has it too."""
    bench = Bench(dut)
    await bench.start()
    for qp in range(params()["queue_pairs"]):
        bench.send(Operation(Opcode.READ), dataclasses.replace(ROUTE, local_qp=qp))
        bench.send(Operation(Opcode.READ | RESPONSE_BIT), dataclasses.replace(RESPONSE_ROUTE, local_qp=qp))
    for _ in range(4):
        await bench.check()
        bench.send(Operation(Opcode.READ))
        bench.send(Operation(Opcode.READ | RESPONSE_BIT), RESPONSE_ROUTE)
    await bench.check()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(flows=[1, 2])
async def same_flow_in_frames_of_one_beat(dut, flows):
    """Frames of one flow right behind each other, apart only by their destination queue pair; or of two, by turns."""
    bench = Bench(dut)
    await bench.start()
    for count in range(100):
        route = dataclasses.replace(ROUTE, remote_qp=count % 2, local_qp=count // 2 % flows)
        bench.send(Operation(Opcode.READ, tag=count), route)
    await bench.check()
    assert len(bench.frames) == 100


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def reset_in_the_middle(dut):
    bench = Bench(dut, SETTINGS, "random", "random")
    await bench.start()
    for clocks in range(60, 100):
        for _ in range(20):
            bench.send(operation := some_operation(bench.rng), some_route(bench.rng, operation))
        for _ in range(clocks):
            await RisingEdge(dut.clk)
        await reset(dut)
        while not bench.sink.empty():
            await bench.sink.recv()
        bench.forget()
    bench.send(write(bench.rng, 100))
    await bench.check()


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def neither_input_starves_the_other(dut):
    bench = Bench(dut)
    await bench.start()
    answer = Operation(Opcode.READ | RESPONSE_BIT, 1, 0, 256, bytes(256))
    for _ in range(60):
        bench.send(write(bench.rng, 256))
        bench.send(answer, RESPONSE_ROUTE)
    order = await bench.check()
    assert order[0] == RESPONSES
    both = 2 * min(order.count(REQUESTS), order.count(RESPONSES))
    assert order[:both] == [RESPONSES, REQUESTS] * (both // 2)


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(late=INPUTS)
async def a_late_comer_is_next(dut, late):
    """With the other input saturated, what comes late waits for no more than what is gathered already."""
    bench = Bench(dut)
    await bench.start()
    request, answer = (write(bench.rng, 256), ROUTE), (Operation(Opcode.READ | RESPONSE_BIT), RESPONSE_ROUTE)
    many, one = (request, answer) if late == "responses" else (answer, request)
    for _ in range(300):
        bench.send(*many)
    for _ in range(3):
        first = await bench.check_frame()
    bench.send(*one)
    order = await bench.check()
    assert order.index(1 - first) <= 2


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(size=[0, 8, 64, 72, 256], tagged=[False, True])
async def frames_of_one_operation_are_back_to_back(dut, size, tagged):
    """Not a clock is lost between frames, however short: their routes differ, so none is shared.

    But for the last, which nothing follows that would close it.
    """
    bench = Bench(dut)
    await bench.start()
    bench.set(tagged=tagged)
    line = Line(dut)
    for count in range(60):
        operation = write(bench.rng, size) if size else Operation(Opcode.READ)
        bench.send(operation, dataclasses.replace(ROUTE, node=count % 2))
    await bench.check()
    assert len(bench.frames) == 60
    assert line.idle_before(bench.frames[-1]) == 0


@cocotb.test(timeout_time=8, timeout_unit="ms")
@cocotb.parametrize(size=[64, 256], inputs=[1, 2])
async def the_wire_is_full(dut, size, inputs):
    """Payload over what the beats could carry, saturated, with the configured MTU."""
    bench = Bench(dut)
    await bench.start()
    bench.set(mtu=params()["mtu"])
    line = Line(dut)
    count = 20 * bench.size * 64 // size
    for _ in range(count):
        bench.send(write(bench.rng, size))
        if inputs == 2:
            bench.send(Operation(Opcode.READ | RESPONSE_BIT, 0, 0, size, bench.rng.randbytes(size)), RESPONSE_ROUTE)
    await bench.check()
    efficiency = inputs * count * size / bench.size / (line.beats[-1] - line.beats[0] + 1)
    dut._log.info("efficiency %d: %.3f", size, efficiency)
    if inputs == 1:
        assert line.idle_before(bench.frames[-1]) == 0
    assert efficiency >= (0.9 if size == 256 else 0.77)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(gather=[0, 272, 280, 1024])
async def an_idle_wire_waits_for_what_is_to_be_gathered(dut, gather):
    """The first frame has just enough. From then on the wire is never idle, and frames grow by the beats of headers."""
    bench = Bench(dut)
    await bench.start()
    bench.set(mtu=params()["mtu"], gather=gather)
    line = Line(dut)
    for _ in range(64):
        bench.send(write(bench.rng, 256))
    await bench.check()
    sizes = [len(frame) for frame in bench.frames]
    least = max(1, -(-gather // 272))
    assert sizes[0] == 14 + 26 + 272 * least
    assert line.idle_before(bench.frames[-1]) == 0
    if bench.size == 8:
        assert max(sizes) > sizes[0]


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def what_is_gathered_counts_from_the_frame_begun(dut):
    """Short operations after a large frame: theirs waits for enough of them, and for hardly more."""
    bench = Bench(dut)
    await bench.start()
    bench.set(mtu=params()["mtu"], gather=240)
    for _ in range(3):
        bench.send(write(bench.rng, 256))
        await bench.check()
        first = len(bench.frames)
        for _ in range(40):
            bench.send(write(bench.rng, 48))
        await bench.check()
        assert 240 <= len(bench.frames[first]) - 40 <= 240 + 3 * 64


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def a_wire_that_stops_for_long(dut):
    """Both inputs are held back once the store is full, nothing is lost, and it goes on."""
    bench = Bench(dut)
    await bench.start()
    bench.set(mtu=params()["mtu"])
    held = True
    bench.sink.pause = lambda: held
    line = Line(dut)
    for _ in range(3 * params()["mtu"] // 256):
        bench.send(write(bench.rng, 256))
        bench.send(Operation(Opcode.READ | RESPONSE_BIT, 0, 0, 256, bench.rng.randbytes(256)), RESPONSE_ROUTE)
    while not line.accepted or line.clock < line.accepted[-1] + 60:
        await RisingEdge(dut.clk)
    assert len(line.accepted) < 6 * params()["mtu"] // bench.size
    held = False
    await bench.check()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def what_trickles_in_does_not_hold_up_the_other_input(dut):
    """A response now and then goes out between frames of requests, which grow; the wire is idle for one request."""
    bench = Bench(dut)
    await bench.start()
    bench.set(mtu=params()["mtu"], gather=0)
    clock = itertools.count()
    bench.sources[RESPONSES].pause = lambda: next(clock) % 40 != 0
    line = Line(dut)
    for _ in range(80):
        bench.send(write(bench.rng, 256))
    for _ in range(200 // bench.size):
        bench.send(Operation(Opcode.WRITE | RESPONSE_BIT, length=256), RESPONSE_ROUTE)
    order = await bench.check()
    assert line.idle_before(bench.frames[-1]) <= 272 // bench.size + 2  # the first request
    last = len(order) - order[::-1].index(RESPONSES) - 1
    if bench.size == 8:
        assert len(bench.frames[last - 1]) >= 3 * 272


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(tagged=[False, True])
async def first_beat_is_out_in_8_clocks(dut, tagged):
    bench = Bench(dut)
    await bench.start()
    bench.set(tagged=tagged)
    await bench.check()
    for operation, route in (
        (Operation(Opcode.READ), ROUTE),
        (Operation(Opcode.READ | RESPONSE_BIT), RESPONSE_ROUTE),
        (write(bench.rng, bench.size), ROUTE),
    ):
        line = Line(dut)
        bench.send(operation, route)
        await bench.check()
        dut._log.info("latency %d", line.beats[0] - line.accepted[0])
        assert line.beats[0] - line.accepted[0] <= 8
