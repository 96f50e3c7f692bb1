"""The user's side of a NIC with transport: commands that wait, and completions that were not fetched."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable

from .command import Command, Completion, Request
from .operation import Operation
from .parser import Route
from .requester import Requester
from .traffic import Traffic
from .wire import Status


class Initiator:
    """Starts commands in their order, as long as there is room for the completion of each.

    So responses always find room, whatever the user does with completions.

    Args:
        requester: checks commands and keeps tags.
        most: tags in flight and completions not fetched, together.
        counts: where to count commands that end without an answer.
        is_connected: whether there is a connection to where a command goes.
        ask: is given each request to send.

    ``completions`` has those not fetched yet.
    """

    def __init__(
        self,
        requester: Requester,
        most: int,
        counts: Counter[Traffic],
        is_connected: Callable[[Route], bool],
        ask: Callable[[Request], None],
    ) -> None:
        self.requester = requester
        self.completions: deque[Completion] = deque()
        self.completed = 0
        self._most = most
        self._counts = counts
        self._is_connected, self._ask = is_connected, ask
        self._commands: deque[Command] = deque()

    @property
    def is_idle(self) -> bool:
        """Whether no command waits, or is under way."""
        return not self._commands and not self.requester.in_flight

    def submit(self, command: Command) -> None:
        """Let a command wait for its turn."""
        self._commands.append(command)

    def start(self) -> None:
        """Start what can be started."""
        while self._commands and self.requester.in_flight + len(self.completions) < self._most:
            started = self.requester.submit(self._commands[0], self._is_connected)
            if started is None:
                return
            self._commands.popleft()
            if isinstance(started, Request):
                self._ask(started)
            else:
                self._counts[Traffic.NOT_CONNECTED] += started.status == Status.NOT_CONNECTED
                self._complete([started])

    def answer(self, response: Operation) -> None:
        """A response has come for a command."""
        completion = self.requester.respond(response)
        if completion is not None:
            self._complete([completion])

    def abandon(self, qp: int) -> None:
        """The connection of a queue pair is lost, and with it all that is under way there."""
        lost = self.requester.abandon(qp)
        self._counts[Traffic.CONNECTION_LOST] += len(lost)
        self._complete(lost)

    def tick(self, now: int) -> None:
        """Give up what has waited too long."""
        self._complete(self.requester.step(now - self.requester.now))

    def _complete(self, completions: Iterable[Completion]) -> None:
        for completion in completions:
            self.completions.append(completion)
            self.completed += 1
