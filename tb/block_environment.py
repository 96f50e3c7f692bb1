"""What stands around a block with streams: a source or a sink at each, and what is expected at those that go out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Self

import cocotb
from amaranth.lib import data
from cocotb.triggers import RisingEdge

from xoe_tb import PAUSES, Beat, StreamSink, StreamSource, drive_struct, pack, reset, start, unpack

Layouts = Mapping[str, data.Layout]


class PayloadSink(StreamSink):
    """Gives each payload to a function, in the clock in which it is taken."""

    def __init__(self, dut: Any, name: str, layout: data.Layout, take: Callable[[Any], None]) -> None:
        super().__init__(dut, name)
        self._layout, self._take = layout, take

    def _on_beat(self, beat: Beat) -> None:
        self._take(unpack(self._layout, beat.data))


class Lookup:
    """Answers at ``name``, some clocks after a port asked for a connection, as the table of connections does."""

    def __init__(self, dut: Any, asked: str, name: str, layout: data.StructLayout, clocks: int = 2) -> None:
        self._dut, self._asked, self._name, self._layout = dut, getattr(dut, asked), name, layout
        self._clocks = clocks
        self.forget()

    def forget(self) -> None:
        self._found: deque[Mapping[str, Any]] = deque([{}] * (self._clocks - 1))
        self._shown: Mapping[str, Any] | None = None

    def on_clock(self, table: Sequence[Mapping[str, Any]]) -> None:
        found = self._found.popleft()
        if found != self._shown:
            drive_struct(self._dut, self._name, self._layout, found)
            self._shown = found
        self._found.append(dict(table[int(self._asked.value)]))


class BlockEnvironment:
    """Drives the streams of a block and compares what comes out with what is ``expected``, in order.

    A subclass may have ``on_x``, which is given what was sent to input ``x`` in the clock in which it is taken;
    ``take_x``, which is given each payload of output ``x``, instead of the comparison; ``on_clock``, for each clock
    that is not one of a reset; and ``forget``, for a reset.
    """

    def __init__(self, dut: Any, inputs: Layouts, outputs: Layouts) -> None:
        self.dut, self.rng, self.edge = dut, Random(cocotb.RANDOM_SEED), RisingEdge(dut.clk)
        self.inputs, self.outputs = inputs, outputs
        self.sources = {name: StreamSource(dut, name) for name in inputs}
        self.sinks = {name: PayloadSink(dut, name, layout, self._taker(name)) for name, layout in outputs.items()}
        self.forget()

    def forget(self) -> None:
        """A reset came."""
        self.waiting: dict[str, deque[Any]] = {name: deque() for name in self.inputs}
        self.expected: dict[str, deque[Any]] = {name: deque() for name in self.outputs}

    def _taker(self, name: str) -> Callable[[Any], None]:
        def compare(found: Any) -> None:
            assert self.expected[name], f"{name}: {found}, and nothing was expected"
            expected = self.expected[name].popleft()
            assert found == expected, f"{name}: {found}, not {expected}"

        return getattr(self, f"take_{name}", compare)

    def hold_back(self, pause: str) -> None:
        """Let every port pause in a pattern, each on its own."""
        for port in (*self.sources.values(), *self.sinks.values()):
            port.pause = PAUSES[pause](self.rng)

    def send(self, name: str, fields: Mapping[str, Any], item: Any = None) -> None:
        self.waiting[name].append(fields if item is None else item)
        self.sources[name].send(pack(self.inputs[name], fields))

    async def start(self) -> None:
        await start(self.dut)
        if self.inputs:
            cocotb.start_soon(self._run())

    @classmethod
    async def started(cls, dut: Any, pause: str = "never") -> Self:
        """One whose ports pause in a pattern, after a reset."""
        bench = cls(dut)
        bench.hold_back(pause)
        await bench.start()
        return bench

    async def reset(self) -> None:
        self.dut.rst.value = 1
        await self.edge
        self.forget()
        await reset(self.dut, self.rng.randint(1, 3))

    async def clocks(self, count: int) -> None:
        for _ in range(count):
            await self.edge

    def on_clock(self) -> None:
        """A clock has passed; values are those from before its edge."""

    async def _run(self) -> None:
        dut = self.dut
        ports = [
            (name, getattr(dut, f"{name}_tvalid"), getattr(dut, f"{name}_tready"), getattr(self, f"on_{name}", None))
            for name in self.inputs
        ]
        while True:
            await self.edge
            if dut.rst.value == 1:
                continue
            self.on_clock()
            for name, valid, ready, take in ports:
                if valid.value == 1 and ready.value == 1:
                    item = self.waiting[name].popleft()
                    if take is not None:
                        take(item)

    @property
    def is_quiet(self) -> bool:
        return not any(self.waiting.values()) and not any(self.expected.values())

    async def settle(self, clocks: int = 40) -> None:
        """Wait until all was taken and all has come that was expected, and see that nothing else does."""
        while not self.is_quiet:
            await self.edge
        await self.clocks(clocks)
        assert self.is_quiet
