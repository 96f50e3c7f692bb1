"""The model of a NIC with transport as the other end of a simulated NIC's wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from xoe.command import Completion
from xoe.endpoint import Endpoint
from xoe.faults import Injector


class EndpointPeer:
    """Lets time pass for an endpoint, and gives it the frames that ``take`` is told of; takes its ``completions``.

    Args:
        dut: its ``clk`` is the endpoint's clock.
        endpoint: the model.
        send: is given each frame that comes out of the endpoint.
        to_dut, from_dut: faults on the way; none if left out.
    """

    def __init__(
        self,
        dut: Any,
        endpoint: Endpoint,
        send: Callable[[bytes], None],
        to_dut: Injector | None = None,
        from_dut: Injector | None = None,
    ) -> None:
        self.endpoint, self.now = endpoint, 0
        self.completions: list[Completion] = []
        self._dut, self._send = dut, send
        self._to_dut, self._from_dut = to_dut or Injector(), from_dut or Injector()
        cocotb.start_soon(self._run())

    def take(self, data: bytes) -> None:
        """A frame has left the simulated NIC."""
        self._from_dut.send(data, self.now)

    async def _run(self) -> None:
        edge = RisingEdge(self._dut.clk)
        while True:
            await edge
            self.now += 1
            while self.endpoint.completions:
                self.completions.append(self.endpoint.completions.popleft())
            for data in self._from_dut.receive(self.now):
                self.endpoint.receive(data, self.now)
            for data in self.endpoint.transmit(self.now):
                self._to_dut.send(data, self.now)
            for data in self._to_dut.receive(self.now):
                if data:
                    self._send(data)
