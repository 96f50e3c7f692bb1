"""A queue pair at one end: its connection, and the operations that wait there."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable

from .channel import Channel, Incoming, Outgoing
from .command import Request
from .config import check_range
from .connection import Connection, State
from .operation import Operation
from .parser import Route
from .traffic import Traffic, channel_counts
from .transport import TransportSettings
from .wire import TrafficClass

Execute = Callable[[Operation, int], Operation | None]


@dataclasses.dataclass(frozen=True)
class Peer:
    """The other end of a connection: Ethernet address (48 bits), node (16 bits), queue pair there (12 bits).

    Raises:
        ConfigError: a number out of bounds.
    """

    mac: int
    node: int
    qp: int

    def __post_init__(self) -> None:
        for name, value, bits in (("mac", self.mac, 48), ("node", self.node, 16), ("remote_qp", self.qp, 12)):
            check_range(name, value, 0, (1 << bits) - 1)

    def has(self, route: Route) -> bool:
        """Whether a route leads to it, or comes from it."""
        return (self.mac, self.node, self.qp) == (route.mac, route.node, route.remote_qp)


@dataclasses.dataclass
class _Delivered:
    """A frame of requests that waits for the responder, and those of it that were not carried out."""

    frame: Incoming
    channel: Channel
    node: int
    left: deque[Operation]


class QueuePair:
    """Requests and answers that wait to be sent, and delivered requests that wait to be carried out.

    Args:
        number: of the queue pair, 0..4095.
        peer: the other end.
        connection: see ``Connection``.
        payload_max: bytes of operations that one frame may have.

    ``channel`` is the present incarnation, None while the connection is not open.
    """

    def __init__(self, number: int, peer: Peer, connection: Connection, payload_max: int) -> None:
        self.number, self.peer, self.connection = number, peer, connection
        self.payload_max = payload_max
        self.channel: Channel | None = None
        self._incarnation = connection.incarnation  # of the channel
        self._requests: deque[tuple[Operation, TrafficClass]] = deque()
        self._old_answers = 0
        self._responses: deque[tuple[Operation, bool]] = deque()  # with whether it holds a slot
        self._backlog = 0  # bytes of responses
        self._inbox: deque[_Delivered] = deque()

    @property
    def is_open(self) -> bool:
        """Whether data passes."""
        return self.connection.state is State.OPEN

    @property
    def has_ended(self) -> bool:
        """Whether the incarnation that ``channel`` is for is over."""
        return self._incarnation != self.connection.incarnation

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits here, and nothing is without acknowledgement."""
        waits = self._requests or self._responses or self._inbox
        return not waits and not (self.channel and self.channel.unacknowledged)

    @property
    def deadline(self) -> int | None:
        """When there is something to do if nothing happens before."""
        times = [self.connection.deadline, self.channel.deadline if self.channel else None]
        return min((time for time in times if time is not None), default=None)

    def counts(self) -> Counter[Traffic]:
        """What was counted here, but for incarnations that have ended."""
        counts = Counter({Traffic.BAD_OFFER: self.connection.offers_refused, Traffic.OLD_ANSWER: self._old_answers})
        return counts + self.channel_counts()

    def channel_counts(self) -> Counter[Traffic]:
        """What the present incarnation has counted."""
        return channel_counts(self.channel) if self.channel else Counter()

    def route(self, traffic_class: int) -> Route:
        """The way of a frame to the other end."""
        return Route(self.peer.mac, self.peer.node, self.peer.qp, self.number, traffic_class)

    def begin(self, resend_buffer: int, settings: TransportSettings, now: int) -> None:
        """The connection has opened: begin its incarnation."""
        assert self.connection.peer is not None
        offer = dataclasses.replace(self.connection.offer, epoch=self.connection.epoch)
        self.channel = Channel(offer, self.connection.peer, resend_buffer, settings, now)

    def end(self) -> int:
        """The incarnation has ended: forget what was not delivered; how many credits that frees."""
        freed = sum(frame.credits for frame in self.channel.receiver.held) if self.channel else 0
        self._old_answers += len(self._responses)
        self._incarnation = self.connection.incarnation
        self.channel = None
        self._requests.clear()
        self._responses.clear()
        self._backlog = 0
        return freed

    def tick(self, now: int) -> None:
        """Look at the timers."""
        self.connection.tick(now)
        if self.channel is not None:
            self.channel.sender.tick(now)

    def ask(self, request: Request) -> None:
        """Let a request wait to be sent."""
        self._requests.append((request.operation, TrafficClass(request.route.traffic_class)))

    def deliver(self, frame: Incoming) -> None:
        """Let a frame of requests wait for the responder."""
        assert self.channel is not None
        self._inbox.append(_Delivered(frame, self.channel, self.peer.node, deque(frame.operations)))
        self.connection.is_drained = False

    def serve(self, execute: Execute, now: int) -> int:
        """Carry out what waits, as long as there is room for the answers; how many credits that frees.

        ``execute`` carries out an operation of a node, and gives its answer. Answers are not gathered beyond a frame of
        the largest size, so that requests keep their credits while answers cannot be sent.
        """
        freed = 0
        while self._inbox:
            waiting = self._inbox[0]
            while waiting.left:
                if not self._execute(waiting, execute):
                    return freed
            self._inbox.popleft()
            freed += waiting.frame.credits
            if waiting.channel is self.channel:
                waiting.channel.free(waiting.frame, now)
        self.connection.is_drained = True
        return freed

    def next_request(self, now: int) -> tuple[int, Outgoing] | None:
        """Send as many requests as fit the next frame, if there are any and they may be sent; with its PSN."""
        channel = self.channel
        if channel is None or not self._requests:
            return None
        first, traffic_class = self._requests[0]
        if not channel.has_room(traffic_class, first.size):
            return None
        is_atomic = traffic_class == TrafficClass.ATOMIC
        allowed = channel.peer.atomic_slots - channel.atomics if is_atomic else len(self._requests)
        alike = itertools.takewhile(lambda request: request[1] is traffic_class, self._requests)
        group, size = gather((operation for operation, _ in alike), allowed, self._most(channel, traffic_class))
        if not group or not channel.has_room(traffic_class, size):
            return None
        for _ in group:
            self._requests.popleft()
        frame = Outgoing(traffic_class, group, size, len(group) if is_atomic else 0)
        return channel.send(frame, now), frame

    def next_response(self, now: int) -> tuple[int, Outgoing] | None:
        """Send as many responses as fit the next frame, if there are any and they may be sent; with its PSN."""
        channel = self.channel
        if channel is None or not self._responses:
            return None
        most = self._most(channel, TrafficClass.RESPONSE)
        group, size = gather((operation for operation, _ in self._responses), len(self._responses), most)
        if not group or not channel.has_room(TrafficClass.RESPONSE, size):
            return None
        slots = sum(self._responses.popleft()[1] for _ in group)
        self._backlog -= size
        frame = Outgoing(TrafficClass.RESPONSE, group, size, slots)
        return channel.send(frame, now), frame

    def _most(self, channel: Channel, traffic_class: TrafficClass) -> int:
        return min(self.payload_max, channel.most(traffic_class))

    def _execute(self, waiting: _Delivered, execute: Execute) -> bool:
        """Carry out the next operation of a frame; whether that could be done."""
        operation = waiting.left[0]
        is_present = waiting.channel is self.channel
        holds_slot = waiting.frame.traffic_class == TrafficClass.ATOMIC and not operation.is_response
        if is_present:
            if self._backlog >= self.payload_max:
                return False
            if holds_slot and not waiting.channel.slots.take():
                waiting.channel.slot_waits += 1
                return False
        waiting.left.popleft()
        response = execute(operation, waiting.node)
        if response is not None and is_present:
            self._responses.append((response, holds_slot))
            self._backlog += response.size
        elif response is not None:
            self._old_answers += 1
        return True


def gather(operations: Iterable[Operation], count: int, most: int) -> tuple[tuple[Operation, ...], int]:
    """The first operations, ``count`` and ``most`` bytes of them at the most, and their bytes."""
    group: list[Operation] = []
    size = 0
    for operation in itertools.islice(operations, max(0, count)):
        if size + operation.size > most:
            break
        group.append(operation)
        size += operation.size
    return tuple(group), size
