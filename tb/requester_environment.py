"""Around the requester: its user, its peer, and the score between the model and both."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from random import Random
from typing import NamedTuple

import cocotb
from amaranth.hdl import Shape
from cocotb.triggers import RisingEdge
from cocotb.utils import get_sim_time

from xoe import Operation, Status
from xoe.cam import Cam, Page, Translation
from xoe.command import Command, Completion, completion, fits, sent_bytes
from xoe.config import NicConfig
from xoe.parser import Route
from xoe.requester import Requester
from xoe.tags import TAG_BITS
from xoe.wire import ATOMICS, RESPONSE_BIT, Opcode, Rights, data_words
from xoe_hdl.cam import WRITTEN
from xoe_hdl.cam_writer import write_layout
from xoe_hdl.layouts import CFG, TRANSLATION, counters
from xoe_hdl.requester import EVENTS, REFUSED
from xoe_hdl.transport.connection_layouts import entry_layout
from xoe_tb import (
    OperationSink,
    OperationSource,
    StreamSource,
    drive_struct,
    pack,
    params,
    read_struct,
    reset,
    start,
)
from xoe_tb.bench import CLOCK_NS
from xoe_tb.command import CommandSource, CompletionSink

CONFIG = NicConfig(**params()["config"])
BUS = CONFIG.data_width // 8
QUEUE_PAIRS = CONFIG.queue_pairs
COUNTERS = counters(*(status.name.lower() for status in REFUSED), *EVENTS, width=CONFIG.counter_width)
ALL = Rights.READ | Rights.WRITE | Rights.ATOMIC
SPACE = 0xA001
PEER = {"mac": 0x0A1B2C3D4E5F, "node": 0x1234, "remote_qp": 0x567}  # where all pages lead, and connections at first
NEXT_TAGS: dict[int, set[int]] = {}  # by index, from the test before: no reset makes the requester forget them
PAGES = [  # address, log2 of the size, rights
    (0x10000, 12, ALL),
    (0x11000, 12, Rights.READ),
    (0x12000, 12, Rights.WRITE),
    (0x13000, 12, Rights.ATOMIC),
    (0x14000, 14, 0),
    (0xFFFF_FFFF_FFFE_0000, 17, ALL),
]


def clock() -> int:
    return round(get_sim_time("ns")) // CLOCK_NS


def _after(tag: int) -> int:
    """The tag of the same index and the next generation."""
    return (tag + CONFIG.tags) % (1 << TAG_BITS)


class Waiting(NamedTuple):
    """A request that left."""

    command: Command
    tag: int
    since: int  # clock


class Environment:
    """Keeps what is expected: the outcome of each command when it is sent, and its completion when it is answered."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.rng = Random(cocotb.RANDOM_SEED)
        self.commands = CommandSource(dut, "commands", CONFIG.data_width, self.rng)
        self.completions = CompletionSink(dut, "completions", CONFIG.data_width)
        self.requests = OperationSink(dut, "requests")
        self.responses = OperationSource(dut, "responses")
        self.cam_write = StreamSource(dut, "cam_write")
        self.next_id = self.rng.getrandbits(16)
        self.edge = RisingEdge(dut.clk)
        dut.begins_valid.value = dut.begins_qp.value = 0
        self.is_in_reset = False
        self.cam: Cam[Translation] = Cam(CONFIG.cam_entries)
        self.next_tags = dict(NEXT_TAGS)  # those that may come next, by index, once one was seen
        NEXT_TAGS.clear()
        self.table = [{"is_open": 1, "epoch": 3 * qp % 256, **PEER, "atomic_slots": 255} for qp in range(QUEUE_PAIRS)]
        self.forget()

    def forget(self) -> None:
        """A reset: nothing is in flight."""
        self.expected: deque[tuple[Command, set]] = deque()  # commands whose outcome was not seen yet
        self.refused: deque[tuple[Command, set[Status]]] = deque()
        self.answers: dict[int, tuple[Completion | None, Waiting]] = {}  # by id: of what left and is not completed
        self.arrived: deque[Waiting] = deque()  # requests for the peer to answer
        self.free = deque(range(CONFIG.tags))  # indices never given
        self.issued: deque[int] = deque()  # tags, as they are given
        self.retired: deque[int] = deque()  # tags, as they come back
        self.racing: set[int] = set()  # ids whose answer may come too late
        self.lost: set[int] = set()  # ids of requests whose connection is lost
        self.counts: Counter[str] = Counter()
        self.completed = 0
        self.timed_out: list[tuple[Waiting, int]] = []  # with the clocks that it took

    async def start(self, mtu: int = CONFIG.mtu, timeout: int = 0, pages=PAGES) -> None:
        """Clock, reset, settings and pages; what the requester does is watched from then on."""
        self.set(mtu, timeout)
        await start(self.dut)
        for index, (address, size, rights) in enumerate(pages):
            await self.map(index, self.page(address, size, rights))
        for view in ("peer", "limit", "scan"):
            cocotb.start_soon(self._show(view))
        cocotb.start_soon(self._watch_requests())
        cocotb.start_soon(self._watch_completions())

    async def _show(self, view: str) -> None:
        """Answer look-ups in the table of connections, two clocks later."""
        qp, asked, found = getattr(self.dut, f"{view}_qp"), 0, 0
        while True:
            drive_struct(self.dut, view, entry_layout(), self.table[found])
            await self.edge
            found, asked = asked, int(qp.value) if qp.value.is_resolvable else 0

    async def begin(self, qp: int) -> None:
        """Say that an incarnation begins, some clocks before the table does."""
        self.dut.begins_valid.value, self.dut.begins_qp.value = 1, qp
        await self.edge
        self.dut.begins_valid.value = 0
        await self.edge

    def is_connected(self, route: Route) -> bool:
        """Whether the queue pair leads there, as the table is now."""
        entry = self.table[route.local_qp]
        return bool(entry["is_open"]) and (route.mac, route.node, route.remote_qp) == tuple(
            entry[name] for name in PEER
        )

    def set(self, mtu: int, timeout: int = 0) -> None:
        noise = {
            name: self.rng.getrandbits(Shape.cast(shape).width) for name, shape in CFG.members.items() if name != "pcp"
        }
        drive_struct(self.dut, "cfg", CFG, noise | {"mtu": mtu, "timeout": timeout, "pcp": [0] * 8})
        self.model = Requester(CONFIG, self.cam, mtu, timeout)

    async def reset(self) -> None:
        """Reset, and map the same pages again."""
        self.is_in_reset = True
        self.forget()
        await reset(self.dut)
        self.is_in_reset = False
        for tags in self.next_tags.values():  # each may have been issued once while nobody looked
            tags |= {_after(tag) for tag in tags}
        for index, page in enumerate(self.cam.pages):
            if page is not None:
                await self.map(index, page)

    def page(self, address: int, size: int, rights: int) -> Page:
        bits = self.rng.getrandbits
        return Page(
            SPACE,
            address,
            size,
            Translation(bits(64) >> size << size, *PEER.values(), rights, bits(3)),
        )

    def send_page(self, index: int, page: Page | None) -> None:
        fields = {"index": index, "valid": int(page is not None)} | (dataclasses.asdict(page) if page else {})
        self.cam_write.send(pack(write_layout(TRANSLATION), fields))

    async def map(self, index: int, page: Page | None) -> None:
        """Write an entry; returns in the clock after which look-ups see it."""
        self.send_page(index, page)
        while True:
            await self.edge
            written = read_struct(self.dut, "cam_written", WRITTEN)
            if written["valid"]:
                assert written["error"] == self.cam.write(index, page)
                for command, outcomes in self.expected:  # looked up before the write or after it
                    outcomes.add(self.outcome(command))
                return

    def command(self, opcode: int, length: int = 8, address: int = 0x10000, **fields) -> Command:
        """A command with an id of its own, and data of the right size."""
        self.next_id = (self.next_id + 1) % (1 << 16)
        command = Command(opcode, self.next_id, self.rng.randrange(CONFIG.queue_pairs), SPACE, address, length)
        command = dataclasses.replace(command, **fields)
        if "data" not in fields and opcode in set(Opcode):
            command = dataclasses.replace(command, data=self.rng.randbytes(sent_bytes(command)))
        return command

    def outcome(self, command: Command) -> tuple[Status, Route | None, int]:
        """What becomes of it, as the CAM is now."""
        status, route, address = self.model.check(command)
        if route is None:
            return status, route, address
        if not self.is_connected(route):
            return Status.NOT_CONNECTED, None, 0
        return status, dataclasses.replace(route, epoch=self.table[route.local_qp]["epoch"]), address

    def send(self, *commands: Command) -> None:
        """Queue commands."""
        NEXT_TAGS.clear()
        for command in commands:
            self.expected.append((command, {self.outcome(command)}))
            self.commands.send(command)

    def answer(self, waiting: Waiting, status: int = Status.DONE, **changes) -> Operation:
        """Queue the response to a request; DONE brings random data. The fields can be changed."""
        opcode, length = waiting.command.opcode | RESPONSE_BIT, waiting.command.length
        words = data_words(opcode, length, status)
        data = self.rng.randbytes(length if waiting.command.opcode == Opcode.READ else 8 * words) if words else b""
        if waiting.command.opcode in ATOMICS and words:
            data = data[:length] + bytes(8 - length)
        response = dataclasses.replace(Operation(opcode, waiting.tag, 0, length, data, status), **changes)
        self.answers[waiting.command.id] = completion(waiting.command, response), waiting
        self.counts["bad_response"] += not fits(waiting.command, response)
        self.respond(response, waiting.command.qp)
        return response

    def respond(self, response: Operation, qp: int = 0) -> None:
        """Queue a response as it is, on a queue pair's connection."""
        route = {"node": self.rng.getrandbits(16), "mac": self.rng.getrandbits(48)}
        self.responses.send(response, {**route, "local_qp": qp, "epoch": self.table[qp]["epoch"]})

    def stray(self, response: Operation) -> None:
        """Queue a response that is to be dropped."""
        self.counts["stray"] += 1
        self.respond(response)

    async def settle(self) -> None:
        """Wait until all commands sent are completed; answer nothing."""
        while self.expected or self.refused or self.answers:
            await self.edge
        await self.finish()

    async def finish(self) -> None:
        """Compare counters and tags, when nothing moves any more."""
        await self.responses.drain()
        for _ in range(8):
            await self.edge
        assert self.completions.empty()
        assert self.requests.empty()
        found = read_struct(self.dut, "counters", COUNTERS)
        assert found == {name: self.counts[name] % (1 << CONFIG.counter_width) for name in found}
        assert not self.issued
        NEXT_TAGS.update(self.next_tags)
        assert self.dut.in_flight.value.to_unsigned() == len(self.answers)

    async def _watch_requests(self) -> None:
        while True:
            operation, route = await self.requests.recv()
            if not self.is_in_reset:
                self._on_request(operation, Route(**route))

    def _on_request(self, operation: Operation, route: Route) -> None:
        """A request left; all commands before its own must have been refused."""
        while True:
            assert self.expected, f"nobody asked for {operation}"
            command, outcomes = self.expected.popleft()
            data = command.data.ljust(sent_bytes(command), b"\0")[: sent_bytes(command)]
            wanted = Operation(command.opcode, operation.tag, operation.address, command.length, data)
            if (Status.DONE, route, operation.address) in outcomes and operation == wanted:
                break
            statuses = {status for status, _, _ in outcomes} - {Status.DONE}
            assert statuses, f"{command} should leave as {outcomes}, not as {operation}, {route}"
            self.refused.append((command, statuses))
        waiting = Waiting(command, operation.tag, clock())
        assert command.id not in self.answers
        self.answers[command.id] = None, waiting
        self.arrived.append(waiting)
        self.issued.append(operation.tag)
        self._check_order()

    def _check_order(self) -> None:
        """Indices come in order, then as they came back, which may be seen later than that they were given again."""
        while self.issued and (self.free or self.retired):
            index = self.free.popleft() if self.free else self.retired.popleft() % CONFIG.tags
            self._check_tag(index, self.issued.popleft())

    def _check_tag(self, index: int, tag: int) -> None:
        """Each index's generation is one after the last, whatever came between."""
        assert tag % CONFIG.tags == index
        possible = self.next_tags.get(index, {tag})
        assert tag in possible, f"{tag:#x} is none of {sorted(map(hex, possible))}"
        self.next_tags[index] = {_after(tag)}

    async def _watch_completions(self) -> None:
        while True:
            found = await self.completions.recv()
            if not self.is_in_reset:
                self._on_completion(found)

    def _on_completion(self, found: Completion) -> None:
        self.completed += 1
        if found.id not in self.answers:
            self._on_refusal(found)
            return
        wanted, waiting = self.answers.pop(found.id)
        if found.id in self.lost:
            self.counts["connection_lost"] += 1
            wanted = Completion(waiting.command.id, waiting.command.opcode, Status.CONNECTION_LOST)
        elif wanted is None or (found.id in self.racing and found.status == Status.TIMED_OUT):
            self.counts["stray"] += wanted is not None
            wanted = Completion(waiting.command.id, waiting.command.opcode, Status.TIMED_OUT)
            self.counts["timed_out"] += 1
            self.timed_out.append((waiting, clock() - waiting.since))
        assert found == wanted
        self.retired.append(waiting.tag)
        self._check_order()

    def _on_refusal(self, found: Completion) -> None:
        """Refusals come in the order of their commands."""
        if not self.refused:
            command, outcomes = self.expected.popleft()
            self.refused.append((command, {status for status, _, _ in outcomes} - {Status.DONE}))
        command, statuses = self.refused.popleft()
        assert found in {Completion(command.id, command.opcode, status) for status in statuses}, f"{found}: {command}"
        self.counts[Status(found.status).name.lower()] += 1
