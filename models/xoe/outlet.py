"""Which frame a NIC with transport sends next, and what is in its header."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from .channel import Channel, Outgoing
from .framer import Settings, build_frame
from .queue_pair import QueuePair
from .traffic import Traffic
from .wire import Kind, TrafficClass


class Outlet:
    """Builds the frames of queue pairs; ``counts`` is where they are counted."""

    def __init__(self, settings: Settings, counts: Counter[Traffic]) -> None:
        self.settings = settings
        self._counts = counts
        self._kinds: tuple[Callable[[QueuePair, int], bytes | None], ...] = (
            self._control,
            self._urgent,
            self._resend,
            self._response,
            self._request,
            self._due,
        )

    def next_frame(self, pairs: Iterable[QueuePair], now: int) -> tuple[QueuePair, bytes] | None:
        """The frame of the most urgent kind that there is, of the first of ``pairs`` that has one.

        Control frames come first, then acknowledgements that are due at once, resends, new responses, new requests,
        and acknowledgements that have waited long enough. Those due at once come so early because the other end
        misses frames, or cannot send; the others so late because data that goes out tells as much.
        """
        for kind in self._kinds:
            for pair in pairs:
                frame = kind(pair, now)
                if frame is not None:
                    return pair, frame
        return None

    def _control(self, pair: QueuePair, now: int) -> bytes | None:
        if not pair.connection.outbox:
            return None
        control = pair.connection.outbox.popleft()
        self._counts[Traffic.CONTROLS_SENT] += 1
        route = pair.route(TrafficClass.RESPONSE)
        return build_frame(self.settings, route, (), control.body.pack(), kind=Kind.CONTROL, epoch=control.echo or 0)

    def _urgent(self, pair: QueuePair, now: int) -> bytes | None:
        channel = pair.channel
        return self._acknowledge(pair, channel, now) if channel and channel.acknowledger.is_urgent else None

    def _due(self, pair: QueuePair, now: int) -> bytes | None:
        channel = pair.channel
        return self._acknowledge(pair, channel, now) if channel and now >= channel.acknowledger.deadline else None

    def _acknowledge(self, pair: QueuePair, channel: Channel, now: int) -> bytes:
        self._counts[Traffic.ACKS_SENT] += 1
        fields, body = channel.acknowledgement(now)
        return build_frame(self.settings, pair.route(TrafficClass.RESPONSE), (), body, **fields)

    def _resend(self, pair: QueuePair, now: int) -> bytes | None:
        return self._data(pair, pair.channel.sender.resend(now)) if pair.channel else None

    def _response(self, pair: QueuePair, now: int) -> bytes | None:
        return self._new(pair, pair.next_response(now))

    def _request(self, pair: QueuePair, now: int) -> bytes | None:
        return self._new(pair, pair.next_request(now))

    def _new(self, pair: QueuePair, sent: tuple[int, Outgoing] | None) -> bytes | None:
        self._counts[Traffic.DATA_SENT] += sent is not None
        return self._data(pair, sent)

    def _data(self, pair: QueuePair, sent: tuple[int, Outgoing] | None) -> bytes | None:
        if sent is None or pair.channel is None:
            return None
        seq, frame = sent
        fields = pair.channel.data_fields(seq)
        return build_frame(self.settings, pair.route(frame.traffic_class), frame.operations, b"", **fields)
