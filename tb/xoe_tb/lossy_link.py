"""A cable between two simulated NICs, with a delay, and with faults."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from xoe.faults import Injector

from .frame import FrameSink, FrameSource


class LossyLink:
    """One direction: frames that leave ``transmit`` come in at ``receive``, as the injector has them.

    A frame comes in ``delay`` clocks after its last beat has left, or later, behind those that are coming in already.
    """

    def __init__(self, dut: Any, transmit: str, receive: str, injector: Injector, delay: int = 0) -> None:
        self.injector, self.delay = injector, delay
        self._dut, self._clock = dut, 0
        self._sink, self._source = FrameSink(dut, transmit), FrameSource(dut, receive)
        cocotb.start_soon(self._carry())

    async def _carry(self) -> None:
        edge = RisingEdge(self._dut.clk)
        while True:
            await edge
            self._clock += 1
            while not self._sink.empty():
                data, _ = await self._sink.recv()
                self.injector.send(data, self._clock + self.delay)
            if self.injector.deadline is not None and self.injector.deadline <= self._clock:
                for data in self.injector.receive(self._clock):
                    if data:
                        self._source.send(data)
