"""What shall go wrong, as text that can be read, kept and replayed.

A line is a rule about frames of one direction, or an event at a time; ``#`` begins a comment::

    A>B drop data psn=5 nth=3         # the third copy of PSN 5
    B>A delay=3000 response nth=2     # the second frame with answers comes 3000 clocks late
    A>B drop frame nth=10..20
    B>A flip=77 ack nth=1
    at 5000 A reset
    at 6000 A connect qp=1

What the verbs of events mean is up to whoever runs them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from enum import Enum


class ScriptError(ValueError):
    """A script that cannot be used; the message names the line, what is allowed there and what is there."""


class Action(Enum):
    """What is done to a frame; some have an amount."""

    DROP = "drop"
    DUPLICATE = "duplicate"  # the copy comes so many clocks after the frame
    REORDER = "reorder"  # it comes after so many of the frames behind it
    DELAY = "delay"  # clocks
    FLIP = "flip"  # a bit: number % 8, from the least significant, of byte number // 8
    TRUNCATE = "truncate"  # to so many bytes


AMOUNTS = {Action.DUPLICATE: 0, Action.REORDER: 1, Action.DELAY: None, Action.FLIP: None, Action.TRUNCATE: None}
"""The amount of an action when none is given; None: one must be."""

NAMES = ("frame", "data", "request", "response", "atomic", "ack", "control", "open", "close", "closed", "other")
"""Kinds of frames: all; data frames, and those of each class; acknowledgements; control frames, and each message;
and all that is none of ours."""

_NUMBER = re.compile(r"(0x[0-9a-fA-F]+|[0-9]+)$")
_DIRECTION = re.compile(r"\w+>\w+$")


@dataclasses.dataclass(frozen=True)
class Rule:
    """A fault, and the frames that have it.

    Attributes:
        direction: "A>B".
        action: see ``Action``.
        amount: see ``Action``.
        name: one of ``NAMES``.
        first, last: which of the frames that the rest fits, counted from 1; last 0: all from the first on.
        psn: only frames with this PSN.
        qp: only frames to this queue pair.
    """

    direction: str
    action: Action
    amount: int = 0
    name: str = "frame"
    first: int = 1
    last: int = 0
    psn: int | None = None
    qp: int | None = None

    def __str__(self) -> str:
        words = [self.direction, self.action.value + (f"={self.amount}" if self.action in AMOUNTS else ""), self.name]
        words += [f"{key}={value}" for key, value in (("psn", self.psn), ("qp", self.qp)) if value is not None]
        if self.last:
            words.append(f"nth={self.first}" if self.first == self.last else f"nth={self.first}..{self.last}")
        elif self.first > 1:
            words.append(f"nth={self.first}..")
        return " ".join(words)


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happens to an end at a time, in clocks."""

    time: int
    end: str
    verb: str
    arguments: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        return " ".join(
            [f"at {self.time} {self.end} {self.verb}", *(f"{key}={value}" for key, value in self.arguments)]
        )


@dataclasses.dataclass(frozen=True)
class Script:
    """Rules and events; ``str`` gives the text that ``parse`` reads."""

    rules: tuple[Rule, ...] = ()
    events: tuple[Event, ...] = ()

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in (*self.rules, *self.events))

    @classmethod
    def parse(cls, text: str) -> Script:
        """The script that a text is.

        Raises:
            ScriptError: it is none.
        """
        rules, events = [], []
        for number, line in enumerate(text.splitlines(), start=1):
            words = line.split("#")[0].split()
            try:
                if words and words[0] == "at":
                    events.append(_parse_event(words))
                elif words:
                    rules.append(_parse_rule(words))
            except ScriptError as error:
                raise ScriptError(f"line {number}: {error}") from None
        return cls(tuple(rules), tuple(events))


def _parse_rule(words: list[str]) -> Rule:
    if len(words) < 3:
        raise ScriptError(f"a rule is DIRECTION ACTION FRAMES, such as A>B drop data nth=1, not {' '.join(words)!r}")
    direction, action_word, name, *rest = words
    if not _DIRECTION.match(direction):
        raise ScriptError(f"a direction is two names with > between, such as A>B, not {direction!r}")
    if name not in NAMES:
        raise ScriptError(f"frames must be one of {', '.join(NAMES)}, not {name!r}")
    action, amount = _parse_action(action_word)
    first, last, others = 1, 0, {}
    for key, value in _pairs(rest, ("nth", "psn", "qp")):
        if key == "nth":
            first, last = _parse_range(value)
        else:
            others[key] = _number(key, value)
    return Rule(direction, action, amount, name, first, last, others.get("psn"), others.get("qp"))


def _parse_action(word: str) -> tuple[Action, int]:
    name, equals, value = word.partition("=")
    names = [action.value for action in Action]
    if name not in names:
        raise ScriptError(f"an action must be one of {', '.join(names)}, not {name!r}")
    action = Action(name)
    if action not in AMOUNTS:
        if equals:
            raise ScriptError(f"{name} takes no number, not {word!r}")
        return action, 0
    default = AMOUNTS[action]
    if not equals and default is None:
        raise ScriptError(f"{name} needs a number, such as {name}=100")
    return action, _number(name, value) if equals else default or 0


def _parse_range(value: str) -> tuple[int, int]:
    """``n``, ``n..m`` or ``n..``: first and last, 0 for no end."""
    low, dots, high = value.partition("..")
    first = _number("nth", low)
    last = (_number("nth", high) if high else 0) if dots else first
    if first < 1 or (last and last < first):
        raise ScriptError(f"nth must be a number from 1 on, or a range of them such as 10..20, not {value!r}")
    return first, last


def _parse_event(words: list[str]) -> Event:
    if len(words) < 4:
        raise ScriptError(f"an event is at TIME END VERB, such as at 5000 A reset, not {' '.join(words)!r}")
    _, time, end, verb, *rest = words
    arguments = tuple((key, _number(key, value)) for key, value in _pairs(rest))
    return Event(_number("a time", time), end, verb, arguments)


def _pairs(words: Iterable[str], allowed: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Words such as ``qp=1``, taken apart."""
    pairs = []
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or (allowed and key not in allowed):
            names = " or ".join(f"{name}=" for name in allowed) or "name=number"
            raise ScriptError(f"{names} may follow, not {word!r}")
        pairs.append((key, value))
    return pairs


def _number(name: str, value: str) -> int:
    if not _NUMBER.match(value):
        raise ScriptError(f"{name} must be a number from 0 on, not {value!r}")
    return int(value, 0) if value.startswith("0x") else int(value)
