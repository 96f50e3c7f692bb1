"""One operation as it stands in a frame: its header and its data."""

from __future__ import annotations

import dataclasses

from .wire import GRID, RESPONSE_BIT, Opcode, OperationHeader, Status, data_words

TRIMMED = (Opcode.WRITE, Opcode.READ | RESPONSE_BIT)  # their data may end inside a word


def padded(data: bytes) -> bytes:
    """``data`` filled with zeros up to the 8-byte grid."""
    return data + bytes(-len(data) % GRID)


@dataclasses.dataclass(frozen=True)
class Operation:
    """A request or a response.

    ``data`` is what is written, the operands of an atomic (8 bytes each, little-endian, a 32-bit operand in the first
    four), or what a response returns. ``length`` is in bytes. See ``OperationHeader`` for the ranges.
    """

    opcode: int
    tag: int = 0
    address: int = 0
    length: int = 0
    data: bytes = b""
    status: int = Status.DONE

    @property
    def is_response(self) -> bool:
        """Whether this answers a request."""
        return bool(self.opcode & RESPONSE_BIT)

    @property
    def size(self) -> int:
        """Bytes in a frame, header included: a multiple of 8."""
        return OperationHeader.SIZE + len(padded(self.data))

    def encode(self) -> bytes:
        """The operation's bytes in a frame.

        Raises:
            FieldError: a value that does not fit its field.
        """
        data = padded(self.data)
        header = OperationHeader(
            opcode=self.opcode,
            words=len(data) // GRID,
            tag=self.tag,
            status=self.status,
            length=self.length,
            address=self.address,
        )
        return header.pack() + data


def trimmed(header: OperationHeader, data: bytes) -> bytes:
    """The data that came with ``header``, cut to ``length`` bytes where that is what the words hold."""
    if header.opcode in TRIMMED and header.words == data_words(header.opcode, header.length):
        return data[: header.length]
    return data


def split(payload: bytes) -> tuple[list[Operation], bool]:
    """The operations in a frame's payload, in order, and whether the last one is whole.

    One whose data runs past the end of the payload comes without data and with status MALFORMED, so that it can be
    answered; half a header has no tag to answer to, and yields nothing. A request's status is otherwise DONE, whatever
    its field holds. Data is cut to ``length`` bytes where that is what the words hold, and else left as it is, so that
    whoever checks the operation sees that they do not match.
    """
    found: list[Operation] = []
    at = 0
    while at + OperationHeader.SIZE <= len(payload):
        header = OperationHeader.unpack(payload[at:])
        start = at + OperationHeader.SIZE
        at = start + header.words * GRID
        data = trimmed(header, payload[start:at])
        status = header.status if header.opcode & RESPONSE_BIT else Status.DONE
        if at > len(payload):
            data, status = b"", Status.MALFORMED
        found.append(Operation(header.opcode, header.tag, header.address, header.length, data, status))
    return found, at == len(payload)
