"""Decides when a connection's acknowledgement is sent by itself."""

from __future__ import annotations

from collections.abc import Sequence

from .transport import TransportSettings

URGENT_SHARE = 4  # freed credits are told at once when they are one in so many of those granted


class Acknowledger:
    """Keeps count of what the other end has not been told.

    An acknowledgement is due at once for ``ack_every`` data frames, for one that came twice, too far, or out of order,
    and for a quarter of a class's credits; after ``ack_delay`` for less; and after ``sync_interval`` for nothing at
    all.

    Args:
        settings: see ``TransportSettings``.
        granted: credits of each class that the other end may use.
        now: when the connection opened.
    """

    def __init__(self, settings: TransportSettings, granted: Sequence[int], now: int = 0) -> None:
        self.settings = settings
        self.granted = granted
        self.is_urgent = False  # one is due at once
        self._frames = 0  # data frames that the other end was not told of
        self._credits = [0] * len(granted)  # freed credits that it was not told of
        self._since = now  # when it was first owed something
        self._last = now  # when an acknowledgement was sent by itself

    def take(self, now: int, urgent: bool = False) -> None:
        """A data frame came."""
        self._owe(now)
        self._frames += 1
        self.is_urgent |= urgent or self._frames >= self.settings.ack_every

    def free(self, now: int, traffic_class: int, credits: int) -> None:
        """Credits of a class were freed."""
        self._owe(now)
        self._credits[traffic_class] += credits
        self.is_urgent |= self._credits[traffic_class] * URGENT_SHARE >= self.granted[traffic_class]

    def pay_with_data(self, traffic_class: int) -> None:
        """A data frame goes out, and tells what was freed of a class; it pays for nothing if more is urgent."""
        if not self.is_urgent:
            self._frames = self._credits[traffic_class] = 0

    def pay(self, now: int) -> None:
        """An acknowledgement goes out by itself."""
        self._last = now
        self._frames, self._credits, self.is_urgent = 0, [0] * len(self.granted), False

    @property
    def deadline(self) -> int:
        """When an acknowledgement is due if nothing happens before."""
        if self.is_urgent:
            return self._since
        sync = self._last + self.settings.sync_interval
        return min(self._since + self.settings.ack_delay, sync) if self._owes else sync

    @property
    def _owes(self) -> bool:
        return self._frames > 0 or any(self._credits)

    def _owe(self, now: int) -> None:
        if not self._owes:
            self._since = now
