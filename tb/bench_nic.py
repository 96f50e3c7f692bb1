"""The NIC under pyuvm: its user and its wire as agents, an endpoint as its peer, the golden models as the predictor.

The user's commands, the peer's commands and frames that nobody can use run at the same time. The two NICs touch
different memory, so that what the models say does not depend on who comes first.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable
from random import Random

import cocotb
import pyuvm
from cocotb.triggers import ClockCycles
from pyuvm import (
    uvm_agent,
    uvm_analysis_port,
    uvm_component,
    uvm_driver,
    uvm_env,
    uvm_monitor,
    uvm_sequence,
    uvm_sequence_item,
    uvm_sequencer,
    uvm_subscriber,
    uvm_test,
)

from nic_stimulus import MEMORY, QPS, noise_frame, page_table, random_command, window_table
from xoe import Frame
from xoe.command import Command, Completion
from xoe.config import NicConfig
from xoe.connection import Notice
from xoe.endpoint import Endpoint
from xoe.framer import Settings
from xoe.memory import Memory
from xoe.nic import Nic as GoldenNic
from xoe.nic import exchange
from xoe.parser import Outcome, Parser
from xoe.transport import TransportSettings
from xoe.wire import Kind
from xoe_hdl.nic import Nic
from xoe_hdl.transport.connection_layouts import Action
from xoe_sim.predict import fill, mac, node
from xoe_tb import PAUSES, FrameSink, FrameSource, never, params, start
from xoe_tb.endpoint_peer import EndpointPeer
from xoe_tb.nic import NicSide

CONFIG = NicConfig(**params()["config"])
TRANSPORT = TransportSettings()
PATIENCE = 20_000  # clocks without a completion that are called a hang
OURS, PEER = 0, 1


def settings(nic: int) -> Settings:
    """What the registers hold; frames of the peer come without a tag."""
    return Settings(mac(nic), node(nic), mtu=CONFIG.mtu, tagged=nic == OURS, vid=5, pcp=(1, 2, 3, 4, 0, 0, 0, 0))


def golden(nic: int) -> GoldenNic:
    """A model NIC with its pages and windows."""
    made = GoldenNic(CONFIG, settings(nic), Memory(MEMORY))
    fill(made.translations, page_table(1 - nic))
    fill(made.windows, window_table(1 - nic))
    return made


def by_id(completions: Iterable[Completion]) -> list[Completion]:
    """Completions in the order of their commands: refused ones overtake the others."""
    return sorted(completions, key=lambda completion: completion.id)


class CommandItem(uvm_sequence_item):
    """A command for the NIC."""

    def __init__(self, command: Command) -> None:
        super().__init__("command")
        self.command = command


class FrameItem(uvm_sequence_item):
    """A frame for the NIC, and the MAC's mark."""

    def __init__(self, data: bytes, bad: bool = False) -> None:
        super().__init__("frame")
        self.data, self.bad = data, bad


class ItemDriver(uvm_driver):
    """Hands each item to ``drive``, and tells who listens."""

    def __init__(self, name: str, parent: uvm_component, drive) -> None:
        super().__init__(name, parent)
        self.drive = drive
        self.driven = uvm_analysis_port("driven", self)

    async def run_phase(self) -> None:
        while True:
            item = await self.seq_item_port.get_next_item()
            self.driven.write(item)
            self.drive(item)
            self.seq_item_port.item_done()


class StreamMonitor(uvm_monitor):
    """Tells who listens what a sink takes."""

    def __init__(self, name: str, parent: uvm_component, sink) -> None:
        super().__init__(name, parent)
        self.sink = sink
        self.seen = uvm_analysis_port("seen", self)

    async def run_phase(self) -> None:
        while True:
            self.seen.write(await self.sink.recv())


class Agent(uvm_agent):
    """A sequencer and a driver for one direction, a monitor for the other."""

    def __init__(self, name: str, parent: uvm_component, drive, sink) -> None:
        super().__init__(name, parent)
        self._drive, self._sink = drive, sink

    def build_phase(self) -> None:
        self.sequencer = uvm_sequencer("sequencer", self)
        self.driver = ItemDriver("driver", self, self._drive)
        self.monitor = StreamMonitor("monitor", self, self._sink)

    def connect_phase(self) -> None:
        self.driver.seq_item_port.connect(self.sequencer.seq_item_export)


