"""A short queue for consumers that decide late whether they take what is offered."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import check_choice, check_range

from .skid_buffer import SkidBuffer


class HeadQueue(wiring.Component):
    """Holds up to ``depth`` payloads (a power of two, 4..64) of ``width`` bits, and two more at its output.

    One clock from in to out when empty; one payload a clock. ``o`` comes straight from flip-flops, and ``o.ready``
    reaches those two registers and nothing else: whether they are filled is decided without it. ``i_valid`` is never
    refused: ``room`` (a register, one clock late) says that more than ``margin`` payloads still fit.
    """

    def __init__(self, width: int, depth: int, margin: int) -> None:
        check_choice("depth", depth, (4, 8, 16, 32, 64))
        check_range("margin", margin, 0, depth - 1)
        self.width = width
        self.depth = depth
        self.margin = margin
        super().__init__({"i_valid": In(1), "i": In(width), "o": Out(stream.Signature(width)), "room": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Every payload is stored; one that goes straight on to the output is skipped when reading."""
        m = Module()
        m.submodules.memory = memory = Memory(shape=self.width, depth=self.depth, init=[])
        m.submodules.output = output = SkidBuffer(self.width)
        write, read = memory.write_port(), memory.read_port(domain="comb")
        level, waits = Signal(range(self.depth + 1)), Signal()  # payloads that are still to be read; there are some
        passes = Signal()
        connect(m, output.o, flipped(self.o))
        m.d.comb += [
            output.i.valid.eq(waits | self.i_valid),
            output.i.payload.eq(Mux(waits, read.data, self.i)),
            passes.eq(output.i.valid & output.i.ready),
            write.en.eq(self.i_valid),
            write.data.eq(self.i),
        ]
        m.d.sync += [
            self.room.eq(level < self.depth - self.margin),
            write.addr.eq(write.addr + self.i_valid),
            read.addr.eq(read.addr + passes),
        ]
        with m.If(self.i_valid & ~passes):
            m.d.sync += [level.eq(level + 1), waits.eq(1)]
        with m.Elif(passes & ~self.i_valid):
            m.d.sync += [level.eq(level - 1), waits.eq(level != 1)]
        return m
