"""Injects faults into frames on their way: at random from a seed, or by a script.

An ``Injector`` stands between any two ends that send and take frames as bytes, be they models or simulated hardware:
``send`` puts a frame in, ``receive`` takes out what has arrived.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Iterable
from random import Random

from .fault_script import Action, Rule
from .frame import FrameError, split_tags
from .wire import ControlBody, FrameHeader, Kind, Message, TrafficClass

HOLD = 4096
"""Clocks after which a reordered frame comes even if none came behind it."""


@dataclasses.dataclass(frozen=True)
class Rates:
    """How often each fault comes, 0 to 1 of all frames, and how hard. A frame has one of them at the most.

    Attributes:
        drop, duplicate, reorder, delay, flip, truncate: see ``Action``.
        burst: how often a run of losses begins.
        burst_frames: the most frames that are lost in a run.
        clocks: the most that a frame, or its copy, is late.
        frames: the most frames that overtake a reordered one.

    Raises:
        ValueError: a rate below 0, or all of them above 1 together; a limit below 1.
    """

    drop: float = 0
    duplicate: float = 0
    reorder: float = 0
    delay: float = 0
    flip: float = 0
    truncate: float = 0
    burst: float = 0
    burst_frames: int = 8
    clocks: int = 3000
    frames: int = 8

    def __post_init__(self) -> None:
        rates = {name: getattr(self, name) for name in (*(action.value for action in Action), "burst")}
        for name, rate in rates.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"{name} must be 0 to 1, not {rate!r}")
        if sum(rates.values()) > 1:
            raise ValueError(f"the rates must be 1 or less together, not {sum(rates.values())!r}")
        for name in ("burst_frames", "clocks", "frames"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, not {getattr(self, name)!r}")

    @classmethod
    def each(cls, rate: float) -> Rates:
        """The same rate for every fault, bursts (of 2 to 8 frames) a tenth of it."""
        return cls(rate, rate, rate, rate, rate, rate, rate / 10)


@dataclasses.dataclass(frozen=True)
class Shape:
    """What a rule can know of a frame: the names that fit it, its PSN if it has one, and its destination."""

    names: frozenset[str]
    psn: int | None = None
    qp: int | None = None


OTHER = Shape(frozenset({"frame", "other"}))


def shape(data: bytes) -> Shape:
    """What a rule can know of any bytes; they need not be a frame that is right."""
    try:
        start = split_tags(data)[1]
    except FrameError:
        return OTHER
    if len(data) < start + FrameHeader.SIZE:
        return OTHER
    header = FrameHeader.unpack(data[start:])
    if header.kind == Kind.DATA:
        words = {TrafficClass.REQUEST: "request", TrafficClass.RESPONSE: "response", TrafficClass.ATOMIC: "atomic"}
        names = {"frame", "data", words.get(TrafficClass(header.traffic_class & 3), "data")}
        return Shape(frozenset(names), header.seq, header.dst_qp)
    if header.kind == Kind.ACK:
        return Shape(frozenset({"frame", "ack"}), None, header.dst_qp)
    body = data[start + FrameHeader.SIZE :]
    if header.kind != Kind.CONTROL or len(body) < ControlBody.SIZE:
        return OTHER
    message = ControlBody.unpack(body).message
    names = {"frame", "control", *({Message(message).name.lower()} if message in list(Message) else ())}
    return Shape(frozenset(names), None, header.dst_qp)


class Injector:
    """One direction between two ends.

    Args:
        rules: those of a script; all must be of one direction. The first that fits a frame is carried out.
        rates: of faults at random, for frames that no rule fits.
        seed: of the random numbers.
        direction: what ``log`` calls it.
        keep_log: whether there is one.

    ``counts`` says how often each fault was injected, and ``log`` has a rule for each, so that a run at random can be
    repeated by a script. ``frames`` counts frames.
    """

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        rates: Rates | None = None,
        seed: int = 0,
        direction: str = "A>B",
        keep_log: bool = True,
    ) -> None:
        self.rules, self.rates, self.direction = list(rules), rates, direction
        self.keep_log = keep_log
        self.counts = dict.fromkeys(Action, 0)
        self.log: list[Rule] = []
        self.frames = 0
        self._rng = Random(seed)
        self._matches = [0] * len(self.rules)
        self._burst = 0
        self._numbers = itertools.count()
        self._data: dict[int, bytes] = {}
        self._arrivals: list[tuple[int, int, int]] = []  # time, order, number in _data
        self._held: list[list[int]] = []  # frames that must overtake it, number in _data

    @property
    def deadline(self) -> int | None:
        """When the next frame arrives; None: none is on its way."""
        while self._arrivals and self._arrivals[0][2] not in self._data:
            heapq.heappop(self._arrivals)
        return self._arrivals[0][0] if self._arrivals else None

    def send(self, data: bytes, time: int) -> None:
        """Put a frame in that would arrive at a time, in clocks."""
        self.frames += 1
        fault = self._scripted(data) if self.rules else None
        if fault is None and self.rates is not None:
            fault = self._random(data)
        self._apply(data, time, fault)

    def receive(self, now: int) -> list[bytes]:
        """The frames that have arrived, in order."""
        frames = []
        while self._arrivals and self._arrivals[0][0] <= now:
            data = self._data.pop(heapq.heappop(self._arrivals)[2], None)
            if data is not None:
                frames.append(data)
        return frames

    def _apply(self, data: bytes, time: int, fault: tuple[Action, int] | None) -> None:
        action, amount = fault or (None, 0)
        if action is not None:
            self.counts[action] += 1
            if self.keep_log:
                self.log.append(Rule(self.direction, action, amount, "frame", self.frames, self.frames))
        if action is Action.FLIP:
            data = flip(data, amount)
        elif action is Action.TRUNCATE:
            data = data[:amount]
        late = {Action.DELAY: amount, Action.REORDER: HOLD}.get(action, 0) if action else 0
        if action is not Action.DROP:
            number = self._arrive(data, time + late)
        if action is Action.DUPLICATE:
            self._arrive(data, time + amount)
        self._overtake(time)
        if action is Action.REORDER:
            self._held.append([amount, number])

    def _arrive(self, data: bytes, time: int) -> int:
        number = next(self._numbers)
        self._data[number] = data
        heapq.heappush(self._arrivals, (time, number, number))
        return number

    def _overtake(self, time: int) -> None:
        """A frame was sent behind those that are held back."""
        for held in self._held:
            held[0] -= 1
            if held[0] <= 0:
                heapq.heappush(self._arrivals, (time, next(self._numbers), held[1]))
        self._held = [held for held in self._held if held[0] > 0]

    def _scripted(self, data: bytes) -> tuple[Action, int] | None:
        """What the first rule that fits says; every rule counts the frames that it is about."""
        found, what = None, shape(data)
        for index, rule in enumerate(self.rules):
            if rule.name in what.names and rule.psn in (None, what.psn) and rule.qp in (None, what.qp):
                self._matches[index] += 1
                is_meant = rule.first <= self._matches[index] and (not rule.last or self._matches[index] <= rule.last)
                if is_meant and found is None:
                    found = rule.action, rule.amount
        return found

    def _random(self, data: bytes) -> tuple[Action, int] | None:
        rates, rng = self.rates, self._rng
        if self._burst:
            self._burst -= 1
            return Action.DROP, 0
        assert rates is not None
        draw = rng.random()
        for action in Action:
            draw -= getattr(rates, action.value)
            if draw < 0:
                return action, self._amount(action, len(data))
        if draw < rates.burst:
            self._burst = rng.randint(1, rates.burst_frames) - 1
            return Action.DROP, 0
        return None

    def _amount(self, action: Action, size: int) -> int:
        assert self.rates is not None
        most = {
            Action.DUPLICATE: self.rates.clocks,
            Action.REORDER: self.rates.frames,
            Action.DELAY: self.rates.clocks,
            Action.FLIP: 8 * size - 1,
            Action.TRUNCATE: size - 1,
        }.get(action, 0)
        return self._rng.randint(min(1, most), most)


def flip(data: bytes, bit: int) -> bytes:
    """A frame with one bit flipped, counted as ``Action.FLIP`` does; past the end it begins again."""
    if not data:
        return data
    changed = bytearray(data)
    changed[bit // 8 % len(data)] ^= 1 << bit % 8
    return bytes(changed)
