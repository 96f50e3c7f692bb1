"""The framer: which operations share a frame, and the frames that come of it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

from .cyclic import SEQ_BITS
from .frame import Frame, FrameError, VlanTag
from .operation import Operation
from .parser import Route
from .wire import CRC_SIZE, ETHERTYPE, MTU_MAX, FrameHeader, TrafficClass

GATHER = 1024
"""Bytes: a few operations of the largest size, so that headers take little of the wire."""

Routed = tuple[Operation, Route]
"""An operation and where it goes."""


class FramerError(ValueError):
    """A frame that is not one a framer may send, or not now; the message says why."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a framer's registers hold.

    Attributes:
        mac: its own Ethernet address, 48 bits.
        node: its own node, 0..65535.
        ethertype: of every frame.
        mtu: the largest Ethernet payload in bytes, 256..9000.
        gather: bytes of operations, 0..16383, that a frame waits for while they follow each other without a gap and the
            wire would be idle. More saves headers, less saves time; what the frames of ``Framer.frames`` have does not
            depend on it, as these are made of operations that are all there.
        tagged: whether frames have an 802.1Q tag.
        vid: VLAN id of the tag, 0..4095.
        pcp: priority of the tag, 0..7, for each of the 8 values of a traffic class.
        ect: whether frames say that they take part in congestion control.
    """

    mac: int
    node: int
    ethertype: int = ETHERTYPE
    mtu: int = MTU_MAX
    gather: int = GATHER
    tagged: bool = False
    vid: int = 0
    pcp: tuple[int, ...] = (0,) * 8
    ect: bool = False


def build_frame(
    settings: Settings, route: Route, operations: Sequence[Operation] = (), body: bytes = b"", **fields: int
) -> bytes:
    """A frame to ``route``; ``fields`` are those of its header that neither the route nor the settings give.

    ``body`` is for acknowledgements and control frames, which have no operations.

    Raises:
        FieldError: a value that does not fit its field.
    """
    header = FrameHeader(
        traffic_class=route.traffic_class,
        ect=int(settings.ect),
        dst_node=route.node,
        src_node=settings.node,
        dst_qp=route.remote_qp,
        src_qp=route.local_qp,
        length=sum(operation.size for operation in operations) + len(body),
        **fields,
    )
    tags = (VlanTag(settings.pcp[route.traffic_class], 0, settings.vid),) if settings.tagged else ()
    return Frame(route.mac, settings.mac, header, tuple(operations), tags, settings.ethertype, body).encode()


class Framer:
    """Makes frames, and keeps the sequence numbers: one count for each local queue pair, those of responses apart."""

    def __init__(self, settings: Settings, first_sequence: int = 0) -> None:
        self.settings = settings
        self._first = first_sequence
        self._sent: Counter[tuple[bool, int]] = Counter()

    def frames(self, operations: Iterable[Routed]) -> list[bytes]:
        """The frames of one input's operations when all of them are there: each frame takes as many as it can.

        Raises:
            FieldError: a value that does not fit its field.
        """
        frames: list[bytes] = []
        group: list[Operation] = []
        route: Route | None = None
        for operation, way in operations:
            if route is not None and (way != route or not self._fits([*group, operation])):
                frames.append(self.frame(group, route))
                group = []
            route = way
            group.append(operation)
        return [*frames, self.frame(group, route)] if route is not None else frames

    def frame(self, operations: Sequence[Operation], route: Route) -> bytes:
        """The next frame to ``route``, with these operations whatever their size; takes a sequence number.

        Raises:
            FieldError: a value that does not fit its field.
        """
        flow = route.traffic_class == TrafficClass.RESPONSE, route.local_qp
        seq = (self._first + self._sent[flow]) % (1 << SEQ_BITS)
        frame = build_frame(self.settings, route, operations, seq=seq, epoch=route.epoch)
        self._sent[flow] += 1
        return frame

    def check(self, data: bytes, waiting: Sequence[list[Routed]]) -> int:
        """Hold a frame against what its framer was given, however it chose to gather.

        ``waiting`` has a list for each input, of the operations not sent yet, in order. The frame must be, byte for
        byte, that of the first few of one of them, all of one route; these are taken off the list. Returns the index of
        the input.

        Raises:
            FramerError: it is not; lists and sequence numbers are as before.
        """
        try:
            found = Frame.decode(data, self.settings.ethertype)
        except FrameError as error:
            raise FramerError(f"not a frame: {error}") from error
        for index, operations in enumerate(waiting):
            first = operations[: len(found.operations)]
            if first and tuple(operation for operation, _ in first) == found.operations:
                self._check_group(data, first)
                del operations[: len(first)]
                return index
        raise FramerError(f"no input has these operations next: {found.operations}")

    def _check_group(self, data: bytes, group: Sequence[Routed]) -> None:
        operations, routes = [operation for operation, _ in group], {route for _, route in group}
        if len(routes) > 1:
            raise FramerError(f"operations of several routes share a frame: {routes}")
        if len(group) > 1 and not self._fits(operations):
            raise FramerError(f"operations of {sum(operation.size for operation in operations)} bytes exceed the MTU")
        before = self._sent.copy()
        expected = self.frame(operations, routes.pop())
        if data != expected:
            self._sent = before
            raise FramerError(f"frame is\n{data.hex()}, not\n{expected.hex()}")

    def _fits(self, operations: Sequence[Operation]) -> bool:
        size = FrameHeader.SIZE + sum(operation.size for operation in operations) + CRC_SIZE
        return size <= self.settings.mtu
