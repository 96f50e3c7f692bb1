"""Credits: room in the other end's receive buffer, counted so that nothing that is lost can make it leak.

Both counts are cumulative and cyclic, 20 bits. The sender counts what it has consumed, the receiver what it has freed;
what is in use is their difference, and stays below what was granted.
"""

from __future__ import annotations

from .config import check_choice, check_range
from .cyclic import CREDIT_BITS, after, distance

CREDIT_SIZES = tuple(1 << bits for bits in range(5, 12))  # bytes
OVERHEAD = 32  # bytes that a frame takes in a buffer besides its operations
LIMIT_MAX = (1 << 12) - 1


def credits_needed(length: int, credit_size: int) -> int:
    """Credits of ``credit_size`` bytes that a frame with ``length`` bytes of operations takes: at least one."""
    return -(-(length + OVERHEAD) // credit_size)


class CreditSender:
    """The sender's count, for one class of one connection.

    Args:
        limit: credits granted, 0..4095.
        first: where the counts begin.

    Raises:
        ConfigError: one of them out of bounds.
    """

    def __init__(self, limit: int, first: int = 0) -> None:
        check_range("limit", limit, 0, LIMIT_MAX)
        check_range("first", first, 0, (1 << CREDIT_BITS) - 1)
        self.limit = limit
        self.consumed = self.freed = first

    @property
    def in_use(self) -> int:
        """Credits consumed and not freed."""
        return distance(self.consumed, self.freed, CREDIT_BITS)

    @property
    def available(self) -> int:
        """Credits that may be consumed now."""
        return self.limit - self.in_use

    def consume(self, credits: int) -> None:
        """Use credits; only as many as are ``available``."""
        self.consumed = after(self.consumed, credits, CREDIT_BITS)

    def update(self, freed: int) -> bool:
        """Take the other end's count; whether it said something new. One older than the last says nothing."""
        step = distance(freed, self.freed, CREDIT_BITS)
        if not 0 < step <= self.in_use:
            return False
        self.freed = freed
        return True


class CreditReceiver:
    """The receiver's count, for one class of one connection; ``first`` as the sender's."""

    def __init__(self, first: int = 0) -> None:
        check_range("first", first, 0, (1 << CREDIT_BITS) - 1)
        self.consumed = self.freed = first

    @property
    def held(self) -> int:
        """Credits of the frames that are here."""
        return distance(self.consumed, self.freed, CREDIT_BITS)

    def accept(self, credits: int) -> None:
        """A frame that takes so many came, for the first time."""
        self.consumed = after(self.consumed, credits, CREDIT_BITS)

    def free(self, credits: int) -> None:
        """So many are free again."""
        self.freed = after(self.freed, credits, CREDIT_BITS)

    def reconcile(self, consumed: int) -> int:
        """Take the sender's count, as it was when the same frames had been sent that have come.

        Whatever the sender has used up and this end has not seen is free; returns how many credits that were.
        """
        missed = distance(consumed, self.consumed, CREDIT_BITS)
        self.free(missed)
        self.consumed = consumed
        return missed


def check_credit_size(credit_size: int) -> None:
    """Raise ConfigError unless a credit may be worth so many bytes."""
    check_choice("credit_size", credit_size, CREDIT_SIZES)
