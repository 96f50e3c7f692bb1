"""What stands around a NIC in a bench: its user, its memory, its registers, and an ear on its wire."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiBus, AxiRam

from xoe.cam import CamError, Page
from xoe.connection import Notice
from xoe_hdl.layouts import CFG
from xoe_hdl.nic import Nic
from xoe_hdl.transport.connection_layouts import Action

from .bench import drive_struct, read_struct
from .command import CommandSource, CompletionSink
from .frame import FrameMonitor, FrameSink
from .layout import pack, unpack
from .stream import Beat, StreamSink, StreamSource


class WireMonitor(FrameMonitor):
    """Watches frames leave, and that none has a gap.

    ``frames`` has each frame with the times in ns of its first and its last beat; ``beats`` counts.
    """

    def __init__(self, dut: Any, name: str) -> None:
        super().__init__(dut, name, gapless=True)
        self.frames: list[tuple[bytes, int, int]] = []
        self.beats = 0
        self._begun = 0

    def _on_beat(self, beat: Any) -> None:
        if not self._parts:
            self._begun = round(get_sim_time("ns"))
        self.beats += 1
        super()._on_beat(beat)

    def _recv(self, transaction: Any) -> None:
        self.frames.append((transaction[0], self._begun, round(get_sim_time("ns"))))


class TimedCommandSource(CommandSource):
    """Sends commands; ``taken`` has, by its id, the time in ns at which the first beat of each was taken."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.taken: dict[int, int] = {}
        self._is_first = True

    async def _send_beat(self, beat: Beat) -> bool:
        is_taken = await super()._send_beat(beat)
        if is_taken and self._is_first:
            self.taken[unpack(self._layout, beat.data)["id"]] = round(get_sim_time("ns"))
        self._is_first = not is_taken or bool(beat.last)
        return is_taken


class NicSide:
    """A NIC's surroundings.

    Args:
        dut: has its ports.
        prefix: what their names begin with.
        nic: the block it was made from.
        memory_size: bytes.
        watches: whether ``wire`` has what is sent.
    """

    def __init__(self, dut: Any, prefix: str, nic: Nic, memory_size: int, watches: bool = True) -> None:
        self.dut, self.prefix, self.nic = dut, prefix, nic
        width = nic.config.data_width
        self.commands = TimedCommandSource(dut, f"{prefix}s_axis_command", width, Random(cocotb.RANDOM_SEED))
        self.completions = CompletionSink(dut, f"{prefix}m_axis_completion", width)
        self.host = FrameSink(dut, f"{prefix}m_axis_host")
        self.control = FrameSink(dut, f"{prefix}m_axis_control")
        if watches:
            self.wire = WireMonitor(dut, f"{prefix}m_axis")
        self.ram = AxiRam(AxiBus.from_prefix(dut, f"{prefix}m_axi"), dut.clk, dut.rst, size=memory_size)
        self.notices = StreamSink(dut, f"{prefix}m_axis_notice")
        self._connect = StreamSource(dut, f"{prefix}s_axis_connect")
        self._translation = StreamSource(dut, f"{prefix}s_axis_translation")
        self._window = StreamSource(dut, f"{prefix}s_axis_window")

    def configure(self, **settings: Any) -> None:
        """Drive ``cfg``; what is left out is 0."""
        drive_struct(self.dut, f"{self.prefix}cfg", CFG, settings)

    def connect(self, action: Action, **fields: int) -> None:
        """Say what is wanted of the connection ``qp``: ``mac``, ``node`` and ``remote_qp`` are its other end."""
        self._connect.send(pack(self.nic.s_axis_connect.payload.shape(), {"action": action, **fields}))

    async def notice(self) -> tuple[int, Notice]:
        """The next thing that the user is told: of which queue pair, and what."""
        found = unpack(self.nic.m_axis_notice.payload.shape(), (await self.notices.recv()).data)
        return found["qp"], Notice(found["notice"])

    async def write_translations(self, pages: Iterable[Page]) -> None:
        """Write pages to the translation CAM, from entry 0 on."""
        await self._write(self._translation, "translation_written", self.nic.s_axis_translation, pages)

    async def write_windows(self, pages: Iterable[Page]) -> None:
        """Write pages to the table of windows, from entry 0 on."""
        await self._write(self._window, "window_written", self.nic.s_axis_window, pages)

    async def _write(self, source: StreamSource, written: str, port: Any, pages: Iterable[Page]) -> None:
        layout, edge = port.payload.shape(), RisingEdge(self.dut.clk)
        valid, error = (getattr(self.dut, f"{self.prefix}{written}_{field}") for field in ("valid", "error"))
        for index, page in enumerate(pages):
            source.send(pack(layout, {**asdict(page), "index": index, "valid": 1}))
            await edge
            while valid.value != 1:
                await edge
            if error.value.to_unsigned() != CamError.OK:
                raise ValueError(f"{self.prefix}{written}: page {index} is refused: {CamError(int(error.value)).name}")

    def counters(self) -> Mapping[str, Any]:
        """Every counter, by block and name."""
        return read_struct(self.dut, f"{self.prefix}counters", self.nic.counters.shape())

    def flat_counters(self) -> dict[str, int]:
        """Every counter, by its whole name, such as ``egress.sender.resent``."""
        return dict(_flat("", self.counters()))


def _flat(prefix: str, counters: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, count in counters.items():
        if isinstance(count, Mapping):
            yield from _flat(f"{prefix}{name}.", count)
        else:
            yield f"{prefix}{name}", count
