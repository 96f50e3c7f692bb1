"""Watches an AXI4 manager's port, whatever memory is behind it."""

from __future__ import annotations

from collections import deque
from typing import Any

from cocotb.triggers import RisingEdge

from .stream import ProtocolError

PAGE = 4096  # no burst crosses it, ARM IHI 0022 A3.4.1
CHANNELS = {"aw": ("addr", "len", "size", "burst", "id"), "w": ("data", "strb", "last"), "ar": ()}
CHANNELS["ar"] = CHANNELS["aw"]


class AxiWatch:
    """Raises ProtocolError where a manager breaks a rule of AXI4, or what xoe promises beyond it.

    The rules: valid and payload stay until they are taken; bursts are INCR, of full-width aligned beats, of id 0, and
    stay inside 4 KB; ``wlast`` is where the address said. xoe's own: reads and writes are never outstanding together;
    ``bready`` and ``rready`` are always high outside reset.

    ``beats`` counts what each channel has transferred, ``clocks`` those since ``restart``; ``outstanding`` is the most
    bursts that were under way at once.
    """

    def __init__(self, dut: Any, prefix: str) -> None:
        self._dut = dut
        self._signals = {
            channel: [getattr(dut, f"{prefix}_{channel}{name}") for name in ("valid", "ready", *names)]
            for channel, names in CHANNELS.items()
        }
        self._answers = {
            channel: [getattr(dut, f"{prefix}_{channel}{name}") for name in ("valid", "ready")] for channel in "br"
        }
        self._last = getattr(dut, f"{prefix}_rlast")
        self._bytes = len(getattr(dut, f"{prefix}_wdata")) // 8
        self.restart()
        self._forget()

    def restart(self) -> None:
        """Begin to count anew."""
        self.clocks = 0
        self.outstanding = 0
        self.beats = dict.fromkeys(("aw", "w", "b", "ar", "r"), 0)

    def _forget(self) -> None:
        self._held: dict[str, tuple[int, ...]] = {}
        self._lengths: deque[int] = deque()
        self._written: deque[int] = deque()
        self._beats_written = 0
        self._under_way = {"ar": 0, "aw": 0}

    async def run(self) -> None:
        """Watch for ever."""
        edge, rst = RisingEdge(self._dut.clk), self._dut.rst
        while True:
            await edge
            if rst.value == 1:
                self._forget()
                continue
            self.clocks += 1
            for channel in CHANNELS:
                self._look(channel)
            self._look_at_answers()

    def _look(self, channel: str) -> None:
        valid, ready, *payload = self._signals[channel]
        if valid.value != 1:
            if channel in self._held:
                raise ProtocolError(f"{channel}valid fell before its payload was taken")
            return
        values = tuple(int(signal.value) for signal in payload)
        if self._held.setdefault(channel, values) != values:
            raise ProtocolError(f"{channel} changed before it was taken")
        if ready.value == 1:
            del self._held[channel]
            self.beats[channel] += 1
            self._on_beat(values) if channel == "w" else self._on_address(channel, *values)

    def _on_address(self, channel: str, address: int, length: int, size: int, burst: int, id_: int) -> None:
        if (1 << size, burst, id_) != (self._bytes, 1, 0):
            raise ProtocolError(f"{channel}: size {size}, burst {burst}, id {id_}")
        if address % self._bytes or address % PAGE + (length + 1) * self._bytes > PAGE:
            raise ProtocolError(f"{channel}: {length + 1} beats at {address:#x}")
        self._under_way[channel] += 1
        if all(self._under_way.values()):
            raise ProtocolError("reads and writes are outstanding together")
        self.outstanding = max(self.outstanding, *self._under_way.values())
        if channel == "aw":
            self._lengths.append(length + 1)
            self._compare()

    def _on_beat(self, values: tuple[int, ...]) -> None:
        self._beats_written += 1
        if values[-1]:
            self._written.append(self._beats_written)
            self._beats_written = 0
            self._compare()

    def _compare(self) -> None:
        while self._lengths and self._written:
            length, written = self._lengths.popleft(), self._written.popleft()
            if length != written:
                raise ProtocolError(f"wlast on beat {written} of a burst of {length}")

    def _look_at_answers(self) -> None:
        for channel, (valid, ready) in self._answers.items():
            if ready.value != 1:
                raise ProtocolError(f"{channel}ready is low")
            if valid.value == 1:
                self.beats[channel] += 1
                if channel == "b":
                    self._under_way["aw"] -= 1
                elif self._last.value == 1:
                    self._under_way["ar"] -= 1
