"""The users of both ends: they keep connections open, ask for things, and judge what comes of it."""

from __future__ import annotations

from collections.abc import Callable

from xoe.command import Command, Completion
from xoe.connection import Notice
from xoe.network import HangError
from xoe.outcomes import Outcomes
from xoe.pair import PEERS, local_qp

from .ends import Cable, End

JOINS = {  # after which of the things that it is told a user has to act, so that the connection opens again
    "A": (Notice.CLOSED, Notice.PEER_CLOSED, Notice.OPEN_FAILED, Notice.LOST),
    "B": (Notice.CLOSED,),
}


class Users:
    """Two users, who see no more than a user does.

    ``is_open`` has the connections (as A numbers them) that each end knows to be open; ``outcomes`` what came of the
    commands of each.

    Args:
        cable: with both ends.
        connections: how many to keep open.
        on_completion: is given the end and each completion.
    """

    def __init__(
        self, cable: Cable, connections: int, on_completion: Callable[[str, Completion], None] | None = None
    ) -> None:
        self.cable, self.connections = cable, connections
        self.outcomes = {name: Outcomes() for name in PEERS}
        self.is_open: dict[str, set[int]] = {name: set() for name in PEERS}
        self.completed = 0
        self._on_completion = on_completion
        self._queue_pairs = cable.ends["A"].queue_pairs
        self._progress, self._since = -1, 0

    def end(self, name: str) -> End:
        """An end."""
        return self.cable.ends[name]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return not any(each.under_way for each in self.outcomes.values())

    @property
    def are_open(self) -> bool:
        """Whether both ends know that all connections are open."""
        return all(len(known) == self.connections for known in self.is_open.values())

    async def start(self) -> None:
        """Reset both ends, and let them open all connections."""
        await self.cable.reset()
        for name in PEERS:
            self._join_all(name)

    async def step(self, patience: int) -> None:
        """Let a clock pass, and see what has happened.

        Raises:
            HangError: nothing was completed for so many clocks, though something is under way.
            OutcomeError: what must not happen has happened.
        """
        await self.cable.step()
        for name, end in self.cable.ends.items():
            while end.completions:
                completion = end.completions.popleft()
                self.outcomes[name].completed(completion)
                self.completed += 1
                if self._on_completion is not None:
                    self._on_completion(name, completion)
            while end.notices:
                self._take_notice(name, *end.notices.popleft())
        if self.completed != self._progress or self.is_idle:
            self._progress, self._since = self.completed, self.cable.now
        elif self.cable.now - self._since > patience:
            waiting = ", ".join(f"{each.under_way} of {name}" for name, each in self.outcomes.items())
            raise HangError(f"nothing was completed for {patience} clocks; commands under way: {waiting}")

    def submit(self, name: str, command: Command) -> None:
        """Let the user of an end ask for something."""
        self.outcomes[name].submit(command)
        self.end(name).submit(command)

    async def reset(self, name: str) -> None:
        """Reset an end, and let it connect again."""
        self.is_open[name].clear()
        self.outcomes[name].forget()
        await self.end(name).reset()
        self._join_all(name)

    def close(self, name: str, connection: int) -> None:
        """Let the user of an end close a connection; it will be opened again."""
        self.end(name).close(self._local(name, connection))

    def judge(self) -> None:
        """In the end.

        Raises:
            OutcomeError: what must not happen has happened.
        """
        for name, peer in PEERS.items():
            self.outcomes[name].judge(self.end(peer).read)

    def _local(self, name: str, connection: int) -> int:
        return local_qp(name, connection, self._queue_pairs)

    def _join_all(self, name: str) -> None:
        for connection in range(self.connections):
            self.end(name).join(self._local(name, connection))

    def _take_notice(self, name: str, qp: int, notice: Notice) -> None:
        connection = next(each for each in range(self.connections) if self._local(name, each) == qp)
        if notice is Notice.OPENED:
            self.is_open[name].add(connection)
        else:
            self.is_open[name].discard(connection)
        if notice in JOINS[name]:
            self.end(name).join(qp)
