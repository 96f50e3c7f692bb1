"""Holds frames until it is known whether they are good."""

from __future__ import annotations

from amaranth.hdl import Module, ShapeLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..queues import HeadQueue, Queue


class FrameBuffer(wiring.Component):
    """A queue of beats, and one of verdicts: one a frame, given when its last beat is written or later.

    Nothing is rolled back: whoever reads gets every frame's beats as soon as they are there, waits for the verdict
    before doing anything with them, and throws those of a bad frame away at one beat a clock, as fast as they can come.
    So a good frame whose verdict comes late is already at the reader's door.

    Both sides of writing are free-running, one a clock; ``room`` (a register) says that ``margin`` more beats and
    verdicts fit. A verdict is offered one clock after it came, a beat after three. So if a verdict comes three clocks
    after its frame's last beat or later, all beats of the frame have been offered, or are right behind each other, when
    it is.

    Args:
        shape: of a beat.
        depth: beats held.
        frames: verdicts held.
        margin: what may be under way when ``room`` falls.
    """

    def __init__(self, shape: ShapeLike, depth: int, frames: int, margin: int) -> None:
        self._beats = Queue(shape, depth, margin)
        self._verdicts = HeadQueue(1, frames, margin)
        super().__init__(
            {
                "write_valid": In(1),
                "write": In(shape),
                "verdict_valid": In(1),
                "is_good": In(1),
                "room": Out(1),
                "beats": Out(stream.Signature(shape)),
                "verdicts": Out(stream.Signature(1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join the two queues."""
        m = Module()
        m.submodules.beats = beats = self._beats
        m.submodules.verdicts = verdicts = self._verdicts
        m.d.comb += [
            beats.i.valid.eq(self.write_valid),
            beats.i.payload.eq(self.write),
            verdicts.i_valid.eq(self.verdict_valid),
            verdicts.i.eq(self.is_good),
            self.room.eq(beats.room & verdicts.room),
        ]
        connect(m, beats.o, flipped(self.beats))
        connect(m, verdicts.o, flipped(self.verdicts))
        return m


class FrameGate(wiring.Component):
    """Lets the beats of good frames through, throws those of bad ones away; combinational. ``shape`` has ``last``."""

    def __init__(self, shape: ShapeLike) -> None:
        super().__init__(
            {
                "beats": In(stream.Signature(shape)),
                "verdicts": In(stream.Signature(1)),
                "o": Out(stream.Signature(shape)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Gate valid and ready."""
        m = Module()
        beats, verdicts = self.beats, self.verdicts
        m.d.comb += [
            self.o.payload.eq(beats.payload),
            self.o.valid.eq(beats.valid & verdicts.valid & verdicts.payload),
            beats.ready.eq(verdicts.valid & (~verdicts.payload | self.o.ready)),
            verdicts.ready.eq(beats.valid & beats.ready & beats.payload.last),
        ]
        return m
