"""A user's commands, the requests that they become, and how they end."""

from __future__ import annotations

import dataclasses

from .atomic import SIZES
from .operation import Operation, padded
from .parser import Route
from .wire import (
    ANSWER_STATUS_MAX,
    ATOMICS,
    DATA_MAX,
    GRID,
    RESPONSE_BIT,
    Opcode,
    Rights,
    Status,
    TrafficClass,
    data_words,
)

PROBES = frozenset({Opcode.PROBE_SHARED, Opcode.PROBE_EXCLUSIVE, Opcode.PROBE_INVALIDATE})


@dataclasses.dataclass(frozen=True)
class Command:
    """What a user asks for.

    Attributes:
        opcode: see ``Opcode``, 8 bits.
        id: the user's, 16 bits; comes back with the completion.
        qp: the local queue pair, 12 bits.
        address_space: what the address belongs to, 16 bits.
        address: virtual, 64 bits.
        length: bytes, 9 bits.
        data: what is written, or 8 bytes for each operand of an atomic.
    """

    opcode: int
    id: int = 0
    qp: int = 0
    address_space: int = 0
    address: int = 0
    length: int = 0
    data: bytes = b""


@dataclasses.dataclass(frozen=True)
class Request:
    """What is sent, and whom to."""

    operation: Operation
    route: Route


@dataclasses.dataclass(frozen=True)
class Completion:
    """How a command ended: its id and opcode, and the data that it returned if it is done."""

    id: int
    opcode: int
    status: int
    data: bytes = b""


def fits(command: Command, response: Operation) -> bool:
    """Whether a response can be one to this command."""
    if response.opcode != command.opcode | RESPONSE_BIT or response.status > ANSWER_STATUS_MAX:
        return False
    words = data_words(response.opcode, command.length)
    return response.status != Status.DONE or len(padded(response.data)) == words * GRID


def completion(command: Command, response: Operation) -> Completion:
    """What a response makes of a command: MALFORMED if it does not fit it, and data only if it is DONE."""
    status = response.status if fits(command, response) else Status.MALFORMED
    has_data = status == Status.DONE and data_words(response.opcode, command.length) > 0
    data = padded(response.data)[: command.length] if has_data else b""
    return Completion(command.id, command.opcode, status, data)


def has_length(command: Command) -> bool:
    """Whether a command has a length that its opcode, a supported one, allows."""
    if command.opcode == Opcode.FENCE:
        return command.length == 0
    return command.length in SIZES if command.opcode in ATOMICS else 1 <= command.length <= DATA_MAX


def sent_bytes(command: Command) -> int:
    """Bytes of data that a command's request carries, without the filling up to the grid."""
    return command.length if command.opcode == Opcode.WRITE else data_words(command.opcode, command.length) * GRID


def needed_rights(opcode: int) -> int:
    """What a page must grant for an operation; a fence needs nothing, and only asks the page who has it."""
    if opcode in ATOMICS:
        return Rights.ATOMIC
    return {Opcode.READ: int(Rights.READ), Opcode.WRITE: int(Rights.WRITE)}.get(Opcode(opcode), 0)


def traffic_class(opcode: int) -> TrafficClass:
    """The class of the frames that a request goes in."""
    if opcode in PROBES:
        return TrafficClass.PROBE
    return TrafficClass.ATOMIC if opcode in ATOMICS else TrafficClass.REQUEST
