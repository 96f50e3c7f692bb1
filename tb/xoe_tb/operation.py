"""Operations between blocks: streams of ``xoe_hdl.layouts.operation_beat``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Shape

from xoe.operation import Operation, padded, trimmed
from xoe.wire import GRID, OperationHeader
from xoe_hdl.layouts import OPERATION, ROUTE, operation_beat

from .layout import pack, unpack
from .stream import Beat, Pause, ProtocolError, StreamMonitor, StreamSink, StreamSource

HEADER_BITS = Shape.cast(OPERATION).width + Shape.cast(ROUTE).width


def _body(bus: Any) -> Any:
    """The layout of the ``tdata`` of a stream of operations."""
    return operation_beat(len(bus.tdata) - HEADER_BITS)["data"].shape


def _data_bytes(body: Any) -> int:
    return Shape.cast(body["data"].shape).width // 8


class OperationSource(StreamSource):
    """Sends operations."""

    def send(self, operation: Operation, route: Mapping[str, int]) -> None:
        """Queue an operation, and return at once; fields of the route left out are 0."""
        body, data = _body(self.bus), padded(operation.data)
        size = _data_bytes(body)
        header = {
            "opcode": operation.opcode,
            "words": len(data) // GRID,
            "tag": operation.tag,
            "status": operation.status,
            "length": operation.length,
            "address": operation.address,
        }
        common = pack(body, {"operation": header, "route": route})
        chunks = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
        beats = [Beat(common | int.from_bytes(chunk, "little"), last=0) for chunk in chunks]
        beats[-1] = beats[-1]._replace(last=1)
        self.append(beats)


class OperationMonitor(StreamMonitor):
    """Gathers operations, as ``(Operation, route)``.

    Raises ProtocolError if header or route change between the beats of an operation, or if it has more or fewer beats
    than its words need.
    """

    def __init__(self, dut: Any, name: str, *arguments: Any) -> None:
        super().__init__(dut, name, *arguments)
        self._body = _body(self.bus)
        self._bytes = _data_bytes(self._body)
        self._parts: list[bytes] = []
        self._common = 0

    def _on_beat(self, beat: Beat) -> None:
        common, data = beat.data >> 8 * self._bytes, beat.data & (1 << 8 * self._bytes) - 1
        if self._parts and common != self._common:
            raise ProtocolError(f"{self.name}: header or route changed at beat {len(self._parts)} of an operation")
        self._common = common
        self._parts.append(data.to_bytes(self._bytes, "little"))
        if beat.last:
            self._recv(self._gather())

    def _gather(self) -> tuple[Operation, dict[str, int]]:
        fields = unpack(self._body, self._common << 8 * self._bytes)
        header, route, beats, data = fields["operation"], fields["route"], len(self._parts), b"".join(self._parts)
        self._parts = []
        words = header["words"]
        if beats != max(1, -(-words * GRID // self._bytes)):
            raise ProtocolError(f"{self.name}: {beats} beats for an operation of {words} words")
        data = trimmed(OperationHeader(**header), data[: words * GRID])
        del header["words"]
        return Operation(data=data, **header), route

    def _drop(self) -> None:
        super()._drop()
        self._parts = []


class OperationSink(OperationMonitor, StreamSink):
    """Takes operations; ``await recv()`` gives ``(Operation, route)``."""

    def __init__(self, dut: Any, name: str, pause: Pause | None = None) -> None:
        super().__init__(dut, name, pause)
