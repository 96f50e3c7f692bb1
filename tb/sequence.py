"""Sequence numbers: one count for each flow."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from xoe.config import check_range
from xoe.cyclic import SEQ_BITS


class SequenceNumbers(wiring.Component):
    """Counts the frames of ``flows`` flows, each from ``first`` on, wrapping.

    Each clock in which ``take`` is high gives ``flow`` its next ``number``, one clock later; the same flow may follow
    at once. After a reset the counts are set one by one: ``ready`` is low for ``flows`` clocks, in which nothing may be
    taken.

    Raises:
        ConfigError: ``flows`` not 2..8192, or ``first`` too large for the header's field.
    """

    def __init__(self, flows: int, first: int = 0) -> None:
        check_range("flows", flows, 2, 8192)
        check_range("first", first, 0, (1 << SEQ_BITS) - 1)
        self.flows, self.first = flows, first
        super().__init__(
            {"take": In(1), "flow": In(range(flows)), "number": Out(SEQ_BITS), "ready": Out(1)},
        )

    def elaborate(self, platform: object) -> Module:
        """A memory, read and written back two clocks later; meanwhile the next number comes from a register."""
        m = Module()
        m.submodules.counts = counts = memory.Memory(shape=SEQ_BITS, depth=self.flows, init=[])
        write = counts.write_port()
        read = counts.read_port(transparent_for=(write,))
        index, flow, is_taken = Signal(range(self.flows)), Signal(range(self.flows)), Signal()
        is_again, later_number = Signal(), Signal(SEQ_BITS)
        m.d.sync += [
            flow.eq(self.flow),
            is_taken.eq(self.take),
            is_again.eq(is_taken & (self.flow == flow)),
            later_number.eq(self.number + 1),
            write.en.eq(is_taken | ~self.ready),
            write.addr.eq(Mux(self.ready, flow, index)),
        ]
        with m.If(~self.ready):
            m.d.sync += [index.eq(index + 1), self.ready.eq(index == self.flows - 1), later_number.eq(self.first)]
        m.d.comb += [
            read.addr.eq(self.flow),
            read.en.eq(1),
            self.number.eq(Mux(is_again, later_number, read.data)),
            write.data.eq(later_number),
        ]
        return m
