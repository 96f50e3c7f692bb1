"""The NIC reset while frames go out and come in: afterwards all is as it was in the beginning."""

from __future__ import annotations

import dataclasses
from random import Random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from nic_stimulus import MEMORY, PAGES, SPACE, page_table, window_table
from xoe import Opcode
from xoe.command import Command
from xoe.config import NicConfig
from xoe.connection import Notice
from xoe.endpoint import Endpoint
from xoe.framer import Settings
from xoe.memory import Memory
from xoe.transport import TransportSettings
from xoe.wire import Status
from xoe_hdl.nic import Nic
from xoe_hdl.transport.connection_layouts import Action
from xoe_sim.predict import fill, mac, node
from xoe_tb import FrameSink, FrameSource, params, reset, start
from xoe_tb.endpoint_peer import EndpointPeer
from xoe_tb.nic import NicSide

CONFIG = NicConfig(**params()["config"])
OURS, PEER = (Settings(mac(nic), node(nic), mtu=CONFIG.mtu) for nic in range(2))
TRANSPORT = TransportSettings(open_timeout=500)
WRITE = Command(Opcode.WRITE, 0x55, 0, SPACE, PAGES[0][0] + 3, 100, bytes(range(100)))


class Bench:
    """The NIC, and an endpoint that is never reset."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.side = NicSide(dut, "", Nic(CONFIG), MEMORY)
        self.source = FrameSource(dut, "s_axis")
        self.sink = FrameSink(dut, "m_axis", gapless=True)
        self.side.configure(**dataclasses.asdict(OURS), **dataclasses.asdict(TRANSPORT))
        self.peer = Endpoint(CONFIG, PEER, TRANSPORT, Memory(MEMORY))
        fill(self.peer.translations, page_table(0))
        fill(self.peer.windows, window_table(0))
        self.peer.listen(0, mac(0), node(0), 0)
        self.ends = EndpointPeer(dut, self.peer, self.source.send)
        cocotb.start_soon(self._listen())

    async def _listen(self) -> None:
        while True:
            data, _ = await self.sink.recv()
            self.ends.take(data)

    async def set_up(self) -> None:
        await self.side.write_translations(page_table(1))
        await self.side.write_windows(window_table(1))

    async def open(self) -> None:
        self.side.connect(Action.OPEN, qp=0, mac=mac(1), node=node(1), remote_qp=0)
        assert await self.side.notice() == (0, Notice.OPENED)

    async def write(self, data: bytes, number: int) -> None:
        """A command that is carried out as after power-up."""
        self.side.commands.send(dataclasses.replace(WRITE, data=data, id=number))
        found = await self.side.completions.recv()
        assert (found.id, found.status) == (number, Status.DONE)
        assert self.peer.responder.memory.read(3, len(data)) == data


@cocotb.test(timeout_time=4, timeout_unit="ms")
async def reset_at_any_clock(dut) -> None:
    """Reset at clocks spread over commands, frames out, frames in and memory accesses, again and again."""
    rng, bench = Random(cocotb.RANDOM_SEED), Bench(dut)
    await start(dut)
    for _ in range(params()["rounds"]):
        await bench.set_up()
        if rng.random() < 0.8:  # else it is reset while it opens
            await bench.open()
        else:
            bench.side.connect(Action.OPEN, qp=0, mac=mac(1), node=node(1), remote_qp=0)
        for number in range(12):
            bench.side.commands.send(dataclasses.replace(WRITE, id=number))
            bench.peer.submit(Command(Opcode.WRITE, number, 0, SPACE, PAGES[0][0] + 64 * number, 64, rng.randbytes(64)))
        await ClockCycles(dut.clk, rng.randrange(1, 600))
        await reset(dut)
        await RisingEdge(dut.clk)
        for stream in ("m_axis", "m_axis_completion", "m_axis_notice", "m_axis_host", "m_axis_control"):
            assert getattr(dut, f"{stream}_tvalid").value == 0, f"{stream} goes on after a reset"
        for stream in (bench.side.completions, bench.side.notices):
            while not stream.empty():
                await stream.recv()
        assert int(dut.in_flight.value) == 0
        assert not any(bench.side.flat_counters().values()), "a counter survives a reset"
        bench.side.commands.send(dataclasses.replace(WRITE, id=0xEE))
        refused = await bench.side.completions.recv()
        assert refused.status == Status.TRANSLATION_FAULT, "a translation survives a reset"
        await bench.set_up()
        bench.side.commands.send(dataclasses.replace(WRITE, id=0xEF))
        refused = await bench.side.completions.recv()
        assert refused.status == Status.NOT_CONNECTED, "a connection survives a reset"
        await bench.open()
        await bench.write(rng.randbytes(100), 0xF0)
        await reset(dut)
