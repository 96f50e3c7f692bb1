"""A NIC with transport: commands are carried out over a network that loses, repeats and reorders frames.

It has no clock of its own: whatever depends on time takes ``now``, in clocks, which never runs backwards.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

from .cam import Cam, Translation, Window
from .command import Command, Completion, Request
from .config import ATOMIC_SIZE, NicConfig, check_range
from .connection import Connection, Notice, State
from .cyclic import CREDIT_BITS, SEQ_BITS
from .framer import Settings
from .initiator import Initiator
from .intake import Intake
from .memory import Memory
from .offer import make_offer
from .outlet import Outlet
from .parser import Parsed, Route
from .queue_pair import Peer, QueuePair
from .requester import Requester, Waiting
from .responder import Responder
from .tags import Tags
from .traffic import Traffic
from .transport import TransportSettings
from .wire import CRC_SIZE, DATA_MAX, GRID, MTU_MIN, FrameHeader, OperationHeader


class EndpointError(ValueError):
    """A connection that cannot be had now; the message says why."""


class Endpoint:
    """A NIC with its memory, its connections, and what waits in it.

    Args:
        config: the parameters.
        settings: what the registers hold; ``settings.mtu`` is at most ``config.mtu``, and ``epoch`` is not used.
        transport: the transport's settings.
        memory: what peers read and write; it outlives a reset.
        timeout: clocks after which a command without an answer is given up; 0: never.
        first_seq: PSN of the first data frame of every connection, 24 bits.
        first_credit: where counts of credits begin, 20 bits.
        epochs: the last epoch of queue pairs, 8 bits each, if that is not 0.

    ``completions`` and ``notices`` (a queue pair, and what happened to its connection) are for the user to take from;
    commands wait while ``config.tags`` of them are under way or were not fetched. While ``is_stalled`` is set the
    responder takes nothing: requests wait in the receive buffer.

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
        self.payload_max = (settings.mtu - FrameHeader.SIZE - CRC_SIZE) // GRID * GRID
        self.offer = make_offer(config, first_seq, first_credit)
        self.tags: Tags[Waiting] = Tags(config.tags)
        self._epochs = dict(epochs or {})
        self._clear(0)

    def _clear(self, now: int) -> None:
        """Begin as after a reset."""
        self.translations: Cam[Translation] = Cam(self.config.cam_entries)
        self.windows: Cam[Window] = Cam(self.config.windows)
        self.requester = Requester(self.config, self.translations, self.settings.mtu, self.timeout, self.tags)
        self.requester.now = now
        self._counts: Counter[Traffic] = Counter()
        self._initiator = Initiator(self.requester, self.config.tags, self._counts, self._is_connected, self._ask)
        self.responder = Responder(self.memory, self.windows)
        self.notices: deque[tuple[int, Notice]] = deque()
        self.is_stalled = False
        self.intake = Intake(self.config, self.settings, self._counts, self._initiator.answer)
        self._outlet = Outlet(self.settings, self._counts)
        self._pairs: dict[int, QueuePair] = {}
        self._turns: list[QueuePair] = []  # the one that sent last is the last

    @property
    def deadline(self) -> int | None:
        """The earliest time at which ``transmit`` may have something though nothing happens before; None: never."""
        times = [self.requester.deadline, *(pair.deadline for pair in self._turns)]
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
        return self._initiator.is_idle and all(pair.is_idle for pair in self._turns)

    @property
    def counters(self) -> dict[Traffic, int]:
        """How often each thing happened since the last reset."""
        counts = self._counts.copy()
        for pair in self._turns:
            counts += pair.counts()
        return {event: counts[event] for event in Traffic}

    @property
    def buffer_used(self) -> int:
        """Bytes of frames in the receive buffer."""
        return self.intake.buffer.used

    @property
    def buffer_high(self) -> int:
        """The most bytes that were in the receive buffer, with frames that were then dropped."""
        return self.intake.buffer.high

    def state(self, qp: int) -> State:
        """Where the connection of a queue pair stands."""
        return self._pairs[qp].connection.state if qp in self._pairs else State.CLOSED

    def queue_pair(self, qp: int) -> QueuePair:
        """A queue pair that was given another end, to be looked into.

        Raises:
            KeyError: it was not.
        """
        return self._pairs[qp]

    def listen(self, qp: int, mac: int, node: int, remote_qp: int) -> None:
        """Let the other end open a queue pair's connection; arguments and errors as for ``connect``."""
        self._join(qp, Peer(mac, node, remote_qp)).connection.listen()

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
        self._join(qp, Peer(mac, node, remote_qp)).connection.open(now)

    def close(self, qp: int, now: int) -> None:
        """Close a queue pair's connection, if it has one; what is under way on it is lost."""
        if qp in self._pairs:
            self._pairs[qp].connection.close(now)
            self._settle(self._pairs[qp], now)

    def reset(self, now: int) -> None:
        """Forget everything but memory, the last epochs, and the generations of tags, as the hardware's reset does."""
        self._epochs.update({qp: pair.connection.epoch for qp, pair in self._pairs.items()})
        self.tags.reset()
        self._clear(now)

    def submit(self, command: Command) -> None:
        """Carry out a command, or let it wait for a tag; how it ends is among ``completions`` at some time."""
        self._initiator.submit(command)
        self._initiator.start()

    def receive(self, data: bytes, now: int, bad: bool = False) -> Parsed:
        """Take a frame, without FCS, that the MAC may have marked bad; returns what the parser made of it."""
        parsed = self.intake.parser.parse(data, bad)
        if parsed.header is not None and parsed.route is not None:
            pair = self._pairs.get(parsed.route.local_qp)
            if pair is None:
                self._counts[Traffic.NO_CONNECTION] += 1
            else:
                self.intake.take(pair, parsed, now)
                self._settle(pair, now)
                self._initiator.start()
        return parsed

    def transmit(self, now: int, most: int | None = None) -> list[bytes]:
        """The frames to send now, in the order of ``Outlet.next_frame``; ``most`` of them if that is given."""
        self._initiator.tick(now)
        for pair in self._turns:
            pair.tick(now)
            self._settle(pair, now)
        self._initiator.start()
        frames: list[bytes] = []
        while most is None or len(frames) < most:
            found = self._outlet.next_frame(self._turns, now)
            if found is None:
                break
            pair, frame = found
            frames.append(frame)
            self._turns.remove(pair)
            self._turns.append(pair)
            self._serve(pair, now)
        return frames

    def _join(self, qp: int, peer: Peer) -> QueuePair:
        """The queue pair, with its other end."""
        check_range("qp", qp, 0, self.config.queue_pairs - 1)
        for name, value, bits in (("mac", peer.mac, 48), ("node", peer.node, 16), ("remote_qp", peer.qp, 12)):
            check_range(name, value, 0, (1 << bits) - 1)
        pair = self._pairs.get(qp)
        if pair is None:
            largest = min(self.payload_max, OperationHeader.SIZE + DATA_MAX)
            connection = Connection(
                self.offer, self.transport, self._epochs.get(qp, 0), (largest, largest, ATOMIC_SIZE)
            )
            pair = self._pairs[qp] = QueuePair(qp, peer, connection, self.payload_max)
            self._turns.append(pair)
        elif pair.connection.state not in (State.CLOSED, State.LISTENING):
            raise EndpointError(f"queue pair {qp} is {pair.connection.state.name.lower()}: close it first")
        pair.peer = peer
        return pair

    def _is_connected(self, route: Route) -> bool:
        pair = self._pairs.get(route.local_qp)
        return pair is not None and pair.channel is not None and pair.peer.has(route)

    def _ask(self, request: Request) -> None:
        self._pairs[request.route.local_qp].ask(request)

    def _settle(self, pair: QueuePair, now: int) -> None:
        """Follow what has become of a connection, and let the responder work."""
        if pair.channel is not None and not pair.has_ended and pair.channel.is_lost(now):
            pair.connection.lose()
        if pair.has_ended:
            self._counts += pair.channel_counts()
            self.intake.buffer.free(pair.end() * self.config.credit_size)
            self._initiator.abandon(pair.number)
        if pair.is_open and pair.channel is None:
            pair.begin(self.config.resend_buffer, self.transport, now)
        self.notices.extend((pair.number, pair.connection.notices.popleft()) for _ in list(pair.connection.notices))
        self._serve(pair, now)

    def _serve(self, pair: QueuePair, now: int) -> None:
        if not self.is_stalled:
            freed = pair.serve(self.responder.execute, now)
            self.intake.buffer.free(freed * self.config.credit_size)
