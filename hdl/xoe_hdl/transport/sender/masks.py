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


class Places(wiring.Component):
    """Gives the places of the bits that are set, the lowest first, one a clock while there are three in a group of 8.

    ``load`` takes new ``bits``, and only once those before are done with. ``any`` says in the clock after whether there
    are some; the first ``place`` is ``valid`` four clocks after ``load``. ``is_busy`` is set while there are more.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        super().__init__(
            {
                "load": In(1),
                "bits": In(window),
                "any": Out(1),
                "valid": Out(1),
                "place": Out(range(window)),
                "is_busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The lowest group that has some is looked for while the bits of the one before are given."""
        m = Module()
        count = self.window // _GROUP
        kept, left = Signal(self.window), Signal(count)  # left: groups that are still to be looked at
        number, is_found = Signal(range(max(2, count))), Signal()
        base, group = Signal.like(number), Signal(_GROUP)
        takes = Signal()
        others = group & (group - 1)
        m.d.comb += [
            takes.eq(is_found & ~others.any()),
            self.any.eq(left.any()),
            self.is_busy.eq(self.any | is_found | group.any() | self.valid),
        ]
        with m.If(~is_found | takes):
            m.d.sync += [is_found.eq(left.any()), left.eq(left & (left - 1)), number.eq(_lowest(m, "in_left", left))]
        m.d.sync += group.eq(others)
        with m.If(takes):
            m.d.sync += [group.eq(kept.word_select(number, _GROUP)), base.eq(number)]
        m.d.sync += [
            self.valid.eq(group.any()),
            self.place.eq(Cat(_lowest(m, "in_group", group), base)[: len(self.place)]),
        ]
        with m.If(self.load):
            groups = [self.bits.word_select(at, _GROUP) for at in range(count)]
            m.d.sync += [kept.eq(self.bits), left.eq(Cat(group.any() for group in groups))]
        return m


def _lowest(m: Module, name: str, bits: Value) -> Signal:
    """The number of the lowest bit that is set."""
    number = Signal(range(max(2, len(bits))), name=name)
    for at in reversed(range(len(bits))):
        with m.If(bits[at]):
            m.d.comb += number.eq(at)
    return number


def shifted_down(m: Module, value: Value, by: Value, window: int) -> Value:
    """``value`` without its lowest ``by`` bits (up to ``window``), a clock after the inputs; to be kept for another."""
    part, groups = Signal(window, name="shift_part"), Signal(WINDOW_BITS - exact_log2(_GROUP), name="shift_groups")
    m.d.sync += [part.eq(value >> by[: exact_log2(_GROUP)]), groups.eq(by >> exact_log2(_GROUP))]
    return (part >> (groups * _GROUP))[:window]
