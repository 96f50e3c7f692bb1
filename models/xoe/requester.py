"""The requester: a user's commands become requests, and what becomes of these its completions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import IntEnum

from .cam import Cam, Translation
from .command import (
    Command,
    Completion,
    Request,
    completion,
    fits,
    has_length,
    needed_rights,
    sent_bytes,
    traffic_class,
)
from .config import NicConfig
from .operation import Operation
from .parser import Route
from .tags import Tags
from .wire import ATOMICS, CRC_SIZE, GRID, RESPONSE_BIT, SUPPORTED, FrameHeader, OperationHeader, Status, data_words

OVERHEAD = FrameHeader.SIZE + OperationHeader.SIZE + CRC_SIZE  # bytes of a frame besides an operation's data


class Event(IntEnum):
    """What is counted; each has a counter of its name in small letters. The first six are refusals, by status."""

    UNSUPPORTED = 0
    MALFORMED = 1
    MISALIGNED = 2
    OUT_OF_RANGE = 3
    TRANSLATION_FAULT = 4
    PERMISSION = 5
    STRAY = 6  # a response that nobody waits for: dropped
    BAD_RESPONSE = 7  # a response that does not fit its request: completed as malformed
    TIMED_OUT = 8


@dataclasses.dataclass(frozen=True)
class Waiting:
    """A request without an answer yet; ``deadline`` in clocks, None for never."""

    command: Command
    deadline: int | None


class Requester:
    """Checks and translates commands, and knows which requests wait for an answer.

    Args:
        config: gives data width, number of tags and of queue pairs.
        cam: the translations.
        mtu: the largest Ethernet payload, in bytes; that of ``config`` if left out.
        timeout: clocks after which a request is given up; 0: never.
        tags: where tags come from, if not from a pool of its own.

    ``counters`` says how often each event came.
    """

    def __init__(
        self,
        config: NicConfig,
        cam: Cam[Translation],
        mtu: int | None = None,
        timeout: int = 0,
        tags: Tags[Waiting] | None = None,
    ) -> None:
        self.config = config
        self.cam = cam
        self.mtu = config.mtu if mtu is None else mtu
        self.timeout = timeout
        self.now = 0
        self.counters = dict.fromkeys(Event, 0)
        self._tags: Tags[Waiting] = Tags(config.tags) if tags is None else tags

    @property
    def in_flight(self) -> int:
        """Requests that wait for an answer."""
        return len(self._tags)

    @property
    def deadline(self) -> int | None:
        """When the next request is given up, as ``now`` counts; None: never."""
        if not self.timeout:
            return None
        deadlines = (waiting.deadline for waiting in self._tags.in_flight.values())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def submit(self, command: Command, connected: Callable[[Route], bool] | None = None) -> Request | Completion | None:
        """The request that a command becomes, or its completion if it is refused; None if it has to wait for a tag.

        ``connected`` says whether there is a connection to where it goes; without one the command is refused as not
        connected. All that ``check`` finds comes before.
        """
        status, route, address = self.check(command)
        if route is None:
            self.counters[Event[status.name]] += 1
            return Completion(command.id, command.opcode, status)
        if connected is not None and not connected(route):
            return Completion(command.id, command.opcode, Status.NOT_CONNECTED)
        tag = self._tags.give(Waiting(command, self.now + self.timeout if self.timeout else None))
        if tag is None:
            return None
        data = command.data.ljust(sent_bytes(command), b"\0")[: sent_bytes(command)]
        return Request(Operation(command.opcode, tag, address, command.length, data), route)

    def check(self, command: Command) -> tuple[Status, Route | None, int]:
        """Status, and if that is DONE the route and the remote address, of a command as the CAM is now.

        The tests come in this order: UNSUPPORTED, the opcode is not one that works; MALFORMED, the length is not one
        that the opcode has, the queue pair does not exist, or the data does not take as many beats as it should;
        MISALIGNED, an atomic's address is no multiple of its length; OUT_OF_RANGE, the operation or its response does
        not fit a frame; TRANSLATION_FAULT, no page has the address; PERMISSION, its page does not grant the right;
        OUT_OF_RANGE, the operation passes the end of the page.
        """
        status = self._check_alone(command)
        if status is not Status.DONE:
            return status, None, 0
        found = self.cam.lookup(command.address_space, command.address, command.length)
        if not found.hit or found.payload is None:
            return Status.TRANSLATION_FAULT, None, 0
        page = found.payload
        if needed_rights(command.opcode) & ~page.rights:
            return Status.PERMISSION, None, 0
        if found.crosses:
            return Status.OUT_OF_RANGE, None, 0
        route = Route(page.mac, page.node, page.qp, command.qp, traffic_class(command.opcode))
        return Status.DONE, route, found.address

    def respond(self, response: Operation) -> Completion | None:
        """The completion that a response brings, or None if nobody waits for it."""
        waiting = self._tags.retire(response.tag)
        if waiting is None:
            self.counters[Event.STRAY] += 1
            return None
        self.counters[Event.BAD_RESPONSE] += not fits(waiting.command, response)
        return completion(waiting.command, response)

    def abandon(self, qp: int) -> list[Completion]:
        """Give up all requests of a queue pair whose connection is lost; their completions, oldest first."""
        lost = [(tag, waiting.command) for tag, waiting in self._tags.in_flight.items() if waiting.command.qp == qp]
        for tag, _ in lost:
            self._tags.retire(tag)
        return [Completion(command.id, command.opcode, Status.CONNECTION_LOST) for _, command in lost]

    def step(self, clocks: int = 1) -> list[Completion]:
        """Let time pass; the completions of the requests that are given up, in the order of their deadlines."""
        self.now += clocks
        if not self.timeout:
            return []
        due = [
            (waiting.deadline, tag, waiting.command)
            for tag, waiting in self._tags.in_flight.items()
            if waiting.deadline is not None and waiting.deadline <= self.now
        ]
        completions = []
        for _, tag, command in sorted(due, key=lambda entry: entry[0]):
            self._tags.retire(tag)
            self.counters[Event.TIMED_OUT] += 1
            completions.append(Completion(command.id, command.opcode, Status.TIMED_OUT))
        return completions

    def _check_alone(self, command: Command) -> Status:
        """What can be said without a look at the CAM."""
        if command.opcode not in SUPPORTED:
            return Status.UNSUPPORTED
        if not has_length(command) or command.qp >= self.config.queue_pairs or not self._is_sized(command):
            return Status.MALFORMED
        if command.opcode in ATOMICS and command.address % command.length:
            return Status.MISALIGNED
        words = (data_words(opcode, command.length) for opcode in (command.opcode, command.opcode | RESPONSE_BIT))
        return Status.OUT_OF_RANGE if OVERHEAD + max(words) * GRID > self.mtu else Status.DONE

    def _is_sized(self, command: Command) -> bool:
        """Whether the data takes as many beats as it should; a command without data has one, and so has no data."""
        return self._beats(len(command.data)) == self._beats(sent_bytes(command))

    def _beats(self, size: int) -> int:
        return max(1, -(-size * 8 // self.config.data_width))
