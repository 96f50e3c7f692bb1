"""A short queue of wide payloads, for consumers that decide late whether they take one."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

PLACES = 16  # as many as the distributed memory of the common FPGAs has in a block
DEPTH = 4


class RingQueue(wiring.Component):
    """Holds up to four payloads: one clock from in to out, one payload a clock, no path from ``o`` to ``i``.

    What a ``SkidBuffer`` does, but the payload lies in distributed memory that a pointer reads. So ``o.ready`` moves a
    few flip-flops, where else it would have to reach the clock enables of a whole bus; ``o.payload`` comes a memory's
    read time after the clock.
    """

    def __init__(self, shape: ShapeLike) -> None:
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})
        self._shape = shape

    def elaborate(self, platform: object) -> Module:
        """Two pointers, and a count in which bit n says that there are more than n."""
        m = Module()
        m.submodules.places = places = Memory(shape=self._shape, depth=PLACES, init=[])
        write, read = places.write_port(), places.read_port(domain="comb")
        count, put, take = Signal(DEPTH), Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~count[-1]),
            self.o.valid.eq(count[0]),
            self.o.payload.eq(read.data),
            put.eq(self.i.valid & self.i.ready),
            take.eq(self.o.valid & self.o.ready),
            write.data.eq(self.i.payload),
            write.en.eq(put),
        ]
        m.d.sync += [
            write.addr.eq(write.addr + put),
            read.addr.eq(read.addr + take),
            count.eq(Mux(put == take, count, Mux(put, Cat(Const(1, 1), count), count[1:]))),
        ]
        return m
