"""Ends of a cable that are used alike: a simulated NIC of a ``xoe_sim.link``, or the model of one."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from xoe.command import Command, Completion
from xoe.connection import Notice, State
from xoe.endpoint import Endpoint
from xoe.faults import Injector
from xoe.framer import GATHER
from xoe.memory import Memory
from xoe.network import WIRE_OVERHEAD
from xoe.pair import MACS, NODES, PEERS, SIZE_LOG2, remote_qp, settings, translations, windows
from xoe.transport import TransportSettings
from xoe_hdl.nic import Nic
from xoe_hdl.transport.connection_layouts import Action

from .frame import FrameSink, FrameSource
from .nic import NicSide

RESET_CLOCKS = 3


class _Ports:
    """The ports of one NIC of several: ``x`` is ``n0_x`` of the top, but for the clock."""

    def __init__(self, dut: Any, prefix: str) -> None:
        self._dut, self._prefix, self.clk = dut, prefix, dut.clk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dut, name if name.startswith("_") else self._prefix + name)

    def __dir__(self) -> list[str]:
        return [name.removeprefix(self._prefix) for name in dir(self._dut) if name.startswith(self._prefix)]


class HardwareEnd:
    """A simulated NIC with its memory and its user.

    ``completions`` and ``notices`` are for a user to take from, after ``step``. While ``is_ready`` is not set, which is
    for some clocks after a reset, nothing may be asked for.

    Args:
        dut: the top of ``xoe_sim.link``.
        index: of the NIC in it.
        name: "A" or "B".
        nic: the block it was made from.
        transport: the transport's settings.
        timeout: of commands, clocks; 0: none.
        gather: see ``xoe.framer.Settings``.
    """

    def __init__(
        self,
        dut: Any,
        index: int,
        name: str,
        nic: Nic,
        transport: TransportSettings,
        timeout: int = 0,
        gather: int = GATHER,
    ) -> None:
        ports = _Ports(dut, f"n{index}_")
        self.name, self.queue_pairs = name, nic.config.queue_pairs
        self.side = NicSide(ports, "", nic, 1 << SIZE_LOG2, watches=False)
        self.completions: deque[Completion] = deque()
        self.notices: deque[tuple[int, Notice]] = deque()
        self.is_ready = False
        self._ports, self._edge = ports, RisingEdge(dut.clk)
        self._sink, self._source = FrameSink(ports, "m_axis", gapless=True), FrameSource(ports, "s_axis")
        self.side.configure(**asdict(settings(name, nic.config.mtu, gather)), **asdict(transport), timeout=timeout)

    async def reset(self) -> None:
        """Reset the NIC, and write its tables again; what was asked for and has not ended never does."""
        self.is_ready = False
        self.completions.clear()
        self.notices.clear()
        self._ports.rst.value = 1
        for _ in range(RESET_CLOCKS):
            await self._edge
        for source in (self.side.commands, self._source):
            await source.drain()
        self._ports.rst.value = 0
        await self._edge
        for taken in (self.side.completions, self.side.notices, self._sink):
            while not taken.empty():
                await taken.recv()
        await self.side.write_translations(translations(self.name, self.queue_pairs))
        await self.side.write_windows(windows(self.name))
        self.is_ready = True

    async def step(self, now: int) -> list[bytes]:
        """Take what has come out since; the frames."""
        if not self.is_ready:
            return []
        while not self.side.completions.empty():
            self.completions.append(await self.side.completions.recv())
        while not self.side.notices.empty():
            self.notices.append(await self.side.notice())
        frames = []
        while not self._sink.empty():
            frames.append((await self._sink.recv())[0])
        return frames

    def receive(self, data: bytes, now: int) -> None:
        """A frame comes in."""
        if not self._ports.rst.value:
            self._source.send(data)

    def submit(self, command: Command) -> None:
        """Ask for something."""
        self.side.commands.send(command)

    def join(self, qp: int) -> None:
        """Connect a queue pair to its other end: A opens, B listens."""
        peer = PEERS[self.name]
        there = {
            "mac": MACS[peer],
            "node": NODES[peer],
            "remote_qp": remote_qp(self.name, qp, self.queue_pairs),
        }
        self.side.connect(Action.OPEN if self.name == "A" else Action.LISTEN, qp=qp, **there)

    def close(self, qp: int) -> None:
        """Close a queue pair's connection."""
        self.side.connect(Action.CLOSE, qp=qp)

    def stall(self, is_stalled: bool) -> None:
        """Let memory take and give nothing, or go on."""
        ram = self.side.ram
        for channel in (ram.write_if.aw_channel, ram.write_if.w_channel, ram.read_if.ar_channel):
            channel.pause = is_stalled

    def hold(self, is_held: bool) -> None:
        """Let the user take no completion, or go on."""
        self.side.completions.pause = lambda: is_held

    def read(self, address: int, size: int) -> bytes:
        """What memory holds."""
        return self.side.ram.read(address, size)


