"""Judges what came of commands by what a user sees alone: how they completed, and what memory holds in the end.

It works on any end, of hardware too, of which nobody can see what its peer carries out. A command that completes with
status "done" was carried out once, one that is refused was not, and of one that is lost, or forgotten in a reset, it is
not known: it was carried out once or not at all. What memory may hold follows from that; additions of large random
numbers show whether one was carried out twice.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Callable, Iterator

from .command import Command, Completion
from .stimulus import region
from .wire import Opcode, Status

LOST = (Status.CONNECTION_LOST, Status.TIMED_OUT)
"""How commands end of which nobody knows whether they were carried out."""

POSSIBLE_MAX = 1 << 18  # numbers that a counter may hold


class OutcomeError(AssertionError):
    """What must not happen has happened."""


@dataclasses.dataclass
class _Given:
    """A command, and how it ended: None while it has not."""

    command: Command
    completion: Completion | None = None
    is_over: bool = False


class _Region:
    """What each cell of a part of memory may hold, as far as it is known how commands ended; these count in order."""

    def __init__(self, start: int, size: int, cell: int) -> None:
        self.start, self.cell = start, cell
        self.possible = [{0} for _ in range(size // cell)]
        self.waiting: deque[_Given] = deque()

    def settle(self) -> None:
        """Take the commands of which all before them have ended."""
        while self.waiting and self.waiting[0].is_over:
            given = self.waiting.popleft()
            completion = given.completion
            if completion is None or completion.status in LOST:
                self._change(given.command, is_certain=False)
            elif completion.status == Status.DONE:
                if given.command.opcode in (Opcode.READ, Opcode.ADD):
                    self._narrow(given.command.address, completion.data, f"{given.command} returned")
                self._change(given.command, is_certain=True)

    def check(self, held: bytes) -> None:
        """Memory holds these bytes, in the end."""
        self._narrow(self.start, held, "memory holds")

    def _cells(self, address: int, data: bytes) -> Iterator[tuple[int, int]]:
        """The cells that some bytes cover, and the number in each."""
        first = (address - self.start) // self.cell
        for at in range(0, len(data), self.cell):
            yield first + at // self.cell, int.from_bytes(data[at : at + self.cell], "little")

    def _narrow(self, address: int, data: bytes, what: str) -> None:
        for index, number in self._cells(address, data):
            if number not in self.possible[index]:
                told = ", ".join(f"{each:#x}" for each in sorted(self.possible[index])[:4])
                where = self.start + index * self.cell
                raise OutcomeError(f"{what} {number:#x} at {where:#x}, not one of {told}")
            self.possible[index] = {number}

    def _change(self, command: Command, is_certain: bool) -> None:
        if command.opcode not in (Opcode.WRITE, Opcode.ADD):
            return
        for index, number in self._cells(command.address, command.data):
            old = self.possible[index]
            adds = command.opcode == Opcode.ADD
            new = {(each + number) % (1 << 64) for each in old} if adds else {number}
            self.possible[index] = new if is_certain else new | old
            if len(self.possible[index]) > POSSIBLE_MAX:
                raise OutcomeError(f"too many additions were lost in a row to tell what {self.start:#x} may hold")


class Outcomes:
    """Watches the commands of one end: reads, writes, additions of 8 bytes and fences, as in ``xoe.stimulus``.

    Memory is taken to hold zeros at first. Ids may come again once all before them have completed. ``counts`` says how
    many ended with each status, ``forgotten`` how many a reset took away.
    """

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.forgotten = 0
        self._given: dict[int, _Given] = {}
        self._regions: dict[int, _Region] = {}

    @property
    def under_way(self) -> int:
        """Commands that have not ended."""
        return len(self._given)

    def submit(self, command: Command) -> None:
        """A command is given to the end."""
        start, size, cell = region(command.address)
        given = self._given[command.id] = _Given(command)
        if command.opcode != Opcode.FENCE:
            self._regions.setdefault(start, _Region(start, size, cell)).waiting.append(given)

    def completed(self, completion: Completion) -> None:
        """A command has completed.

        Raises:
            OutcomeError: it was not under way, or ended in a way that it should not.
        """
        given = self._given.pop(completion.id, None)
        if given is None:
            raise OutcomeError(f"{completion} completes nothing that is under way")
        if completion.status not in (Status.DONE, Status.NOT_CONNECTED, *LOST):
            raise OutcomeError(f"{given.command} ended as {completion}")
        self.counts[completion.status] += 1
        given.completion = completion
        self._end(given)

    def forget(self) -> int:
        """The end is reset: none of its commands completes any more. How many there were."""
        lost, self._given = list(self._given.values()), {}
        for given in lost:
            self._end(given)
        self.forgotten += len(lost)
        return len(lost)

    def _end(self, given: _Given) -> None:
        given.is_over = True
        found = self._regions.get(region(given.command.address)[0])
        if found is not None:
            found.settle()

    def judge(self, read: Callable[[int, int], bytes]) -> None:
        """In the end; ``read`` returns so many bytes at an address of the other end's memory.

        Raises:
            OutcomeError: a command has not completed, or memory holds what it can't.
        """
        if self._given:
            first = next(iter(self._given.values())).command
            raise OutcomeError(f"{len(self._given)} commands did not complete, such as {first}")
        for start, found in self._regions.items():
            found.check(read(start, len(found.possible) * found.cell))
