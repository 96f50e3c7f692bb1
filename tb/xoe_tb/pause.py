"""Pause generators: endless booleans, one a clock, true where a source or a sink holds back."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from random import Random


def never() -> Iterator[bool]:
    """Full speed."""
    return itertools.repeat(False)


def always_other() -> Iterator[bool]:
    """Every other clock."""
    return itertools.cycle((True, False))


def bursts(rng: Random, longest: int = 12) -> Iterator[bool]:
    """Stretches of work and of pause, each of 1 to ``longest`` clocks."""
    for paused in itertools.cycle((False, True)):
        yield from itertools.repeat(paused, rng.randint(1, longest))


def random_pause(rng: Random, p: float = 0.5) -> Iterator[bool]:
    """Each clock on its own, paused with probability ``p``."""
    while True:
        yield rng.random() < p


PAUSES: dict[str, Callable[[Random], Iterator[bool]]] = {
    "never": lambda rng: never(),
    "always_other": lambda rng: always_other(),
    "bursts": bursts,
    "random": random_pause,
}
"""Every pattern by name, for ``cocotb.parametrize``; call one with a random generator."""
