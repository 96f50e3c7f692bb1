"""Commands and completions: what a user of a NIC sends and gets, see ``xoe_hdl.layouts``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Shape
from cocotb.utils import get_sim_time

from xoe_hdl.layouts import command_beat, completion_beat

from .layout import pack, unpack
from .stream import Beat, Pause, StreamMonitor, StreamSink, StreamSource

_COMMAND_BITS = Shape.cast(command_beat(8)["data"].shape).width - 8
_COMPLETION_BITS = Shape.cast(completion_beat(8)["data"].shape).width - 8


@dataclass(frozen=True)
class Completion:
    """How a command ended, and the data it returned."""

    id: int
    opcode: int
    status: int
    length: int
    data: bytes


class CommandSource(StreamSource):
    """Sends commands; ``taken`` has the time in ns at which the first beat of each was taken, by its id."""

    def __init__(self, dut: Any, name: str, pause: Pause | None = None) -> None:
        super().__init__(dut, name, pause)
        width = len(self.bus.tdata) - _COMMAND_BITS
        self._bytes = width // 8
        self._layout = command_beat(width)["data"].shape
        self._id = self._layout["id"]
        self._is_first = True
        self.taken: dict[int, int] = {}

    def send(self, data: bytes = b"", **fields: int) -> None:
        """Queue a command, and return at once: its data, and the fields of ``command_beat``; those left out are 0."""
        common = pack(self._layout, fields)
        chunks = [data[at : at + self._bytes] for at in range(0, len(data), self._bytes)] or [b""]
        beats = [Beat(common | int.from_bytes(chunk, "little"), last=0) for chunk in chunks]
        beats[-1] = beats[-1]._replace(last=1)
        self.append(beats)

    async def _send_beat(self, beat: Beat) -> bool:
        is_taken = await super()._send_beat(beat)
        if is_taken and self._is_first:
            number = beat.data >> self._id.offset & (1 << self._id.width) - 1
            self.taken[number] = round(get_sim_time("ns"))
        self._is_first = not is_taken or bool(beat.last)
        return is_taken


class CompletionMonitor(StreamMonitor):
    """Gathers completions."""

    def __init__(self, dut: Any, name: str, *arguments: Any) -> None:
        super().__init__(dut, name, *arguments)
        width = len(self.bus.tdata) - _COMPLETION_BITS
        self._bytes = width // 8
        self._layout = completion_beat(width)["data"].shape
        self._parts: list[bytes] = []

    def _on_beat(self, beat: Beat) -> None:
        self._parts.append((beat.data & (1 << 8 * self._bytes) - 1).to_bytes(self._bytes, "little"))
        if beat.last:
            fields, data = unpack(self._layout, beat.data), b"".join(self._parts)
            self._parts = []
            del fields["data"]
            self._recv(Completion(data=data, **fields))

    def _drop(self) -> None:
        super()._drop()
        self._parts = []


class CompletionSink(CompletionMonitor, StreamSink):
    """Takes completions; ``await recv()`` gives a ``Completion``, its data whole beats."""

    def __init__(self, dut: Any, name: str, pause: Pause | None = None) -> None:
        super().__init__(dut, name, pause)
