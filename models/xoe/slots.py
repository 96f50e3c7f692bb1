"""The responder's slots: results of atomics that their requester has not confirmed."""

from __future__ import annotations

from .config import SLOTS_MAX, check_range


class AtomicSlots:
    """Counts the atomics of one connection that were carried out and whose results may still be needed.

    A result lies in the retransmit buffer, in the frame that carries it, until that frame is acknowledged; only then
    is its slot free. A requester has no more atomics without an answer than there are slots, and acknowledges what it
    has before it asks for more, so a slot is always free for what comes.

    Raises:
        ConfigError: ``slots`` not 1..255.
    """

    def __init__(self, slots: int) -> None:
        check_range("slots", slots, 1, SLOTS_MAX)
        self.slots = slots
        self.used = 0

    def take(self) -> bool:
        """A slot for an atomic that is carried out now; whether there is one."""
        if self.used == self.slots:
            return False
        self.used += 1
        return True

    def confirm(self, atomics: int) -> None:
        """A frame with so many results is acknowledged.

        Raises:
            ValueError: more than there are results.
        """
        if atomics > self.used:
            raise ValueError(f"{atomics} results confirmed, but there are {self.used}")
        self.used -= atomics
