"""Brings together what is known of each gathered frame."""

from __future__ import annotations

from amaranth.hdl import Module, Shape, ShapeLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from ..transport.page_store import segment
from .gatherer import GATHERED

FRAMES = 16  # gathered ones that can wait


def collected(pages: int) -> data.StructLayout:
    """A gathered frame that is whole: where it is in the store, and the CRC of its operations."""
    return data.StructLayout({"gathered": GATHERED, "segment": segment(pages), "crc": 32})


class Collector(wiring.Component):
    """Takes descriptions, segments and CRCs, each in the order of the frames, and gives them together.

    Each is taken in any clock, valid for that; ``frames`` has a frame one clock after the last of the three came. No
    more than ``FRAMES`` may be under way.
    """

    def __init__(self, pages: int) -> None:
        self._shapes: dict[str, ShapeLike] = {"gathered": GATHERED, "segment": segment(pages), "crc": 32}
        ports = {name: In(data.StructLayout({"valid": 1, "payload": shape})) for name, shape in self._shapes.items()}
        super().__init__({**ports, "frames": Out(stream.Signature(collected(pages)))})

    def elaborate(self, platform: object) -> Module:
        """A queue for each of the three."""
        m = Module()
        valid = []
        for name, shape in self._shapes.items():
            m.submodules[name] = queue = SyncFIFO(width=Shape.cast(shape).width, depth=FRAMES)
            given = getattr(self, name)
            m.d.comb += [
                queue.w_en.eq(given.valid),
                queue.w_data.eq(given.payload),
                queue.r_en.eq(self.frames.valid & self.frames.ready),
                self.frames.payload[name].eq(queue.r_data),
            ]
            valid.append(queue.r_rdy)
        m.d.comb += self.frames.valid.eq(valid[0] & valid[1] & valid[2])
        return m
