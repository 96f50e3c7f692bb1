"""The queue pairs of a NIC with transport, and whose turn it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .command import Request
from .config import ATOMIC_SIZE, NicConfig, check_range
from .connection import Connection, State
from .offer import make_offer
from .parser import Route
from .queue_pair import Peer, QueuePair
from .transport import TransportSettings
from .wire import DATA_MAX, OperationHeader


class EndpointError(ValueError):
    """A connection that cannot be had now; the message says why."""


class QueuePairs:
    """Those that were given another end; they go through in their turns.

    Args:
        config: gives how many there can be, and what they offer.
        transport: see ``TransportSettings``.
        payload_max: bytes of operations in the largest frame that is sent.
        first_seq: PSN of the first data frame of every connection.
        first_credit: where counts of credits begin.
        epochs: the last epoch of queue pairs, if that is not 0.

    Raises:
        ConfigError: a number out of bounds.
    """

    def __init__(
        self,
        config: NicConfig,
        transport: TransportSettings,
        payload_max: int,
        first_seq: int,
        first_credit: int,
        epochs: Mapping[int, int],
    ) -> None:
        self.config, self.transport, self.payload_max = config, transport, payload_max
        self.offer = make_offer(config, first_seq, first_credit)
        self._epochs = dict(epochs)
        self._pairs: dict[int, QueuePair] = {}
        self._turns: list[QueuePair] = []  # the one that sent last is the last

    def __iter__(self) -> Iterator[QueuePair]:
        """The one whose turn it is first."""
        return iter(self._turns)

    def get(self, qp: int) -> QueuePair | None:
        """A queue pair, if it was given another end."""
        return self._pairs.get(qp)

    def join(self, qp: int, peer: Peer) -> QueuePair:
        """A queue pair, with its other end.

        Raises:
            ConfigError: there is no such queue pair.
            EndpointError: its connection is neither closed nor listening.
        """
        check_range("qp", qp, 0, self.config.queue_pairs - 1)
        pair = self._pairs.get(qp)
        if pair is None:
            largest = min(self.payload_max, OperationHeader.SIZE + DATA_MAX)
            epoch = self._epochs.get(qp, 0)
            connection = Connection(self.offer, self.transport, epoch, (largest, largest, ATOMIC_SIZE))
            pair = self._pairs[qp] = QueuePair(qp, peer, connection, self.payload_max)
            self._turns.append(pair)
        elif pair.connection.state not in (State.CLOSED, State.LISTENING):
            raise EndpointError(f"queue pair {qp} is {pair.connection.state.name.lower()}: close it first")
        pair.peer = peer
        return pair

    def has_sent(self, pair: QueuePair) -> None:
        """Now it is the turn of all others first."""
        self._turns.remove(pair)
        self._turns.append(pair)

    def is_connected(self, route: Route) -> bool:
        """Whether a route is that of a connection that is open."""
        pair = self._pairs.get(route.local_qp)
        return pair is not None and pair.channel is not None and pair.peer.has(route)

    def ask(self, request: Request) -> None:
        """Let a request wait to be sent on its queue pair, whose connection is open."""
        self._pairs[request.route.local_qp].ask(request)

    def forget(self) -> None:
        """A reset: nothing but the last epochs is left."""
        self._epochs.update({qp: pair.connection.epoch for qp, pair in self._pairs.items()})
        self._pairs.clear()
        self._turns.clear()
