"""Decides when a connection's acknowledgement is sent by itself."""

from __future__ import annotations

from .transport import TransportSettings


class Acknowledger:
    """Keeps count of what the other end has not been told.

    An acknowledgement is due at once for ``ack_every`` data frames, for one that came twice, too far, or out of order,
    and for many freed credits; after ``ack_delay`` for less; and after ``sync_interval`` for nothing at all.
    """

    def __init__(self, settings: TransportSettings, now: int = 0) -> None:
        self.settings = settings
        self._owed = 0  # data frames, and updates of credit
        self._is_urgent = False
        self._since = now  # when the first of them was owed
        self._last = now  # when an acknowledgement was sent by itself

    def owe(self, now: int, urgent: bool = False) -> None:
        """A data frame came, or credits were freed."""
        if not self._owed:
            self._since = now
        self._owed += 1
        self._is_urgent |= urgent or self._owed >= self.settings.ack_every

    def pay(self, now: int, alone: bool) -> None:
        """The other end is told: by an acknowledgement alone, or (if nothing is urgent) with a data frame."""
        if alone:
            self._last = now
        if alone or not self._is_urgent:
            self._owed, self._is_urgent = 0, False

    @property
    def deadline(self) -> int | None:
        """When an acknowledgement is due if nothing happens before; None: never."""
        if self._is_urgent:
            return self._since
        times = [self._since + self.settings.ack_delay] if self._owed else []
        if self.settings.sync_interval:
            times.append(self._last + self.settings.sync_interval)
        return min(times, default=None)

    def is_due(self, now: int) -> bool:
        """Whether one is due."""
        deadline = self.deadline
        return deadline is not None and now >= deadline
