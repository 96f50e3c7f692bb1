"""The responder's side of AXI4's write channels."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import DATA_WIDTHS, check_choice

from ..delay import delayed
from ..layouts import Axi4Signature
from ..queues import Queue
from .byte_aligner import ByteAligner
from .layouts import BURST, TOKEN, WAITING, ask, is_error, step_layout


class WritePath(wiring.Component):
    """Asks for bursts, writes their beats, and gives a token for each burst that the memory has acknowledged.

    A step, and with it a burst, may be given up to two clocks after one in which ``room`` was high. Addresses and beats
    wait for the memory apart from each other. ``b`` is ready all the time; ``token`` comes one clock after it.
    """

    def __init__(self, width: int) -> None:
        check_choice("width", width, DATA_WIDTHS)
        self.width = width
        axi = Axi4Signature(width).members
        super().__init__(
            {
                "burst": In(BURST),
                "step": In(step_layout(width)),
                "room": Out(1),
                "aw": axi["aw"],
                "w": axi["w"],
                "b": axi["b"],
                "token": Out(TOKEN),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A queue of addresses; the aligner and a queue of beats."""
        m = Module()
        m.submodules.aligner = aligner = ByteAligner(self.width)
        underway = aligner.latency + 4
        m.submodules.addresses = addresses = Queue(self.aw.payload.shape(), WAITING + 1, margin=underway)
        m.submodules.beats = beats = Queue(self.w.payload.shape(), WAITING + 1, margin=underway)
        connect(m, addresses.o, flipped(self.aw))
        connect(m, beats.o, flipped(self.w))
        ask(m, addresses.i.payload, self.burst, self.width)
        m.d.comb += [
            addresses.i.valid.eq(self.burst.is_write),
            aligner.i.eq(self.step.beat),
            aligner.i_valid.eq(self.step.valid),
            beats.i.payload.data.eq(aligner.data),
            beats.i.payload.strb.eq(aligner.strobe),
            beats.i.payload.last.eq(delayed(m, "last", self.step.last, aligner.latency)),
            beats.i.valid.eq(delayed(m, "valid", self.step.valid, aligner.latency)),
            self.b.ready.eq(1),
        ]
        m.d.sync += [
            self.room.eq(addresses.room & beats.room),
            self.token.valid.eq(self.b.valid),
            self.token.is_bad.eq(is_error(self.b.payload.resp)),
        ]
        return m
