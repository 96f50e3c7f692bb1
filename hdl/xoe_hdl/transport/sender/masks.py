"""Which frames an acknowledgement is about."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..layouts import WINDOW_BITS

_GROUP = 8


class ArrivalMask(wiring.Component):
    """From ``advance`` (frames before the one that is expected) and ``sack`` to a bit for each frame outstanding.

    Frames are counted from the oldest outstanding one; bits from ``count`` on are 0. ``mask`` follows its inputs by
    ``latency`` clocks.
    """

    latency = 2

    def __init__(self, window: int) -> None:
        self.window = window
        super().__init__(
            {"advance": In(WINDOW_BITS), "count": In(WINDOW_BITS), "sack": In(window), "mask": Out(window)}
        )

    def elaborate(self, platform: object) -> Module:
        """Shift by single places, then by groups."""
        m = Module()
        part, before, sent = (Signal(self.window, name=name) for name in ("part", "before", "sent"))
        low = Cat(Const(0, 1), self.sack)[: self.window]
        m.d.sync += [
            # The bit of frame ``advance`` itself is the first behind those before it.
            part.eq((low << self.advance[: exact_log2(_GROUP)])[: self.window]),
            before.eq(Cat(self.advance > at for at in range(self.window))),
            sent.eq(Cat(self.count > at for at in range(self.window))),
        ]
        groups = Signal(WINDOW_BITS - exact_log2(_GROUP))
        m.d.sync += groups.eq(self.advance >> exact_log2(_GROUP))
        shifted = (part << (groups * _GROUP))[: self.window]
        m.d.sync += self.mask.eq((before | shifted) & sent)
        return m


class FirstBit(wiring.Component):
    """Finds the lowest bit that is set: ``any`` and ``place`` follow ``bits`` by ``latency`` clocks."""

    latency = 2

    def __init__(self, window: int) -> None:
        self.window = window
        super().__init__({"bits": In(window), "any": Out(1), "place": Out(range(window))})

    def elaborate(self, platform: object) -> Module:
        """The lowest group that has one, then the bit in it."""
        m = Module()
        groups = [self.bits.word_select(at, _GROUP) for at in range(self.window // _GROUP)]
        number = Signal(range(max(2, len(groups))))
        group = Signal(_GROUP)
        found = Signal()
        m.d.sync += found.eq(self.bits.any())
        for at, bits in reversed(list(enumerate(groups))):
            with m.If(bits.any()):
                m.d.sync += [number.eq(at), group.eq(bits)]
        within = Signal(range(_GROUP))
        for at in reversed(range(_GROUP)):
            with m.If(group[at]):
                m.d.comb += within.eq(at)
        m.d.sync += [self.any.eq(found), self.place.eq(Cat(within, number)[: len(self.place)])]
        return m


def shifted_down(m: Module, value: Value, by: Value, window: int) -> Value:
    """``value`` without its lowest ``by`` bits (up to ``window``), a clock after the inputs; to be kept for another."""
    part, groups = Signal(window, name="shift_part"), Signal(WINDOW_BITS - exact_log2(_GROUP), name="shift_groups")
    m.d.sync += [part.eq(value >> by[: exact_log2(_GROUP)]), groups.eq(by >> exact_log2(_GROUP))]
    return (part >> (groups * _GROUP))[:window]
