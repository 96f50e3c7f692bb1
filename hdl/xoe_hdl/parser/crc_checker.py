"""Compares the CRC that a frame carries with the one it should."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from xoe.wire import CRC_SIZE, FrameHeader

from ..crc import WORD, HeaderCrc, PayloadCrc
from ..delay import delayed
from ..wire import byte_swap
from .aligner import aligned_beat


class CrcChecker(wiring.Component):
    """Takes the aligner's beats of our frames, one in every clock; free-running.

    ``is_right`` tells, ``latency`` clocks after the last beat of a frame that is not truncated, whether its CRC is
    right; of any other frame it says nothing.

    Raises:
        ConfigError: ``width`` is none that ``PayloadCrc`` has.
    """

    def __init__(self, width: int, latency: int = 0) -> None:
        self.width = width
        self._payload = PayloadCrc(width)
        self._latency_min = self._payload.latency + 1
        self.latency = max(self._latency_min, latency)
        super().__init__(
            {
                "i_valid": In(1),
                "i": In(aligned_beat(width)),
                "header": In(8 * FrameHeader.SIZE),
                "is_right": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Operations on one side; header and received CRC, which are known early, on the other."""
        m = Module()
        m.submodules.payload = payload = self._payload
        m.submodules.header = header = HeaderCrc()
        words = [self.i.data.word_select(at, WORD) for at in range(self.width // WORD)]
        is_found, was_found = Signal(), Signal()  # the CRC is in this beat; it was in one before
        with m.If(self.i_valid):
            m.d.sync += was_found.eq(~self.i.last & (was_found | is_found))
        m.d.comb += [
            is_found.eq(self.i_valid & self.i.is_payload & ~was_found & (self.i.remaining < len(words))),
            payload.valid.eq(self.i_valid & ~was_found),
            payload.beat.first.eq(self.i.first),
            payload.beat.last.eq(is_found),
            payload.beat.zeros.eq(len(words) - self.i.remaining),
            payload.beat.data.eq(Cat(word & bit.replicate(WORD) for word, bit in zip(words, self.i.mask, strict=True))),
            header.header.eq(self.header),
        ]
        received = Signal(8 * CRC_SIZE)
        with m.Switch(self.i.remaining):
            for at, word in enumerate(words):
                with m.Case(at):
                    m.d.sync += received.eq(byte_swap(word[: 8 * CRC_SIZE]))

        expected = header.crc ^ delayed(m, "received", received, header.latency - 1)
        expected = delayed(m, "expected", expected, payload.latency - header.latency)
        difference = delayed(m, "difference", payload.crc ^ expected, 1)
        is_equal = delayed(m, "is_equal", difference == 0, self.latency - self._latency_min)
        done = delayed(m, "done", payload.done, self.latency - payload.latency)
        was_equal = Signal()
        with m.If(done):  # the frame's last beat is this one or a later one, of padding
            m.d.sync += was_equal.eq(is_equal)
        m.d.comb += self.is_right.eq(Mux(done, is_equal, was_equal))
        return m
