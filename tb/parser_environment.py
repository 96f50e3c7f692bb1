"""The parser under test: sources, sinks and the model that says what must come out."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from lossless_parser import COUNTERS
from parser_stimulus import MAC, NODE
from xoe.config import NicConfig
from xoe.parser import Outcome, Parser
from xoe.wire import ETHERTYPE, GRID, Kind
from xoe_hdl.layouts import CFG, counters
from xoe_tb import FrameSink, FrameSource, OperationSink, drive_struct, params, read_struct, reset, start

SETTLED = 40  # clocks after which nothing more can come
STREAMS = ("operations", "host", "control")


class Environment:
    """Sends frames to the parser and its model, and compares all that comes out, and the counters."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.rng = Random(cocotb.RANDOM_SEED)
        self.config = NicConfig(**params()["config"])
        self.width = self.config.data_width
        self.most = (self.config.mtu - 26) // GRID * GRID  # bytes of operations in the largest frame
        self.model = Parser(self.config, MAC, NODE, kinds=frozenset(Kind))
        self.source = FrameSource(dut, "s_axis")
        self.sinks = {name: FrameSink(dut, name) for name in STREAMS[1:]} | {
            "operations": OperationSink(dut, "operations")
        }
        self.expected: dict[str, list[Any]] = {name: [] for name in STREAMS}
        self.edge = RisingEdge(dut.clk)
        drive_struct(dut, "cfg", CFG, {"mac": MAC, "node": NODE, "ethertype": ETHERTYPE, "mtu": self.config.mtu})

    async def start(self) -> None:
        """Clock and reset."""
        await start(self.dut)

    async def restart(self) -> None:
        """Reset, whatever is under way, and forget it."""
        await reset(self.dut)
        for name, sink in self.sinks.items():
            self.expected[name].clear()
            while not sink.empty():
                await sink.recv()
        self.model = Parser(self.config, MAC, NODE, kinds=frozenset(Kind))

    def send(self, data: bytes, bad: bool = False) -> Outcome:
        """Queue a frame; what the model says becomes of it."""
        self.source.send(data, bad)
        parsed = self.model.parse(data, bad)
        if parsed.outcome is Outcome.ACCEPTED and parsed.route is not None:
            route = dataclasses.asdict(parsed.route)
            self.expected["operations"] += [(operation, route) for operation in parsed.operations]
        elif parsed.outcome in (Outcome.HOST, Outcome.CONTROL):
            self.expected[parsed.outcome.name.lower()].append((data, False))
        return parsed.outcome

    async def clocks(self, count: int) -> None:
        """Wait."""
        for _ in range(count):
            await self.edge

    async def check(self) -> None:
        """Wait for all that must come; nothing else may."""
        for name, expected in self.expected.items():
            for number, item in enumerate(expected):
                found = await self.sinks[name].recv()
                assert found == item, f"{name} {number}: {found} instead of {item}"
            expected.clear()
        await self.source.drain()
        await self.clocks(SETTLED)
        for name, sink in self.sinks.items():
            assert sink.empty(), f"{name}: more came than should"
        self.check_counters()

    def check_counters(self) -> None:
        """The counters as the model has them, wrapped."""
        layout = counters(*COUNTERS, width=self.config.counter_width)
        found = read_struct(self.dut, "counters", layout)
        expected = {outcome.name.lower(): count for outcome, count in self.model.counters.items()}
        expected["operation_malformed"] = self.model.operation_malformed
        wrapped = {name: count % (1 << self.config.counter_width) for name, count in expected.items()}
        assert found == wrapped, f"counters: {found} instead of {wrapped}"
