"""Credits: room in the other end's receive buffer, counted so that nothing that is lost can make it leak.

Both counts are cumulative and cyclic, 20 bits. The sender counts what it has consumed, the receiver what it has freed;
what is in use is their difference, and stays below what was granted.
"""

from __future__ import annotations

from .config import CREDIT_LIMIT_MAX, check_range
from .cyclic import CREDIT_BITS, after, distance


class CreditSender:
    """The sender's count, for one class of one connection.

    Args:
        limit: credits granted, 0..4095.
        first: where the counts begin.

    Raises:
        ConfigError: one of them out of bounds.
    """

    def __init__(self, limit: int, first: int = 0) -> None:
        check_range("limit", limit, 0, CREDIT_LIMIT_MAX)
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
        """Credits of the frames that were delivered and are still here."""
        return distance(self.consumed, self.freed, CREDIT_BITS)

    def accept(self, credits: int) -> None:
        """A frame that takes so many was delivered: so both ends count in the order of the PSNs."""
        self.consumed = after(self.consumed, credits, CREDIT_BITS)

    def free(self, credits: int) -> None:
        """So many are free again."""
        self.freed = after(self.freed, credits, CREDIT_BITS)

    def reconcile(self, consumed: int) -> int:
        """Take the sender's count, as it was when the same frames had been sent that have come.

        Whatever the sender has used up and this end has not seen is free; returns how many credits that were, of the
        20 bits of a count: a little below 2**20 if this end had counted more.
        """
        missed = distance(consumed, self.consumed, CREDIT_BITS)
        self.free(missed)
        self.consumed = consumed
        return missed
