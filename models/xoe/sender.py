"""The sending end of a connection: what is outstanding, what is lost, and what is sent again."""

from __future__ import annotations

import dataclasses
from typing import Generic, TypeVar

from .config import WINDOW_MAX, check_range
from .cyclic import SEQ_BITS, after, distance
from .transport import BACKOFF_MAX, TransportSettings

FrameT = TypeVar("FrameT")


@dataclasses.dataclass
class _Outstanding(Generic[FrameT]):
    """A frame without acknowledgement.

    ``order`` counts transmissions: the number of the latest of this frame. ``waits``: it is to be sent again.
    ``copied``: it was sent more than once, or is to be.
    """

    frame: FrameT
    order: int
    sent_at: int
    tries: int = 0  # how often it was lost, for which it is to blame
    copied: bool = False
    waits: bool = False


class Sender(Generic[FrameT]):
    """Numbers frames, keeps each until it is acknowledged, and says which to send again, and when.

    Loss is found by the order of transmission: when a frame that was sent more than ``reorder`` frames later has
    arrived, then the earlier one has not. So a copy that is lost is found as the first one was. That a frame which was
    sent more than once has arrived says something about its latest copy only if that was sent at least the shortest
    round trip ago that was seen (RFC 8985, 6.2, step 1).

    Args:
        window: frames that may be outstanding, 1..128.
        settings: see ``TransportSettings``.
        first_seq: PSN of the first frame.

    ``is_failed``: a frame was sent as often as it may be; nothing more is sent. ``rtt_min`` is the shortest round trip
    seen, in clocks, None before the first.

    Raises:
        ConfigError: ``window`` or ``first_seq`` out of bounds.
    """

    def __init__(self, window: int, settings: TransportSettings, first_seq: int = 0) -> None:
        check_range("window", window, 1, WINDOW_MAX)
        check_range("first_seq", first_seq, 0, (1 << SEQ_BITS) - 1)
        self.window = window
        self.settings = settings
        self.first_outstanding = self.next_seq = first_seq
        self.is_failed = False
        self.rtt_min: int | None = None
        self.resent = self.probes = self.timeouts = self.acks_refused = 0
        self._outstanding: dict[int, _Outstanding[FrameT]] = {}  # by PSN, oldest first
        self._resends: list[int] = []  # PSNs, in the order in which they were found lost
        self._order = 0
        self._delivered = -1  # the latest transmission that is known to have arrived
        self._backoff = 0
        self._attempts = 0  # to go back, without success
        self._is_probed = False
        self._deadline: int | None = None

    @property
    def room(self) -> int:
        """Frames that may be sent before one is acknowledged."""
        if self.is_failed:
            return 0
        return self.window - distance(self.next_seq, self.first_outstanding, SEQ_BITS)

    @property
    def deadline(self) -> int | None:
        """When ``tick`` is to be called, if nothing happens before."""
        return self._deadline

    @property
    def outstanding(self) -> list[int]:
        """PSNs of the frames without acknowledgement, oldest first."""
        return list(self._outstanding)

    def send(self, frame: FrameT, now: int) -> int:
        """Keep a frame that is sent for the first time; its PSN. Only while there is ``room``.

        It is sent now, unless this end has gone back: then it is one of those that ``resend`` gives, behind the others.
        """
        seq = self.next_seq
        self.next_seq = after(seq, 1, SEQ_BITS)
        if self.settings.go_back_n and any(each.waits for each in self._outstanding.values()):
            self._outstanding[seq] = _Outstanding(frame, 0, now, copied=True, waits=True)
            self._resends.append(seq)
        else:
            self._outstanding[seq] = _Outstanding(frame, self._count(), now)
            self._start_timer(now)
        return seq

    def resend(self, now: int) -> tuple[int, FrameT] | None:
        """The next frame to send again, with its PSN."""
        if self.is_failed:
            return None
        while self._resends:
            seq = self._resends.pop(0)
            found = self._outstanding.get(seq)
            if found is None:
                continue  # acknowledged while it waited
            found.waits, found.order, found.sent_at = False, self._count(), now
            self.resent += 1
            self._start_timer(now)
            return seq, found.frame
        return None

    def acknowledge(self, ack: int, sack: int, now: int, nack: bool = False) -> list[FrameT]:
        """Take an acknowledgement: all before ``ack`` has arrived, and ``ack`` + 1 + n if bit n of ``sack`` is set.

        One for what was never sent, or older than the last, says nothing. Returns the frames that are done with.
        """
        sent = distance(self.next_seq, self.first_outstanding, SEQ_BITS)
        advance = distance(ack, self.first_outstanding, SEQ_BITS)
        if advance > sent:
            self.acks_refused += 1
            return []
        arrived = [after(self.first_outstanding, step, SEQ_BITS) for step in range(advance)]
        beyond = range(sent - advance - 1)
        arrived += [after(ack, 1 + step, SEQ_BITS) for step in beyond if sack >> step & 1]
        self.first_outstanding = ack
        done = [self._outstanding.pop(seq) for seq in arrived if seq in self._outstanding]
        for each in done:
            self._learn(each, now)
        if done:
            self._backoff, self._attempts, self._is_probed, self._deadline = 0, 0, False, None
            self._start_timer(now)
        if self.settings.go_back_n:
            if nack and self._outstanding:
                self._go_back(now)
        else:
            self._find_lost()
        return [each.frame for each in done]

    def tick(self, now: int) -> None:
        """Look at the timer: a probe first, then all that is outstanding again."""
        if self._deadline is None or now < self._deadline or self.is_failed:
            return
        on_wire = [seq for seq, each in self._outstanding.items() if not each.waits]
        is_probe = bool(self.settings.probe_timeout) and not self._is_probed and not self.settings.go_back_n
        self._is_probed = True
        if is_probe:
            if on_wire and self._outstanding[on_wire[-1]].tries < self.settings.retries:
                self.probes += 1
                self._lose(on_wire[-1])
        else:
            self.timeouts += 1
            self._backoff = min(self._backoff + 1, BACKOFF_MAX)
            if self.settings.go_back_n:
                self._go_back(now)
            else:
                for seq in on_wire:
                    self._lose(seq)
        self._deadline = None
        self._start_timer(now)

    def abandon(self) -> list[FrameT]:
        """Give the connection up: nothing is sent any more. Returns what was outstanding, oldest first."""
        frames = [each.frame for each in self._outstanding.values()]
        self._outstanding.clear()
        self._resends.clear()
        self._deadline, self.is_failed = None, True
        return frames

    def _count(self) -> int:
        self._order += 1
        return self._order - 1

    def _start_timer(self, now: int) -> None:
        """Start the timer if it stands still and something is outstanding."""
        if not self._outstanding:
            self._deadline = None
        elif self._deadline is None:
            settings = self.settings
            is_probe = settings.probe_timeout and not self._is_probed and not settings.go_back_n
            self._deadline = now + (settings.probe_timeout if is_probe else settings.resend_timeout << self._backoff)

    def _learn(self, done: _Outstanding[FrameT], now: int) -> None:
        """What the arrival of a frame says about others and about the round trip."""
        elapsed = now - done.sent_at
        if not done.copied:
            self.rtt_min = elapsed if self.rtt_min is None else min(self.rtt_min, elapsed)
        if not done.copied or (not done.waits and self.rtt_min is not None and elapsed >= self.rtt_min):
            self._delivered = max(self._delivered, done.order)

    def _find_lost(self) -> None:
        on_wire = [(each.order, seq) for seq, each in self._outstanding.items() if not each.waits]
        for order, seq in sorted(on_wire):
            if self._delivered - order > self.settings.reorder:
                self._lose(seq)

    def _lose(self, seq: int) -> None:
        found = self._outstanding[seq]
        if found.tries >= self.settings.retries:
            self.is_failed = True
            return
        found.tries += 1
        found.waits = found.copied = True
        self._resends.append(seq)

    def _go_back(self, now: int) -> None:
        """Send everything from the oldest frame on again, unless that has had no success too often."""
        if self._attempts >= self.settings.retries:
            self.is_failed = True
            return
        self._attempts += 1
        for each in self._outstanding.values():
            each.waits = each.copied = True
        self._resends = list(self._outstanding)
        self._deadline = None
        self._start_timer(now)
