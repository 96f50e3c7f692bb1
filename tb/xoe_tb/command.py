"""The user's side of the requester: commands in, completions out."""

from __future__ import annotations

from random import Random

from amaranth.hdl import Shape

from xoe.command import Command, Completion
from xoe_hdl.layouts import command_beat, completion_beat

from .layout import pack, unpack
from .stream import Beat, ProtocolError, StreamSink, StreamSource


def beats(size: int, bus: int) -> int:
    """Beats of ``bus`` bytes that this many bytes of data take, at least one."""
    return max(1, -(-size // bus))


class CommandSource(StreamSource):
    """Sends commands; what a beat has besides is random: other fields from the second beat on, data past the end."""

    def __init__(self, dut, name: str, width: int, rng: Random) -> None:
        super().__init__(dut, name)
        self._rng = rng
        self._bus = width // 8
        self._layout = command_beat(width)["data"].shape
        self._header_bits = Shape.cast(self._layout).width - width

    def send(self, command: Command) -> None:
        fields = {name: getattr(command, name) for name in self._layout.members if name != "data"}
        header, bus, found = pack(self._layout, fields), self._bus, []
        for at in range(0, max(1, len(command.data)), bus):
            chunk = command.data[at : at + bus]
            chunk += self._rng.randbytes(bus - len(chunk))
            found.append(Beat(header | int.from_bytes(chunk, "little"), last=0))
            header = self._rng.getrandbits(self._header_bits) << 8 * bus
        found[-1] = found[-1]._replace(last=1)
        self.append(found)


class CompletionSink(StreamSink):
    """Takes completions, as the model's."""

    def __init__(self, dut, name: str, width: int) -> None:
        super().__init__(dut, name)
        self._bus = width // 8
        self._layout = completion_beat(width)["data"].shape
        self._parts: list[bytes] = []
        self._header = 0

    def _on_beat(self, beat: Beat) -> None:
        header, data = beat.data >> 8 * self._bus, beat.data & (1 << 8 * self._bus) - 1
        if self._parts and header != self._header:
            raise ProtocolError(f"{self.name}: the header changed at beat {len(self._parts)} of a completion")
        self._header = header
        self._parts.append(data.to_bytes(self._bus, "little"))
        if beat.last:
            self._recv(self._gather())

    def _gather(self) -> Completion:
        fields, parts = unpack(self._layout, self._header << 8 * self._bus), self._parts
        self._parts = []
        length = fields.pop("length")
        if len(parts) != beats(length, self._bus):
            raise ProtocolError(f"{self.name}: {len(parts)} beats for a completion of {length} bytes")
        return Completion(**fields | {"data": b"".join(parts)[:length]})

    def _drop(self) -> None:
        super()._drop()
        self._parts = []
