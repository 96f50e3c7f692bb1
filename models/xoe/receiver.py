"""The receiving end of a connection: what is new, what came before, and what can be delivered."""

from __future__ import annotations

from enum import IntEnum
from typing import Generic, TypeVar

from .config import WINDOW_MAX, check_range
from .cyclic import SEQ_BITS, after, distance

FrameT = TypeVar("FrameT")


class Verdict(IntEnum):
    """What a data frame's PSN says; each has a counter of its name in small letters. Only the first is kept."""

    NEW = 0
    DUPLICATE = 1  # it is here, or was: acknowledged again
    OUTSIDE = 2  # beyond the window: refused, acknowledged again
    OUT_OF_ORDER = 3  # not the next one, and everything from that on will be sent again
    NO_ROOM = 4  # it would take more credits than were granted: refused, not acknowledged


class Receiver(Generic[FrameT]):
    """Keeps frames until all before them are there, and delivers each once, in order.

    A frame is a duplicate if it is one of the 2**23 before the next expected one, and new if it is one of the
    ``window`` from that on and not here yet.

    Args:
        window: frames that may be here before the one expected, that one included: 1..128.
        first_seq: PSN of the first frame.
        go_back_n: keep no frame but the one expected.

    Raises:
        ConfigError: ``window`` or ``first_seq`` out of bounds.
    """

    def __init__(self, window: int, first_seq: int = 0, go_back_n: bool = False) -> None:
        check_range("window", window, 1, WINDOW_MAX)
        check_range("first_seq", first_seq, 0, (1 << SEQ_BITS) - 1)
        self.window = window
        self.go_back_n = go_back_n
        self.expected = first_seq
        self.owes_nack = False  # a frame is missing, and its sender was not told yet
        self.counters = dict.fromkeys(Verdict, 0)
        self._held: dict[int, FrameT] = {}
        self._is_nacked = False

    @property
    def sack(self) -> int:
        """Bit n: frame ``expected`` + 1 + n is here."""
        bits = (distance(seq, self.expected, SEQ_BITS) - 1 for seq in self._held)
        return sum(1 << bit for bit in bits)

    @property
    def held(self) -> list[FrameT]:
        """Frames that wait for one before them."""
        return list(self._held.values())

    def receive(self, seq: int, frame: FrameT, has_room: bool = True) -> Verdict:
        """Sort a frame by its PSN, and keep it if it is new and has the credits for it."""
        verdict = self._judge(seq)
        if verdict is Verdict.NEW and not has_room:
            verdict = Verdict.NO_ROOM
        self.counters[verdict] += 1
        if verdict is Verdict.NEW:
            self._held[seq] = frame
            self._is_nacked &= seq != self.expected
        elif verdict is Verdict.OUT_OF_ORDER and not self._is_nacked:
            self.owes_nack = self._is_nacked = True
        return verdict

    def deliver(self) -> list[FrameT]:
        """The frames whose turn it is, in order; they are this end's no more."""
        frames = []
        while self.expected in self._held:
            frames.append(self._held.pop(self.expected))
            self.expected = after(self.expected, 1, SEQ_BITS)
        return frames

    def _judge(self, seq: int) -> Verdict:
        ahead = distance(seq, self.expected, SEQ_BITS)
        if ahead >= 1 << SEQ_BITS - 1:
            return Verdict.DUPLICATE
        if ahead >= self.window:
            return Verdict.OUTSIDE
        if seq in self._held:
            return Verdict.DUPLICATE
        return Verdict.OUT_OF_ORDER if self.go_back_n and ahead else Verdict.NEW
