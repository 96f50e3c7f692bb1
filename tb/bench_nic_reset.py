"""The NIC reset while frames go out and come in: afterwards all is as it was in the beginning."""

from __future__ import annotations

import dataclasses
from random import Random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from nic_stimulus import MEMORY, PAGES, SPACE, page_table, window_table
from xoe import Frame, FrameHeader, Opcode, Operation
from xoe.command import Command, Completion
from xoe.config import NicConfig
from xoe.framer import Framer, Settings
from xoe.parser import Route
from xoe.wire import RESPONSE_BIT, TrafficClass
from xoe_hdl.nic import Nic
from xoe_sim.predict import mac, node
from xoe_tb import FrameSink, FrameSource, params, reset, start
from xoe_tb.nic import NicSide

CONFIG = NicConfig(**params()["config"])
OURS = Settings(mac(0), node(0), mtu=CONFIG.mtu)
PEER = Framer(Settings(mac(1), node(1), mtu=CONFIG.mtu))
ROUTE = Route(mac(0), node(0), 0, 1, TrafficClass.REQUEST)
WRITE = Command(Opcode.WRITE, 0x55, 0, SPACE, PAGES[0][0] + 3, 100, bytes(range(100)))


class Bench:
    """The NIC, and what the test talks to it with."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.side = NicSide(dut, "", Nic(CONFIG), MEMORY)
        self.source = FrameSource(dut, "s_axis")
        self.sink = FrameSink(dut, "m_axis", gapless=True)
        self.side.configure(**dataclasses.asdict(OURS))

    async def set_up(self) -> None:
        await self.side.write_translations(page_table(1))
        await self.side.write_windows(window_table(1))

    async def write_and_answer(self) -> None:
        """One command, its frame, its answer: as after power-up, but for the tag."""
        self.side.commands.send(WRITE)
        data, _ = await self.sink.recv()
        frame = Frame.decode(data)
        (operation,) = frame.operations
        header = FrameHeader(dst_node=node(1), src_node=node(0), dst_qp=1, length=frame.header.length)
        assert frame.header == header, "the first frame has sequence number 0"
        assert operation == Operation(Opcode.WRITE, operation.tag, 3, 100, WRITE.data)
        answer = Operation(Opcode.WRITE | RESPONSE_BIT, operation.tag, 0, 100)
        self.source.send(PEER.frame([answer], dataclasses.replace(ROUTE, traffic_class=TrafficClass.RESPONSE)))
        assert await self.side.completions.recv() == Completion(WRITE.id, Opcode.WRITE, 0)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def reset_at_any_clock(dut) -> None:
    """Reset at clocks spread over commands, frames out, frames in and memory accesses, again and again."""
    rng, bench = Random(cocotb.RANDOM_SEED), Bench(dut)
    await start(dut)
    for _ in range(params()["rounds"]):
        await bench.set_up()
        for number in range(12):
            bench.side.commands.send(dataclasses.replace(WRITE, id=number))
            write = Operation(Opcode.WRITE, number, 64 * number, 64, rng.randbytes(64))
            bench.source.send(PEER.frame([write] * 3, ROUTE))
        await ClockCycles(dut.clk, rng.randrange(1, 300))
        await reset(dut)
        await RisingEdge(dut.clk)
        for stream in ("m_axis", "m_axis_completion", "m_axis_host", "m_axis_control"):
            assert getattr(dut, f"{stream}_tvalid").value == 0, f"{stream} goes on after a reset"
        for stream in (bench.sink, bench.side.completions):
            while not stream.empty():
                await stream.recv()
        assert int(dut.in_flight.value) == 0
        found = {count for block in bench.side.counters().values() for count in block.values()}
        assert found == {0}, "a counter survives a reset"
        bench.side.commands.send(dataclasses.replace(WRITE, id=0xEE))
        refused = await bench.side.completions.recv()
        assert refused.status == 1, "a translation survives a reset"
        await bench.set_up()
        await bench.write_and_answer()
        await reset(dut)
