"""Joins ends by links with a delay and a rate, and lets time pass: from one thing that happens to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from .faults import Injector

WIRE_OVERHEAD = 24  # bytes per frame on a wire: preamble, FCS, inter-packet gap (IEEE 802.3 3.1.1, 4.4.2)

TURNS_MAX = 100_000  # without a step of time, before that is taken for an error


class End(Protocol):
    """What sends and takes frames; ``completed`` grows, or at least changes, while it gets anywhere."""

    @property
    def completed(self) -> int:
        """A count of completions."""

    @property
    def deadline(self) -> int | None:
        """When ``transmit`` may have something though nothing happens before."""

    def transmit(self, now: int, most: int | None = None) -> list[bytes]:
        """Frames to send now, ``most`` at the most."""

    def receive(self, data: bytes, now: int) -> object:
        """Take a frame."""


class HangError(Exception):
    """Nothing was completed for too long."""


class Link:
    """One direction of a cable.

    Args:
        delay: clocks from the end of a frame at the sender to the receiver.
        rate: bytes in a clock; None: a frame takes no time.
        injector: of faults, on the way.

    Raises:
        ValueError: a delay below 0 or a rate that is not above it.
    """

    def __init__(self, delay: int = 500, rate: float | None = None, injector: Injector | None = None) -> None:
        if delay < 0:
            raise ValueError(f"delay must be 0 or more, not {delay!r}")
        if rate is not None and rate <= 0:
            raise ValueError(f"rate must be above 0, not {rate!r}")
        self.delay, self.rate = delay, rate
        self.injector = Injector() if injector is None else injector
        self.free_at = 0
        self.bytes = 0

    @property
    def deadline(self) -> int | None:
        """When the next frame arrives; None: none is on its way."""
        return self.injector.deadline

    def send(self, data: bytes, now: int) -> None:
        """Put a frame in, behind those that are in already."""
        self.bytes += len(data)
        start = max(now, self.free_at)
        self.free_at = start if self.rate is None else start - int(-(len(data) + WIRE_OVERHEAD) // self.rate)
        self.injector.send(data, self.free_at + self.delay)

    def receive(self, now: int) -> list[bytes]:
        """The frames that have arrived."""
        return self.injector.receive(now)


def run(
    ends: Mapping[str, End],
    links: Mapping[str, Link],
    until: Callable[[int], bool],
    now: int = 0,
    events: Iterable[tuple[int, Callable[[int], None]]] = (),
    patience: int = 4_000_000,
) -> int:
    """Let time pass until ``until(now)``, which is asked whenever something has happened; the time then.

    Args:
        ends: by name.
        links: by direction, "A>B"; each end is at the start of one.
        until: may also do what a user does, such as to submit commands and to fetch completions.
        now: the time at first, in clocks.
        events: times, and what is called then with the time.
        patience: clocks without any completion after which it is taken that none will come.

    Raises:
        HangError: none came for so long, or nothing is left that could happen.
    """
    left = sorted(events, key=lambda event: event[0])
    outgoing = {direction.split(">")[0]: link for direction, link in links.items()}
    incoming = [(ends[direction.split(">")[1]], link) for direction, link in links.items()]
    progress, since, turns = -1, now, 0
    while True:
        while left and left[0][0] <= now:
            left.pop(0)[1](now)
        for end, link in incoming:
            for data in link.receive(now):
                end.receive(data, now)
        for name, end in ends.items():
            _send(end, outgoing[name], now)
        if until(now):
            return now
        for name, end in ends.items():  # what the user has just asked for
            _send(end, outgoing[name], now)
        completed = sum(end.completed for end in ends.values())
        if completed != progress:
            progress, since = completed, now
        times = [max(end.deadline, outgoing[name].free_at) for name, end in ends.items() if end.deadline is not None]
        times += [link.deadline for link in links.values() if link.deadline is not None]
        times += [link.free_at for link in links.values() if link.free_at > now]
        times += [left[0][0]] if left else []
        later = min(times, default=None)
        if later is None or later - since > patience:
            raise HangError(f"nothing was completed between clocks {since} and {now if later is None else later}")
        turns = turns + 1 if later <= now else 0
        if turns > TURNS_MAX:
            raise HangError(f"time stands still at {now}")
        now = max(now, later)


def _send(end: End, link: Link, now: int) -> None:
    """Let an end send as long as its link is free; one frame at a time, so that it chooses as late as it can."""
    if link.rate is None:
        for data in end.transmit(now):
            link.send(data, now)
        return
    while link.free_at <= now and (frames := end.transmit(now, 1)):
        link.send(frames[0], now)