class Peer(uvm_subscriber):
    """The endpoint at the other end: takes every frame of ours, and has frames to send.

    Raises AssertionError on a frame that is not sound.
    """

    def __init__(self, name: str, parent: uvm_component) -> None:
        super().__init__(name, parent)
        self.nic = Endpoint(CONFIG, settings(PEER), TRANSPORT, Memory(MEMORY))
        fill(self.nic.translations, page_table(OURS))
        fill(self.nic.windows, window_table(OURS))
        self.to_send: deque[bytes] = deque()
        self.ends = EndpointPeer(cocotb.top, self.nic, self.to_send.append)

    def write(self, seen: tuple[bytes, bool]) -> None:
        data, bad = seen
        assert not bad
        Frame.decode(data)
        self.ends.take(data)


class Predictor(uvm_component):
    """Two golden NICs that are told the same."""

    def __init__(self, name: str, parent: uvm_component) -> None:
        super().__init__(name, parent)
        self.ours, self.peer = golden(OURS), golden(PEER)
        self.completions: dict[int, Completion] = {}
        self.host: deque[bytes] = deque()
        self.control: deque[bytes] = deque()
        self.parser = Parser(CONFIG, mac(OURS), node(OURS), kinds=frozenset(Kind))

    def predict(self, command: Command, of_peer: bool = False) -> None:
        """What a command of ours, or of the peer's, leads to."""
        (self.peer if of_peer else self.ours).submit(command)
        exchange(self.ours, self.peer)
        while self.ours.completions:
            completion = self.ours.completions.popleft()
            self.completions[completion.id] = completion

    def sort(self, item: FrameItem) -> None:
        """What a frame that is sent to us leads to, its operations apart."""
        outcome = self.parser.parse(item.data, item.bad).outcome
        if outcome is Outcome.HOST:
            self.host.append(item.data)
        if outcome is Outcome.CONTROL:
            self.control.append(item.data)


class Scoreboard(uvm_component):
    """Holds what comes out against the prediction."""

    def __init__(self, name: str, parent: uvm_component, predictor: Predictor, side: NicSide, peer: Peer) -> None:
        super().__init__(name, parent)
        self.predictor, self.side, self.peer = predictor, side, peer
        self.completed = 0

    def complete(self, found: Completion) -> None:
        expected = self.predictor.completions.pop(found.id, None)
        assert found == expected, f"expected {expected}, found {found}"
        self.completed += 1

    def check_host(self, found: tuple[bytes, bool]) -> None:
        assert found == (self.predictor.host.popleft(), False)

    def check_control(self, found: tuple[bytes, bool]) -> None:
        assert found == (self.predictor.control.popleft(), False)

    def check_phase(self) -> None:
        """What can be said only in the end: all came, memories and counters are right."""
        predictor, counters = self.predictor, self.side.counters()
        assert not predictor.completions, f"never completed: {predictor.completions}"
        assert not predictor.host, f"{len(predictor.host)} frames did not reach the host"
        assert not predictor.control, f"{len(predictor.control)} control frames did not come out"
        assert by_id(self.peer.ends.completions) == by_id(predictor.peer.completions)
        assert self.side.ram.read(0, MEMORY) == predictor.ours.responder.memory.read(0, MEMORY)
        assert self.peer.nic.responder.memory.read(0, MEMORY) == predictor.peer.responder.memory.read(0, MEMORY)
        mask = (1 << CONFIG.counter_width) - 1
        expected = {outcome.name.lower(): count & mask for outcome, count in predictor.parser.counters.items()}
        found = {name: count for name, count in counters["ingress"]["parser"].items() if name in expected}
        assert found == {name: expected[name] for name in found}
        assert set(found) >= {outcome.name.lower() for outcome in Outcome if outcome >= Outcome.BAD}


class Subscriber(uvm_subscriber):
    """Hands what it hears to a function."""

    def __init__(self, name: str, parent: uvm_component, write) -> None:
        super().__init__(name, parent)
        self.write = self.analysis_export.write_fn = write


