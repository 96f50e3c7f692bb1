"""Knows what may come of commands that are given to endpoints whose network, or users, do their worst.

It watches three things: which command got which tag, what each responder carried out, and how each command completed.
Whatever happens in between, a command is carried out once at the most, after those before it on its queue pair, and
completes once; with status "done" it was carried out, and returns what was found then.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from .command import Command, Completion, Request
from .endpoint import Endpoint
from .memory import Memory
from .operation import Operation
from .outcomes import LOST
from .wire import Opcode, Status


class OracleError(AssertionError):
    """What must not happen has happened."""


class Watched(Endpoint):
    """An endpoint that tells an oracle what it does; ``name`` and ``oracle`` are to be set before it is used."""

    name = ""
    oracle: Oracle

    def _clear(self, now: int) -> None:
        super()._clear(now)
        self._execute = self.responder.execute
        self.responder.execute = self._watch  # type: ignore[method-assign]

    def _watch(self, request: Operation, node: int) -> Operation | None:
        response = self._execute(request, node)
        self.oracle.carried_out(self.name, request, response)
        return response

    def _ask(self, request: Request) -> None:
        waiting = self.tags.record(request.operation.tag)
        self.oracle.started(self.name, request.operation.tag, waiting.command.id)
        super()._ask(request)


@dataclasses.dataclass
class _Given:
    """A command: its number, what it found when it was carried out (None: it was not), and how it completed."""

    number: int
    command: Command
    found: bytes | None = None
    status: int | None = None


class Oracle:
    """Watches two ends, which are known by name; ``peers`` says whose memory is meant by each one's commands.

    Commands are reads, writes, additions and fences. Their ids may come again once all before them have completed.
    ``counts`` says how many completed with each status, and ``forgotten`` how many a reset took away.
    """

    def __init__(self, peers: Mapping[str, str]) -> None:
        self.peers = dict(peers)
        self.contents = {name: Memory() for name in peers}
        self.counts: dict[int, int] = {}
        self.forgotten = 0
        self._given: dict[tuple[str, int], _Given] = {}  # by end and id, those that have not completed
        self._tagged: dict[tuple[str, int], _Given] = {}  # by end and tag
        self._latest: dict[tuple[str, int], int] = {}  # number of what was carried out last, by end and queue pair
        self._number = 0

    def submit(self, name: str, command: Command) -> None:
        """A command is given to an end."""
        self._number += 1
        self._given[name, command.id] = _Given(self._number, command)

    def started(self, name: str, tag: int, number: int) -> None:
        """The command with an id has got a tag."""
        self._tagged[name, tag] = self._given[name, number]

    def carried_out(self, name: str, request: Operation, response: Operation | None) -> None:
        """An end has carried out a request of its peer.

        Raises:
            OracleError: it was carried out before, or not in its turn, or with another result than it should have.
        """
        peer = self.peers[name]
        given = self._tagged.get((peer, request.tag))
        if given is None:
            raise OracleError(f"{name} carried out {request}, which nobody asked for")
        if given.found is not None:
            raise OracleError(f"{given} was carried out again")
        if given.status not in (None, *LOST):
            raise OracleError(f"{given} was carried out after it had completed")
        key = peer, given.command.qp
        if given.number <= self._latest.get(key, 0):
            raise OracleError(f"{given} was carried out after a later one")
        self._latest[key] = given.number
        given.found = self._apply(self.contents[name], request)
        if response is None or response.data != given.found:
            raise OracleError(f"{given} had the answer {response}")

    def completed(self, name: str, completion: Completion) -> None:
        """A command of an end has completed.

        Raises:
            OracleError: it had completed, or was forgotten; it is done and was not carried out, or returned something
                else than was found; it ended in a way that it should not.
        """
        given = self._given.pop((name, completion.id), None)
        if given is None:
            raise OracleError(f"{name} completed {completion}, which was not under way")
        given.status = completion.status
        self.counts[given.status] = self.counts.get(given.status, 0) + 1
        if completion.status == Status.DONE:
            if given.found is None or completion.data != given.found:
                raise OracleError(f"{given} returned {completion.data.hex()}")
        elif completion.status not in (Status.NOT_CONNECTED, *LOST):
            raise OracleError(f"{given} ended")
        elif completion.status == Status.NOT_CONNECTED and given.found is not None:
            raise OracleError(f"{given} was carried out, and refused")

    def forget(self, name: str) -> int:
        """An end is reset: none of its commands completes any more. How many there were."""
        lost = [key for key in self._given if key[0] == name]
        for key in lost:
            self._given.pop(key).status = Status.CONNECTION_LOST
        self.forgotten += len(lost)
        return len(lost)

    def judge(self, memories: Mapping[str, Memory]) -> None:
        """At the end.

        Raises:
            OracleError: a command has not completed, or memory is not as it should be.
        """
        if self._given:
            raise OracleError(
                f"{len(self._given)} commands did not complete, such as {next(iter(self._given.values()))}"
            )
        for name, memory in memories.items():
            expected = self.contents[name]
            for page in {*memory.pages(), *expected.pages()}:
                if memory.read(page, 4096) != expected.read(page, 4096):
                    raise OracleError(f"memory of {name} is not what it should be at {page:#x}")

    def _apply(self, memory: Memory, request: Operation) -> bytes:
        """Carry a request out on what memory should be; the data of its answer."""
        if request.opcode == Opcode.FENCE:
            return b""
        old = memory.read(request.address, request.length)
        if request.opcode == Opcode.READ:
            return old
        if request.opcode == Opcode.WRITE:
            memory.write(request.address, request.data)
            return b""
        total = int.from_bytes(old, "little") + int.from_bytes(request.data, "little")
        memory.write(request.address, (total % (1 << 64)).to_bytes(8, "little"))
        return old
