"""What a data frame's PSN says, and whether credit was lost: ``xoe.receiver`` and ``xoe.credit``, a step a clock."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.cyclic import CREDIT_BITS, SEQ_BITS

from .layouts import CLASSES, WINDOW_BITS, WORDS_BITS, credits_needed

_GROUP = 4  # bits of a place in the window that are decoded at once

VERDICT = data.StructLayout(
    {
        "in_order": 1,  # new, and the one expected
        "early": 1,  # new, and kept
        "duplicate": 1,
        "outside": 1,
        "out_of_order": 1,
        "stale": 1,
        "has_credit": 1,  # besides in_order and early: its class is one of those that have credits
        "differs": 1,  # no frame: the other end has consumed more than came here
    }
)
"""What to do about an event, for one clock."""


class Sorter(wiring.Component):
    """A free-running pipeline: inputs that stand still are judged from the third clock on.

    ``judge_frame`` and ``judge_credit``, in that third clock or later, have the ``verdict`` said in the clock that
    follows. ``consumed`` may come one clock after the other inputs. ``place`` has the bit of the window set that is the
    frame's; ``missed`` are the credits that the other end has consumed besides, ``total`` all with those of the frame.
    """

    def __init__(self, event: data.StructLayout, state: data.StructLayout, window: int, credit_words: int) -> None:
        self.window, self.credit_words = window, credit_words
        super().__init__(
            {
                "event": In(event),
                "state": In(state),
                "consumed": In(CREDIT_BITS),
                "go_back_n": In(1),
                "judge_frame": In(1),
                "judge_credit": In(1),
                "verdict": Out(VERDICT),
                "place": Out(window),
                "missed": Out(CREDIT_BITS),
                "total": Out(CREDIT_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """How far ahead; is it next, inside, here; the verdict."""
        m = Module()
        ahead, is_current = Signal(SEQ_BITS), Signal()
        is_behind, is_inside, is_next, is_valid = Signal(), Signal(), Signal(), Signal()
        m.d.sync += [
            ahead.eq(self.event.seq - self.state.expected),
            is_current.eq(self.state.is_alive & (self.event.epoch == self.state.epoch)),
            is_valid.eq(is_current),
            is_behind.eq(ahead[-1]),
            is_inside.eq((ahead[WINDOW_BITS:] == 0) & (ahead[:WINDOW_BITS] < self.state.window)),
            is_next.eq(ahead == 0),
        ]
        is_here, judges, verdict = self._look_up(m, ahead), self.judge_frame, self.verdict
        is_new = is_valid & is_inside & ~is_here & ~is_next
        has_credit, is_kept = Signal(), Signal()
        m.d.sync += [has_credit.eq(self.event.traffic_class < CLASSES), is_kept.eq(~self.go_back_n)]
        m.d.sync += [
            verdict.in_order.eq(judges & is_valid & is_next),
            verdict.early.eq(judges & is_new & is_kept),
            verdict.out_of_order.eq(judges & is_new & ~is_kept),
            verdict.duplicate.eq(judges & is_valid & (is_behind | is_inside & is_here)),
            verdict.outside.eq(judges & is_valid & ~is_behind & ~is_inside),
            verdict.stale.eq(judges & ~is_valid),
            verdict.has_credit.eq(judges & is_valid & has_credit & (is_next | is_inside & ~is_here & is_kept)),
        ]
        self._count(m, self.judge_credit & is_valid & is_next & has_credit)
        return m

    def _look_up(self, m: Module, ahead: Value) -> Value:
        """Whether the frame is here already, and its place, both in two steps: inside each group, and which group."""
        bits = exact_log2(self.window)
        split = min(bits, _GROUP)
        low, high = ahead[:split], ahead[split:bits] if bits > split else Const(0, 1)
        groups = [self.state.present[at : at + (1 << _GROUP)] for at in range(0, self.window, 1 << _GROUP)]
        here, group = Signal(len(groups)), Signal(len(high))
        lows, highs = Signal(len(groups[0])), Signal(len(groups))
        m.d.sync += [
            here.eq(Cat(each.bit_select(low, 1) for each in groups)),
            group.eq(high),
            lows.eq(Cat(low == place for place in range(len(lows)))),
            highs.eq(Cat(high == place for place in range(len(highs)))),
        ]
        m.d.comb += self.place.eq(Cat(lows & each.replicate(len(lows)) for each in highs))
        return here.bit_select(group, 1)

    def _count(self, m: Module, is_judged: Value) -> None:
        """Credits. The counts can be compared if both ends speak of the same frames: no later one is here."""
        needed = Signal(WORDS_BITS)
        m.d.sync += [
            needed.eq(credits_needed(self.event.words, self.credit_words)),
            self.total.eq(self.consumed + needed),
            self.missed.eq(self.event.credits - self.consumed),
            self.verdict.differs.eq(is_judged & (self.state.kept == 0) & (self.missed != 0)),
        ]
