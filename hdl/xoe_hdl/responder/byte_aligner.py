"""Moves the bytes of a run of beats so that they start in another lane."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from xoe.config import DATA_WIDTHS, check_choice

from ..delay import delayed


def lane_bits(width: int) -> int:
    """Bits that number the byte lanes of a bus of ``width`` bits."""
    return (width // 8 - 1).bit_length()


def aligner_input(width: int) -> data.StructLayout:
    """A beat to be aligned, and how.

    ``shift``: lanes up, that is, the lane that the beat's first byte gets. ``is_alone``: bytes shifted out at the top
    come in at the bottom, else the bottom is filled from the beat before. ``is_head``: nothing comes before this beat,
    so that lanes below ``shift`` are empty. ``is_tail``: lanes above ``end`` are empty.
    """
    lanes = lane_bits(width)
    return data.StructLayout(
        {"data": width, "shift": lanes, "is_alone": 1, "is_head": 1, "is_tail": 1, "end": lanes},
    )


class ByteAligner(wiring.Component):
    """Beat by beat: the bytes of ``i``, and of the valid beat before it, shifted; a strobe for each lane in use.

    One beat a clock, ``latency`` clocks later, never stalling. Empty lanes are 0. Whoever needs to know which beats of
    ``data`` mean something delays that by ``latency``.
    """

    def __init__(self, width: int) -> None:
        check_choice("width", width, DATA_WIDTHS)
        self.width = width
        self.rotations = -(-lane_bits(width) // 2)
        self.latency = self.rotations + 1
        super().__init__(
            {"i": In(aligner_input(width)), "i_valid": In(1), "data": Out(width), "strobe": Out(width // 8)},
        )

    def elaborate(self, platform: object) -> Module:
        """Rotate by two bits of ``shift`` a stage, then pick each byte from this beat or the one before."""
        m = Module()
        rotated = self._rotate(m)
        is_new, strobe = self._lanes(m)
        valid = delayed(m, "rotated_valid", self.i_valid, self.rotations)
        before = Signal(self.width)
        with m.If(valid):
            m.d.sync += before.eq(rotated)
        for lane in range(self.width // 8):
            byte = slice(8 * lane, 8 * lane + 8)
            picked = Mux(is_new[lane], rotated[byte], before[byte])
            m.d.sync += self.data[byte].eq(picked & strobe[lane].replicate(8))
        m.d.sync += self.strobe.eq(strobe)
        return m

    def _rotate(self, m: Module) -> Value:
        """The input, its bytes rotated up by ``shift``."""
        value: Value = self.i.data
        for stage in range(self.rotations):
            shift = delayed(m, f"shift_{stage}", self.i.shift, stage)[2 * stage : 2 * stage + 2]
            rotated = Signal(self.width, name=f"rotated_{stage}")
            with m.Switch(shift):
                for steps in range(1 << len(shift)):
                    with m.Case(steps):
                        m.d.sync += rotated.eq(value.rotate_left(8 * steps << 2 * stage))
            value = rotated
        return value

    def _lanes(self, m: Module) -> tuple[Value, Value]:
        """For each lane whether its byte is the new beat's, and whether it is in use."""
        lanes = self.width // 8
        from_shift, to_end = Signal(lanes), Signal(lanes)
        m.d.sync += [
            from_shift.eq(Cat(self.i.shift <= lane for lane in range(lanes))),
            to_end.eq(Cat(~self.i.is_tail | (self.i.end >= lane) for lane in range(lanes))),
        ]
        is_alone, is_head = Signal(), Signal()
        m.d.sync += [is_alone.eq(self.i.is_alone), is_head.eq(self.i.is_head)]
        is_new, strobe = Signal(lanes), Signal(lanes)
        m.d.sync += [
            is_new.eq(from_shift | is_alone.replicate(lanes)),
            strobe.eq((from_shift | (~is_head).replicate(lanes)) & to_end),
        ]
        extra = self.rotations - 2
        return delayed(m, "is_new", is_new, extra), delayed(m, "strobe", strobe, extra)
