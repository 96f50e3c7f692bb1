"""The responder's side of AXI4's read channels."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import DATA_WIDTHS, check_choice
from xoe.wire import DATA_MAX

from ..layouts import Axi4Signature
from ..queues import Queue
from .layouts import BURST, TOKEN, WAITING, ask, is_error

BYTES, BEATS_MIN = 4096, 128  # that may be asked for and not yet be passed on: the larger of the two
UNDERWAY = 4  # bursts that may still come when room is gone


class ReadPath(wiring.Component):
    """Asks for bursts; gives the beats that come, in order, and a token for each burst when it is there whole.

    A burst may be given up to two clocks after one in which ``room`` was high; its beats' places are then kept free,
    and so the memory's beats are always taken: ``r`` is ready all the time. ``beat`` and ``token`` tell of a beat and
    of the end of a burst one clock after the bus has it; ``beats`` holds the beats until they are taken.
    """

    def __init__(self, width: int) -> None:
        check_choice("width", width, DATA_WIDTHS)
        self.width = width
        self.depth = max(BYTES * 8 // width, BEATS_MIN)
        axi = Axi4Signature(width).members
        super().__init__(
            {
                "burst": In(BURST),
                "room": Out(1),
                "ar": axi["ar"],
                "r": axi["r"],
                "beat": Out(data.StructLayout({"valid": 1, "data": width})),
                "token": Out(TOKEN),
                "beats": Out(stream.Signature(width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A queue of addresses, a register for what comes, a queue of beats."""
        m = Module()
        m.submodules.addresses = addresses = Queue(self.ar.payload.shape(), WAITING + 1, margin=UNDERWAY)
        m.submodules.beats = beats = Queue(self.width, self.depth + 1)
        connect(m, addresses.o, flipped(self.ar))
        connect(m, beats.o, flipped(self.beats))
        ask(m, addresses.i.payload, self.burst, self.width)
        m.d.comb += [
            addresses.i.valid.eq(self.burst.is_read),
            beats.i.payload.eq(self.beat.data),
            beats.i.valid.eq(self.beat.valid),
        ]
        self._receive(m)
        self._count(m, addresses.room)
        return m

    def _receive(self, m: Module) -> None:
        was_bad = Signal()
        is_bad = was_bad | is_error(self.r.payload.resp)
        m.d.comb += self.r.ready.eq(1)
        m.d.sync += [
            self.beat.valid.eq(self.r.valid),
            self.beat.data.eq(self.r.payload.data),
            self.token.valid.eq(self.r.valid & self.r.payload.last),
            self.token.is_bad.eq(is_bad),
        ]
        with m.If(self.r.valid):
            m.d.sync += was_bad.eq(is_bad & ~self.r.payload.last)

    def _count(self, m: Module, has_address_room: Signal) -> None:
        """Give room while there are places for the largest bursts that may be under way."""
        free = Signal(range(self.depth + 1), init=self.depth)
        largest = DATA_MAX * 8 // self.width + 1
        asked = Mux(self.burst.is_read, self.burst.length + 1, 0)
        m.d.sync += [
            free.eq(free - asked + (self.beats.valid & self.beats.ready)),
            self.room.eq(has_address_room & (free >= UNDERWAY * largest)),
        ]
