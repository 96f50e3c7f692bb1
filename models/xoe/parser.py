"""The parser: where a frame that came in goes, and the operations in it."""

from __future__ import annotations

import dataclasses
from enum import IntEnum

from .config import NicConfig
from .frame import FrameError, check_body, split_tags
from .operation import Operation, split
from .wire import ETHERTYPE, MAC_CONTROL_ETHERTYPE, FrameHeader, Kind

HOST_FRAME_MAX = 9216  # bytes: the largest frame of somebody else's that passes, a usual bound for jumbo frames
CONTROL_FRAME_MAX = 128  # bytes: MAC control frames have 60 before the FCS, IEEE 802.3 31.4.1


class Outcome(IntEnum):
    """What became of a frame; each has a counter of its name in small letters.

    The causes of dropping stand in the order of their tests: the first that applies counts. TRUNCATED comes before
    VERSION when not even the frame header is whole.
    """

    ACCEPTED = 0  # its operations were handed on
    HOST = 1  # handed on as it was
    CONTROL = 2  # PAUSE or PFC, handed on as it was
    BAD = 3  # marked bad by the MAC
    RUNT = 4  # ends before its EtherType
    VERSION = 5
    MALFORMED = 6
    TRUNCATED = 7
    OVERLONG = 8
    CRC = 9
    DESTINATION = 10  # another address or node, or a queue pair that is not there
    KIND = 11  # carries no operations


DROPPED = tuple(outcome for outcome in Outcome if outcome >= Outcome.BAD)


@dataclasses.dataclass(frozen=True)
class Route:
    """Who is at the other end of an operation.

    Attributes:
        mac: Ethernet address, 48 bits.
        node: 0..65535.
        remote_qp: the queue pair there, 0..4095.
        local_qp: the queue pair here, 0..4095.
        traffic_class: see ``TrafficClass``.
        epoch: this end's, of the incarnation of the connection that it belongs to, 0..255.
    """

    mac: int
    node: int
    remote_qp: int
    local_qp: int
    traffic_class: int
    epoch: int = 0


@dataclasses.dataclass(frozen=True)
class Parsed:
    """What a frame gave: all but ``outcome`` only if it was accepted.

    Data frames have operations, acknowledgements and control frames a ``body``, which is a multiple of 8 bytes.
    """

    outcome: Outcome
    operations: tuple[Operation, ...] = ()
    route: Route | None = None
    header: FrameHeader | None = None
    body: bytes = b""


class Parser:
    """Sorts frames, and takes ours apart.

    ``config`` gives the largest MTU and the number of queue pairs. ``kinds`` are those of the frames that are handed
    on: only data frames, if there is no transport. ``counters`` says how often each outcome came, and
    ``operation_malformed`` how many accepted frames ended in an operation that is not whole.
    """

    def __init__(
        self,
        config: NicConfig,
        mac: int,
        node: int,
        ethertype: int = ETHERTYPE,
        kinds: frozenset[int] = frozenset({Kind.DATA}),
    ) -> None:
        self.config = config
        self.mac = mac
        self.node = node
        self.ethertype = ethertype
        self.kinds = kinds
        self.counters = dict.fromkeys(Outcome, 0)
        self.operation_malformed = 0

    def parse(self, data: bytes, bad: bool = False) -> Parsed:
        """Sort one frame, without FCS; ``bad`` is the MAC's mark. Any bytes whatever have an outcome."""
        parsed = self._parse(data, bad)
        self.counters[parsed.outcome] += 1
        return parsed

    def _parse(self, data: bytes, bad: bool) -> Parsed:
        if bad:
            return Parsed(Outcome.BAD)
        try:
            tags, start = split_tags(data)
            ethertype = int.from_bytes(data[start - 2 : start], "big")
            if ethertype == MAC_CONTROL_ETHERTYPE and not tags:  # MAC control frames are never tagged
                return self._pass(data, Outcome.CONTROL, CONTROL_FRAME_MAX)
            if ethertype != self.ethertype:
                return self._pass(data, Outcome.HOST, HOST_FRAME_MAX)
            header, payload = check_body(data[start:], self.config.mtu)
        except FrameError as error:
            return Parsed(Outcome[error.reason.name])
        if not self._is_for_us(data, header):
            return Parsed(Outcome.DESTINATION)
        if header.kind not in self.kinds:
            return Parsed(Outcome.KIND)
        return self._take_apart(data, header, payload)

    def _pass(self, data: bytes, outcome: Outcome, limit: int) -> Parsed:
        """Somebody else's frame: handed on whole, or not at all."""
        return Parsed(outcome if len(data) <= limit else Outcome.OVERLONG)

    def _is_for_us(self, data: bytes, header: FrameHeader) -> bool:
        """Whether address, node and queue pair are ones that are here."""
        is_ours = int.from_bytes(data[:6], "big") == self.mac and header.dst_node == self.node
        return is_ours and header.dst_qp < self.config.queue_pairs

    def _take_apart(self, data: bytes, header: FrameHeader, payload: bytes) -> Parsed:
        source = int.from_bytes(data[6:12], "big")
        route = Route(source, header.src_node, header.src_qp, header.dst_qp, header.traffic_class, header.epoch)
        if header.kind != Kind.DATA:
            return Parsed(Outcome.ACCEPTED, (), route, header, payload)
        operations, is_whole = split(payload)
        self.operation_malformed += not is_whole
        return Parsed(Outcome.ACCEPTED, tuple(operations), route, header)
