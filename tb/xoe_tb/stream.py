"""Sources, sinks and monitors of AXI4-Stream (ARM IHI 0051), beat by beat.

Made for speed: handles are fetched once, side signals are written only when they change, a clock wakes each of them
once, and none that has nothing to do. Values are taken at the rising edge, before anything has moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cocotb
from cocotb.handle import LogicObject
from cocotb.triggers import FallingEdge, RisingEdge
from cocotb.types import Logic
from cocotb_bus.drivers import BusDriver
from cocotb_bus.monitors import BusMonitor

from .pause import never

SIGNALS = ["tvalid", "tready", "tdata"]
SIDE_SIGNALS = ["tkeep", "tlast", "tuser"]
HIGH = Logic(1)  # compares faster than 1, and is not X

Pause = Iterator[bool] | Callable[[], bool]


class ProtocolError(AssertionError):
    """What the other end did is against the standard, or against what a stream of ours promises."""


class Beat(NamedTuple):
    """A transfer. Side signals that the stream does not have keep these values."""

    data: int
    keep: int = 0
    last: int = 1
    user: int = 0


def _require_bits(bus: Any) -> None:
    """Refuse a handshake declared as ``[0:0]``: it would compare with HIGH as unequal, always."""
    for handle in (bus.tvalid, bus.tready):
        if not isinstance(handle, LogicObject):
            raise TypeError(f"{handle._path} is a vector: declare it as a bit")


class _Reset:
    """Knows whether ``rst`` is high, without reading it at every clock, and tells when it rises."""

    def __init__(self, rst: Any, on_rise: Callable[[], None]) -> None:
        self.active = rst.value == HIGH
        self._rst = rst
        self._on_rise = on_rise
        cocotb.start_soon(self._watch())

    async def _watch(self) -> None:
        rise, fall = RisingEdge(self._rst), FallingEdge(self._rst)
        while True:
            if not self.active:
                await rise
            self.active = True
            self._on_rise()
            await fall
            self.active = False


class _Paused:
    """``pause``: an iterator or a callable that says, each clock, whether to hold back."""

    @property
    def pause(self) -> Callable[[], bool]:
        return self._pause

    @pause.setter
    def pause(self, pause: Pause | None) -> None:
        self._never_pauses = pause is None
        pause = never() if pause is None else pause
        self._pause = pause if callable(pause) else iter(pause).__next__
        self._on_new_pause()

    def _on_new_pause(self) -> None:
        """``pause`` was set."""


class StreamSource(_Paused, BusDriver):
    """Drives a stream. What is sent goes out back to back unless ``pause`` holds it; a reset drops it."""

    _signals = SIGNALS
    _optional_signals = SIDE_SIGNALS

    def __init__(self, dut: Any, name: str, pause: Pause | None = None) -> None:
        super().__init__(dut, name, dut.clk)
        _require_bits(self.bus)
        self.pause = pause
        self._edge = RisingEdge(dut.clk)
        self._reset = _Reset(dut.rst, self._drop)
        self._sending = False
        self._valid = 0
        self._sides = [
            (getattr(self.bus, side), Beat._fields.index(side[1:])) for side in SIDE_SIGNALS if self._has(side)
        ]
        self._driven = Beat(0, 0, 0, 0)
        for signal in (self.bus.tvalid, self.bus.tdata, *(handle for handle, _ in self._sides)):
            signal.value = 0

    def _has(self, signal: str) -> bool:
        return hasattr(self.bus, signal)

    def send(self, *beats: Beat | int) -> None:
        """Queue beats, and return at once; a number is a beat of that data with ``tlast``."""
        self.append([beat if isinstance(beat, Beat) else Beat(beat) for beat in beats])

    async def drain(self) -> None:
        """Wait until all that was queued is taken."""
        while self._sendQ or self._sending:
            await self._edge

    def _drop(self) -> None:
        self._set_valid(0)  # what is queued finds the reset active, and is not sent

    def _set_valid(self, valid: int) -> None:
        if valid != self._valid:
            self._valid = self.bus.tvalid.value = valid

    async def _driver_send(self, beats: list[Beat], sync: bool = True) -> None:
        self._sending = True
        if sync:
            await self._edge
        for beat in beats:
            if not await self._send_beat(beat):
                break
        if not self._sendQ:
            self._set_valid(0)
        self._sending = False

    async def _send_beat(self, beat: Beat) -> bool:
        """Send one beat; returns after the clock that takes it, or false if a reset came between."""
        edge, ready, reset = self._edge, self.bus.tready, self._reset
        while self._pause() and not reset.active:
            self._set_valid(0)
            await edge
        if reset.active:
            return False
        self._drive(beat)
        await edge
        while not reset.active and ready.value != HIGH:
            await edge
        return not reset.active

    def _drive(self, beat: Beat) -> None:
        self.bus.tdata.value = beat.data
        for handle, index in self._sides:
            if beat[index] != self._driven[index]:
                handle.value = beat[index]
        self._driven = beat
        self._set_valid(1)


class StreamMonitor(BusMonitor):
    """Watches a stream, and raises ProtocolError if valid or payload change before they are taken."""

    _signals = SIGNALS
    _optional_signals = SIDE_SIGNALS

    def __init__(self, dut: Any, name: str) -> None:
        super().__init__(dut, name, dut.clk)
        _require_bits(self.bus)
        self._in_reset = _Reset(dut.rst, self._drop)
        self._held: Beat | None = None
        self._is_asleep = False
        sides = [getattr(self.bus, side, None) for side in SIDE_SIGNALS]
        self._sides = [(handle, default) for handle, default in zip(sides, Beat._field_defaults.values(), strict=True)]

    async def recv(self) -> Any:
        """The next transfer: a Beat, or what the class says."""
        while not self._recvQ:
            await self._wait_event.wait()
        return self._recvQ.popleft()

    def empty(self) -> bool:
        """Whether all that came has been fetched with ``recv``."""
        return not self._recvQ

    async def _monitor_recv(self) -> None:
        edge, valid, reset = RisingEdge(self.clock), self.bus.tvalid, self._in_reset
        wake = RisingEdge(valid)
        while True:
            await edge
            is_idle = False
            if not reset.active:
                if valid.value == HIGH:
                    self._on_valid(self._read())
                else:
                    self._on_idle()
                    is_idle = self._may_sleep()
            self._after_clock()
            if is_idle:  # the beat whose valid rises now is there at the next edge
                self._is_asleep = True
                await wake
                self._is_asleep = False

    def _on_valid(self, beat: Beat) -> None:
        if self._held is not None and beat != self._held:
            raise ProtocolError(f"{self.name}: {beat} instead of {self._held}, which was not taken yet")
        if self._is_ready():
            self._held = None
            self._on_beat(beat)
        else:
            self._held = beat

    def _on_idle(self) -> None:
        if self._held is not None:
            raise ProtocolError(f"{self.name}: tvalid fell before {self._held} was taken")

    def _on_beat(self, beat: Beat) -> None:
        """A beat was taken."""
        self._recv(beat)

    def _after_clock(self) -> None:
        """All of a clock's values are read."""

    def _may_sleep(self) -> bool:
        """Whether nothing is to be done until ``tvalid`` rises."""
        return True

    def _drop(self) -> None:
        """A reset came: forget what is half done."""
        self._held = None

    def _is_ready(self) -> bool:
        return self.bus.tready.value == HIGH

    def _read(self) -> Beat:
        data = int(self.bus.tdata.value)  # a bit has no ``to_unsigned``
        return Beat(data, *(default if side is None else int(side.value) for side, default in self._sides))


class StreamSink(_Paused, StreamMonitor):
    """Takes what comes, unless ``pause`` holds it."""

    def __init__(self, dut: Any, name: str, pause: Pause | None = None) -> None:
        super().__init__(dut, name)
        self.pause = pause
        self._ready = self.bus.tready.value = 0

    def _is_ready(self) -> bool:
        return bool(self._ready)

    def _may_sleep(self) -> bool:
        return self._never_pauses and bool(self._ready)

    def _on_new_pause(self) -> None:
        if self._is_asleep:  # it would take the next beat before it looks at the pause
            self._after_clock()

    def _after_clock(self) -> None:
        ready = 0 if self._pause() else 1
        if ready != self._ready:
            self._ready = self.bus.tready.value = ready
