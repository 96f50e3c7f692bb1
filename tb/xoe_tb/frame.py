"""Ethernet frames on AXI4-Stream: first byte in the low bits, ``tkeep`` full but on the last beat, ``tuser`` = bad."""

from __future__ import annotations

from typing import Any

from .stream import Beat, Pause, ProtocolError, StreamMonitor, StreamSink, StreamSource


def to_beats(data: bytes, width: int, bad: bool = False) -> list[Beat]:
    """A frame as beats of ``width`` bytes; ``tuser`` is set on the last one only."""
    beats = []
    for at in range(0, len(data), width):
        chunk = data[at : at + width]
        last = at + width >= len(data)
        beats.append(Beat(int.from_bytes(chunk, "little"), (1 << len(chunk)) - 1, int(last), int(last and bad)))
    return beats


class FrameSource(StreamSource):
    """Sends frames."""

    def send(self, data: bytes, bad: bool = False) -> None:
        """Queue a frame of at least one byte, and return at once."""
        if not data:
            raise ValueError("a frame has at least one byte")
        self.append(to_beats(data, len(self.bus.tdata) // 8, bad))


class FrameMonitor(StreamMonitor):
    """Gathers frames, as ``(bytes, bad)``.

    Raises ProtocolError if ``tkeep`` is not full before the last beat or not contiguous on it and, when ``gapless``, if
    ``tvalid`` is low inside a frame.
    """

    def __init__(self, dut: Any, name: str, *arguments: Any, gapless: bool = False) -> None:
        super().__init__(dut, name, *arguments)
        self._gapless = gapless
        self._bytes = len(self.bus.tdata) // 8
        self._full = (1 << self._bytes) - 1
        self._parts: list[bytes] = []

    def _on_beat(self, beat: Beat) -> None:
        contiguous = beat.keep and beat.keep & beat.keep + 1 == 0
        if not contiguous or (not beat.last and beat.keep != self._full):
            raise ProtocolError(f"{self.name}: tkeep {beat.keep:#x} on a beat with tlast {beat.last}")
        self._parts.append(beat.data.to_bytes(self._bytes, "little")[: beat.keep.bit_length()])
        if beat.last:
            frame = b"".join(self._parts)
            self._parts = []
            self._recv((frame, bool(beat.user)))

    def _on_idle(self) -> None:
        super()._on_idle()
        if self._gapless and self._parts:
            raise ProtocolError(f"{self.name}: a gap after beat {len(self._parts)} of a frame")

    def _drop(self) -> None:
        super()._drop()
        self._parts = []


class FrameSink(FrameMonitor, StreamSink):
    """Takes frames; ``await recv()`` gives ``(bytes, bad)``."""

    def __init__(self, dut: Any, name: str, pause: Pause | None = None, *, gapless: bool = False) -> None:
        super().__init__(dut, name, pause, gapless=gapless)