class ModelEnd:
    """The golden model as an end; see ``HardwareEnd``.

    Args:
        name: "A" or "B".
        nic: has the parameters, and the first PSN and count of credits.
        transport: the transport's settings.
        timeout: of commands, clocks; 0: none.
    """

    is_ready = True

    def __init__(self, name: str, nic: Nic, transport: TransportSettings, timeout: int = 0) -> None:
        config = nic.config
        self.name, self.queue_pairs = name, config.queue_pairs
        self.memory = Memory(1 << SIZE_LOG2)
        self.endpoint = Endpoint(
            config,
            settings(name, config.mtu),
            transport,
            self.memory,
            timeout=timeout,
            first_seq=nic.first_seq,
            first_credit=nic.first_credit,
        )
        self._bytes = config.data_width // 8
        self._now = self._free_at = 0
        self._held: bool = False

    async def reset(self) -> None:
        """Reset it, and write its tables again."""
        self.endpoint.reset(self._now)
        for index, page in enumerate(translations(self.name, self.queue_pairs)):
            self.endpoint.translations.write(index, page)
        for index, window in enumerate(windows(self.name)):
            self.endpoint.windows.write(index, window)

    @property
    def completions(self) -> deque[Completion]:
        """For the user to take from."""
        return deque() if self._held else self.endpoint.completions

    @property
    def notices(self) -> deque[tuple[int, Notice]]:
        """For the user to take from."""
        return self.endpoint.notices

    async def step(self, now: int) -> list[bytes]:
        """Frames to send: one at a time, as fast as the data path would carry them."""
        self._now = now
        if now < self._free_at:
            return []
        frames = self.endpoint.transmit(now, 1)
        for data in frames:
            self._free_at = now + -(-(len(data) + WIRE_OVERHEAD) // self._bytes)
        return frames

    def receive(self, data: bytes, now: int) -> None:
        """A frame comes in."""
        self.endpoint.receive(data, now)

    def submit(self, command: Command) -> None:
        """Ask for something."""
        self.endpoint.submit(command)

    def join(self, qp: int) -> None:
        """Connect a queue pair to its other end, unless it is: A opens, B listens."""
        peer, state = PEERS[self.name], self.endpoint.state(qp)
        there = MACS[peer], NODES[peer], remote_qp(self.name, qp, self.queue_pairs)
        if self.name == "A" and state in (State.CLOSED, State.LISTENING):
            self.endpoint.connect(qp, *there, self._now)
        if self.name == "B" and state is State.CLOSED:
            self.endpoint.listen(qp, *there)

    def close(self, qp: int) -> None:
        """Close a queue pair's connection."""
        self.endpoint.close(qp, self._now)

    def stall(self, is_stalled: bool) -> None:
        """Let the responder take nothing, or go on."""
        self.endpoint.is_stalled = is_stalled

    def hold(self, is_held: bool) -> None:
        """Let the user take no completion, or go on."""
        self._held = is_held

    def read(self, address: int, size: int) -> bytes:
        """What memory holds."""
        return self.memory.read(address, size)


End = HardwareEnd | ModelEnd


def make_ends(dut: Any, kinds: Sequence[str], nic: Nic, transport: TransportSettings, **options: int) -> dict[str, End]:
    """Both ends by name, each "hardware" or "model"; ``options`` are those of the classes. All is in reset at first.

    ``dut`` is the top of ``xoe_sim.link``; a NIC of it whose place a model takes stays in reset.
    """
    dut.rst.value = 0
    ends: dict[str, End] = {}
    for index, (name, kind) in enumerate(zip(PEERS, kinds, strict=True)):
        getattr(dut, f"n{index}_rst").value = 1
        if kind == "hardware":
            ends[name] = HardwareEnd(dut, index, name, nic, transport, **options)
        else:
            ends[name] = ModelEnd(name, nic, transport, **options)
    return ends


class Cable:
    """Carries frames between the ends A and B, and counts the clocks.

    Args:
        dut: has the clock.
        ends: by name.
        injectors: of faults, by the name of the end that sends.
        delay: clocks from the end of a frame to its beginning at the other end.
    """

    def __init__(self, dut: Any, ends: dict[str, End], injectors: dict[str, Injector], delay: int = 0) -> None:
        self.now = 0
        self.ends, self.injectors, self.delay = ends, injectors, delay
        self._edge = RisingEdge(dut.clk)

    async def step(self) -> None:
        """Let a clock pass, and take what has come out of both ends."""
        await self._edge
        self.now += 1
        for name, end in self.ends.items():
            for data in await end.step(self.now):
                self.injectors[name].send(data, self.now + self.delay)
        for name, injector in self.injectors.items():
            if injector.deadline is not None and injector.deadline <= self.now:
                for data in injector.receive(self.now):
                    if data:
                        self.ends[PEERS[name]].receive(data, self.now)

    async def reset(self) -> None:
        """Reset both ends, at first."""
        tasks = [cocotb.start_soon(end.reset()) for end in self.ends.values()]
        for task in tasks:
            await task
