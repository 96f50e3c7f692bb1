"""What a NIC with transport does with a frame that came: who it is from, and what it says to whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from .channel import CLASSES, Channel, Incoming
from .config import NicConfig, credits_needed
from .connection import Control
from .framer import Settings
from .operation import Operation
from .parser import Parsed, Parser
from .queue_pair import QueuePair
from .receiver import Verdict
from .traffic import Traffic
from .wire import AckBody, ControlBody, FrameHeader, Kind, TrafficClass


class ReceiveBuffer:
    """Counts bytes: ``used`` by frames that are kept, and ``high``, the most that was, with those that just came."""

    def __init__(self) -> None:
        self.used = self.high = 0

    def see(self, size: int) -> None:
        """A frame is here, and it is not known yet whether it is kept."""
        self.high = max(self.high, self.used + size)

    def keep(self, size: int) -> None:
        """It is kept."""
        self.used += size

    def free(self, size: int) -> None:
        """A frame, or several, are not here any more."""
        self.used -= size


class Intake:
    """Takes frames for queue pairs.

    Args:
        config, settings: see ``Endpoint``.
        counts: where to count what is dropped.
        answer: is given each response to a request of this end.
    """

    def __init__(
        self, config: NicConfig, settings: Settings, counts: Counter[Traffic], answer: Callable[[Operation], None]
    ) -> None:
        self.parser = Parser(config, settings.mac, settings.node, settings.ethertype, frozenset(Kind))
        self.buffer = ReceiveBuffer()
        self._credit_size = config.credit_size
        self._counts = counts
        self._answer = answer

    def take(self, pair: QueuePair, parsed: Parsed, now: int) -> None:
        """Take a frame to a queue pair; one that is not to be taken is dropped and counted."""
        route, header = parsed.route, parsed.header
        assert route is not None
        assert header is not None
        if not pair.peer.has(route):
            self._counts[Traffic.STRANGER] += 1
        elif header.kind == Kind.CONTROL:
            self._take_control(pair, header, parsed.body)
        elif not pair.connection.accepts(header.epoch, header.src_epoch) or pair.channel is None:
            self._counts[Traffic.OTHER_EPOCH] += 1
        elif header.kind == Kind.ACK:
            if len(parsed.body) < AckBody.SIZE:
                self._counts[Traffic.BAD_BODY] += 1
            else:
                pair.channel.take_acknowledgement(header, parsed.body, now)
        else:
            self._take_data(pair, pair.channel, parsed.operations, header, now)

    def _take_control(self, pair: QueuePair, header: FrameHeader, body: bytes) -> None:
        if len(body) < ControlBody.SIZE:
            self._counts[Traffic.BAD_BODY] += 1
            return
        control = ControlBody.unpack(body)
        pair.connection.receive(Control(control, header.epoch if control.echo_valid else None))

    def _take_data(
        self, pair: QueuePair, channel: Channel, operations: tuple[Operation, ...], header: FrameHeader, now: int
    ) -> None:
        channel.take_header(header, now)
        credits = credits_needed(header.length, self._credit_size)
        self.buffer.see(credits * self._credit_size)
        if header.traffic_class not in CLASSES:
            self._counts[Traffic.BAD_CLASS] += 1
            return
        frame = Incoming(TrafficClass(header.traffic_class), operations, credits)
        if channel.take_data(header.seq, frame, now) is Verdict.NEW:
            self.buffer.keep(credits * self._credit_size)
        for each in channel.deliver():
            if each.traffic_class == TrafficClass.RESPONSE:
                self._take_responses(channel, each, now)
            else:
                pair.deliver(each)

    def _take_responses(self, channel: Channel, frame: Incoming, now: int) -> None:
        for operation in frame.operations:
            if not operation.is_response:
                self._counts[Traffic.MISPLACED] += 1
                continue
            channel.answered(operation)
            self._answer(operation)
        channel.free(frame, now)
        self.buffer.free(frame.credits * self._credit_size)