class NicEnv(uvm_env):
    """The NIC's user and wire, its peer, and the score."""

    def build_phase(self) -> None:
        dut, rng = cocotb.top, Random(cocotb.RANDOM_SEED)
        self.side = NicSide(dut, "", Nic(CONFIG), MEMORY)
        pause = PAUSES[params()["pause"]]
        source = FrameSource(dut, "s_axis", pause(rng))
        sink = FrameSink(dut, "m_axis", pause(rng), gapless=True)
        for stream in (self.side.completions, self.side.host, self.side.control):
            stream.pause = pause(rng)
        self.user = Agent("user", self, lambda item: self.side.commands.send(item.command), self.side.completions)
        self.wire = Agent("wire", self, lambda item: source.send(item.data, item.bad), sink)
        self.host = StreamMonitor("host", self, self.side.host)
        self.control = StreamMonitor("control", self, self.side.control)
        self.peer = Peer("peer", self)
        self.predictor = Predictor("predictor", self)
        self.score = Scoreboard("score", self, self.predictor, self.side, self.peer)

    def connect_phase(self) -> None:
        self.wire.monitor.seen.connect(self.peer.analysis_export)
        listeners = {
            "commands": (self.user.driver.driven, lambda item: self.predictor.predict(item.command)),
            "frames": (self.wire.driver.driven, self.predictor.sort),
            "completions": (self.user.monitor.seen, self.score.complete),
            "host_frames": (self.host.seen, self.score.check_host),
            "control_frames": (self.control.seen, self.score.check_control),
        }
        for name, (port, write) in listeners.items():
            port.connect(Subscriber(name, self, write).analysis_export)


class UserSequence(uvm_sequence):
    """Random commands of the user, ids from 0 on."""

    def __init__(self, count: int, rng: Random) -> None:
        super().__init__("user")
        self.count, self.rng = count, rng

    async def body(self) -> None:
        for number in range(self.count):
            item = CommandItem(dataclasses.replace(random_command(self.rng), id=number))
            await self.start_item(item)
            await self.finish_item(item)


class WireSequence(uvm_sequence):
    """What the peer has to send, commands of its own, and noise in between; goes on until it is cancelled."""

    def __init__(self, env: NicEnv, commands: int, rng: Random) -> None:
        super().__init__("wire")
        self.env, self.left, self.rng = env, commands, rng

    async def body(self) -> None:
        peer, queue = self.env.peer, self.env.peer.to_send
        while True:
            if self.left and peer.nic.notices and self.rng.random() < 0.3:
                self.left -= 1
                command = dataclasses.replace(random_command(self.rng, qps=1), id=self.left)
                self.env.predictor.predict(command, of_peer=True)
                peer.nic.submit(command)
            if self.rng.random() < 0.1:
                await self._send(*noise_frame(self.rng, mac(OURS), mac(PEER)))
            if queue:
                await self._send(queue.popleft())
            await ClockCycles(cocotb.top.clk, self.rng.randint(1, 40))

    async def _send(self, data: bytes, bad: bool = False) -> None:
        item = FrameItem(data, bad)
        await self.start_item(item)
        await self.finish_item(item)


@pyuvm.test()
class NicTest(uvm_test):
    """The user, the peer and noise, all at once."""

    def build_phase(self) -> None:
        self.env = NicEnv("env", self)

    async def run_phase(self) -> None:
        self.raise_objection()
        env, count, rng = self.env, params()["count"], Random(cocotb.RANDOM_SEED + 1)
        env.side.configure(**dataclasses.asdict(settings(OURS)), **dataclasses.asdict(TRANSPORT))
        await start(cocotb.top)
        await env.side.write_translations(page_table(PEER))
        await env.side.write_windows(window_table(PEER))
        for qp in range(QPS):
            env.peer.nic.listen(qp, mac(OURS), node(OURS), qp)
            env.side.connect(Action.OPEN, qp=qp, mac=mac(PEER), node=node(PEER), remote_qp=qp)
        wire = cocotb.start_soon(WireSequence(env, count // 2, rng).start(env.wire.sequencer))
        for _ in range(QPS):
            assert (await env.side.notice())[1] is Notice.OPENED
        await UserSequence(count, rng).start(env.user.sequencer)
        await self._until(lambda: env.score.completed == count)
        await self._until(lambda: len(env.peer.ends.completions) == count // 2)
        wire.cancel()
        for stream in (env.side.host, env.side.control):
            stream.pause = never()
        await ClockCycles(cocotb.top.clk, 500)
        self.drop_objection()

    async def _until(self, is_done) -> None:
        """Wait, for as long as something goes on."""
        env = self.env
        while not is_done():
            before = env.score.completed, len(env.peer.ends.completions)
            await ClockCycles(cocotb.top.clk, PATIENCE)
            assert is_done() or before != (env.score.completed, len(env.peer.ends.completions)), (
                f"nothing completed for {PATIENCE} clocks; still expected: {list(env.predictor.completions)}, "
                f"in flight {int(cocotb.top.in_flight.value)}, counters {env.side.counters()}, "
                f"peer {env.peer.nic.counters}, waiting {env.peer.nic.pairs._pairs[1]._inbox}"
            )
