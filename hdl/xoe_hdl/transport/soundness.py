"""Whether what an OPEN offers can be used. Model: ``xoe.offer.is_sound``."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Array, Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from xoe.config import WINDOW_MAX, check_range, credits_needed
from xoe.offer import CREDIT_SIZE_LOGS, LARGEST
from xoe.wire import MTU_MAX

from .connection_layouts import BODY, GRANTED

_CREDITS = ("credit_request", "credit_response", "credit_atomic")
_NEVER = 1 << BODY["credit_request"]  # credits, more than can be granted


def check_largest(largest: Sequence[int]) -> None:
    """Check the bytes of operations that a frame of each class has to hold.

    Raises:
        ConfigError: not one for each class, or more than a frame can have.
    """
    check_range("classes in largest", len(largest), len(LARGEST), len(LARGEST))
    for traffic_class, size in enumerate(largest):
        check_range(f"largest frame of class {traffic_class}", size, 1, MTU_MAX)


class Soundness(wiring.Component):
    """A free-running pipeline: ``is_sound`` is that of the ``offer`` of two clocks before.

    Args:
        largest: bytes of operations in the largest frame of the classes 0, 1 and 2.
    """

    def __init__(self, largest: Sequence[int]) -> None:
        self.largest = tuple(largest)
        super().__init__({"offer": In(data.StructLayout({name: BODY[name] for name in GRANTED})), "is_sound": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Look up what each class must have; then compare. No credits are enough of a size that there is not."""
        m = Module()
        offer, fits = self.offer, []
        for name, size in zip(_CREDITS, self.largest, strict=True):
            least, granted = Signal(BODY[name] + 1, name=f"least_{name}"), Signal(BODY[name], name=f"granted_{name}")
            m.d.sync += [least.eq(self._table(size)[offer.credit_size]), granted.eq(offer[name])]
            fits.append(granted >= least)
        has_bounds = Signal()
        m.d.sync += has_bounds.eq((offer.window != 0) & (offer.window <= WINDOW_MAX) & (offer.atomic_slots != 0))
        m.d.sync += self.is_sound.eq(fits[0] & fits[1] & fits[2] & has_bounds)
        return m

    def _table(self, size: int) -> Array:
        """Credits that an operation of ``size`` bytes takes, by the log2 of what a credit is worth."""
        logs = range(1 << BODY["credit_size"])
        needed = [credits_needed(size, 1 << log) if log in CREDIT_SIZE_LOGS else _NEVER for log in logs]
        return Array(Const(credits, BODY["credit_request"] + 1) for credits in needed)
