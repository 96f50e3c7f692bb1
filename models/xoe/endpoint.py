"""A NIC with transport: commands are carried out over a network that loses, repeats and reorders frames.

It has no clock of its own: whatever depends on time takes ``now``, in clocks, which never runs backwards.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Mapping

from .cam import Cam, Translation, Window
from .command import Command, Completion, Request
from .config import NicConfig, check_range
from .connection import Notice, State
from .cyclic import CREDIT_BITS, SEQ_BITS
from .framer import Settings
from .initiator import Initiator
from .intake import Intake
from .memory import Memory
from .outlet import Outlet
from .parser import Parsed
from .queue_pair import Peer, QueuePair
from .queue_pairs import EndpointError, QueuePairs
from .requester import Requester, Waiting
from .responder import Responder
from .tags import Tags
from .traffic import Traffic
from .transport import TransportSettings
from .wire import CRC_SIZE, GRID, MTU_MIN, FrameHeader

__all__ = ["Endpoint", "EndpointError"]


@dataclasses.dataclass(frozen=True)
class _Rest:
    """Nothing is there to send until a time (None: ever), if nothing happens; so nobody needs to look again."""

    until: int | None
    outside: tuple[int, bool]

    def lasts(self, now: int, outside: tuple[int, bool]) -> bool:
        return outside == self.outside and (self.until is None or now < self.until)


class Endpoint:
    """A NIC with its memory, its connections, and what waits in it.

    Args:
        config: the parameters.
        settings: what the registers hold; ``settings.mtu`` is at most ``config.mtu``.
        transport: the transport's settings.
        memory: what peers read and write; it outlives a reset.
        timeout: clocks after which a command without an answer is given up; 0: never.
        first_seq: PSN of the first data frame of every connection, 24 bits.
        first_credit: where counts of credits begin, 20 bits.
        epochs: the last epoch of queue pairs, 8 bits each, if that is not 0.

    ``completions`` and ``notices`` (a queue pair, and what happened to its connection) are for the user to take from;
    commands wait while ``config.tags`` of them are under way or were not fetched. While ``is_stalled`` is set the
    responder takes nothing: requests wait in the receive ``buffer``, which counts its bytes.

    Raises:
        ConfigError: ``settings.mtu``, ``first_seq`` or ``first_credit`` out of bounds.
    """

    def __init__(
        self,
        config: NicConfig,
        settings: Settings,
        transport: TransportSettings,
        memory: Memory,
        timeout: int = 0,
        first_seq: int = 0,
        first_credit: int = 0,
        epochs: Mapping[int, int] | None = None,
    ) -> None:
        check_range("settings.mtu", settings.mtu, MTU_MIN, config.mtu)
        check_range("first_seq", first_seq, 0, (1 << SEQ_BITS) - 1)
        check_range("first_credit", first_credit, 0, (1 << CREDIT_BITS) - 1)
        self.config, self.settings, self.transport, self.memory = config, settings, transport, memory
        self.timeout = timeout
        self.tags: Tags[Waiting] = Tags(config.tags)
        payload_max = (settings.mtu - FrameHeader.SIZE - CRC_SIZE) // GRID * GRID
        self.pairs = QueuePairs(config, transport, payload_max, first_seq, first_credit, epochs or {})
        self._clear(0)

    def _clear(self, now: int) -> None:
        """Begin as after a reset."""
        self.translations: Cam[Translation] = Cam(self.config.cam_entries)
        self.windows: Cam[Window] = Cam(self.config.windows)
        self.requester = Requester(self.config, self.translations, self.settings.mtu, self.timeout, self.tags)
        self.requester.now = now
        self._counts: Counter[Traffic] = Counter()
        self._initiator = Initiator(self.requester, self.config.tags, self._counts, self.pairs.is_connected, self._ask)
        self.responder = Responder(self.memory, self.windows)
        self.notices: deque[tuple[int, Notice]] = deque()
        self.is_stalled = False
        self.intake = Intake(self.config, self.settings, self._counts, self._initiator.answer)
        self.buffer = self.intake.buffer
        self._outlet = Outlet(self.settings, self._counts)
        self._rest: _Rest | None = None

    @property
    def deadline(self) -> int | None:
        """The earliest time at which ``transmit`` may have something though nothing happens before; None: never."""
        if self._rest is not None:
            return self._rest.until
        times = [self.requester.deadline, *(pair.deadline for pair in self.pairs)]
        return min((time for time in times if time is not None), default=None)

    @property
    def completions(self) -> deque[Completion]:
        """Completions that were not fetched."""
        return self._initiator.completions

    @property
    def completed(self) -> int:
        """Completions since the last reset."""
        return self._initiator.completed

    @property
    def is_idle(self) -> bool:
        """Whether no command waits, and nothing is under way."""
        return self._initiator.is_idle and all(pair.is_idle for pair in self.pairs)

    @property
    def counters(self) -> dict[Traffic, int]:
        """How often each thing happened since the last reset."""
        counts = self._counts.copy()
        for pair in self.pairs:
            counts += pair.counts()
        return {event: counts[event] for event in Traffic}

    def state(self, qp: int) -> State:
        """Where the connection of a queue pair stands."""
        pair = self.pairs.get(qp)
        return State.CLOSED if pair is None else pair.connection.state

    def listen(self, qp: int, mac: int, node: int, remote_qp: int) -> None:
        """Let the other end open a queue pair's connection; arguments and errors as for ``connect``."""
        self.pairs.join(qp, Peer(mac, node, remote_qp)).connection.listen()
        self._rest = None

    def connect(self, qp: int, mac: int, node: int, remote_qp: int, now: int) -> None:
        """Open the connection of a queue pair to another one.

        Args:
            qp: the queue pair here, below ``config.queue_pairs``.
            mac: the other end's Ethernet address, 48 bits.
            node: its node, 16 bits.
            remote_qp: the queue pair there, 12 bits.
            now: in clocks.

        Raises:
            ConfigError: a number out of bounds.
            EndpointError: the connection is neither closed nor listening.
        """
        self.pairs.join(qp, Peer(mac, node, remote_qp)).connection.open(now)
        self._rest = None

    def close(self, qp: int, now: int) -> None:
        """Close a queue pair's connection, if it has one; what is under way on it is lost."""
        self._rest = None
        pair = self.pairs.get(qp)
        if pair is not None:
            pair.connection.close(now)
            self._settle(pair, now)

    def reset(self, now: int) -> None:
        """Forget everything but memory, the last epochs, and the generations of tags, as the hardware's reset does."""
        self.pairs.forget()
        self.tags.reset()
        self._clear(now)

    def submit(self, command: Command) -> None:
        """Carry out a command, or let it wait for a tag; how it ends is among ``completions`` at some time."""
        self._rest = None
        self._initiator.submit(command)
        self._initiator.start()

    def receive(self, data: bytes, now: int, bad: bool = False) -> Parsed:
        """Take a frame, without FCS, that the MAC may have marked bad; returns what the parser made of it."""
        self._rest = None
        parsed = self.intake.parser.parse(data, bad)
        if parsed.header is not None and parsed.route is not None:
            pair = self.pairs.get(parsed.route.local_qp)
            if pair is None:
                self._counts[Traffic.NO_CONNECTION] += 1
            else:
                self.intake.take(pair, parsed, now)
                self._settle(pair, now)
                self._initiator.start()
        return parsed

    def transmit(self, now: int, most: int | None = None) -> list[bytes]:
        """The frames to send now, in the order of ``Outlet.next_frame``; ``most`` of them if that is given."""
        if self._rest is not None and self._rest.lasts(now, self._outside()):
            return []
        self._rest = None
        self._initiator.tick(now)
        for pair in self.pairs:
            pair.tick(now)
            self._settle(pair, now)
        self._initiator.start()
        frames: list[bytes] = []
        while most is None or len(frames) < most:
            found = self._outlet.next_frame(self.pairs, now)
            if found is None:
                self._rest = _Rest(self.deadline, self._outside())
                break
            pair, frame = found
            frames.append(frame)
            self.pairs.has_sent(pair)
            self._serve(pair, now)
        return frames

    def _outside(self) -> tuple[int, bool]:
        """What a user may change without a call."""
        return len(self.completions), self.is_stalled

    def _ask(self, request: Request) -> None:
        self.pairs.ask(request)

    def _settle(self, pair: QueuePair, now: int) -> None:
        """Follow what has become of a connection, and let the responder work."""
        if pair.channel is not None and not pair.has_ended and pair.channel.is_lost(now):
            pair.connection.lose()
        if pair.has_ended:
            self._counts += pair.channel_counts()
            self.buffer.free(pair.end() * self.config.credit_size)
            self._initiator.abandon(pair.number)
        if pair.is_open and pair.channel is None:
            pair.begin(self.config.resend_buffer, self.transport, now)
        while pair.connection.notices:
            self.notices.append((pair.number, pair.connection.notices.popleft()))
        self._serve(pair, now)

    def _serve(self, pair: QueuePair, now: int) -> None:
        if not self.is_stalled:
            freed = pair.serve(self.responder.execute, now)
            self.buffer.free(freed * self.config.credit_size)
