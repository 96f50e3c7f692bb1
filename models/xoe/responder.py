"""The responder: carries out a peer's operations on memory and answers them."""

from __future__ import annotations

import dataclasses
from enum import IntEnum

from .atomic import SIZES, execute
from .cam import Cam, Window
from .memory import Memory, MemoryRangeError
from .operation import Operation, padded
from .wire import ATOMICS, DATA_MAX, GRID, RESPONSE_BIT, SUPPORTED, Opcode, Rights, Status, data_words


class Outcome(IntEnum):
    """What became of a request; each has a counter of its name in small letters.

    The faults stand in the order of their tests: the first that applies is answered.
    """

    READ = 0
    WRITE = 1
    ATOMIC = 2
    FENCE = 3
    NOT_A_REQUEST = 4  # the response bit is set: ignored
    MALFORMED = 5
    UNSUPPORTED = 6
    MISALIGNED = 7
    WINDOW_MISS = 8
    WINDOW_CROSSED = 9
    PERMISSION = 10
    MEMORY_ERROR = 11  # the memory itself refused


STATUSES = {
    Outcome.MALFORMED: Status.MALFORMED,
    Outcome.UNSUPPORTED: Status.UNSUPPORTED,
    Outcome.MISALIGNED: Status.MISALIGNED,
    Outcome.WINDOW_MISS: Status.OUT_OF_RANGE,
    Outcome.WINDOW_CROSSED: Status.OUT_OF_RANGE,
    Outcome.PERMISSION: Status.PERMISSION,
    Outcome.MEMORY_ERROR: Status.OUT_OF_RANGE,
}
"""The status that answers an outcome; DONE for the others."""


class Responder:
    """Executes requests, one after the other, on ``memory`` as far as ``windows`` allow their senders.

    ``windows`` is looked up with the sender's node as the space. ``counters`` says how often each outcome came.
    """

    def __init__(self, memory: Memory, windows: Cam[Window]) -> None:
        self.memory = memory
        self.windows = windows
        self.counters = dict.fromkeys(Outcome, 0)

    def execute(self, request: Operation, node: int) -> Operation | None:
        """Carry out what ``node`` (0..65535) asks for; the response, or None for what is no request.

        A request that is refused changes nothing.
        """
        outcome = self._check(request, node)
        found = b""
        if outcome in (Outcome.READ, Outcome.WRITE, Outcome.ATOMIC):
            try:
                found = self._access(request)
            except MemoryRangeError:
                outcome = Outcome.MEMORY_ERROR
        self.counters[outcome] += 1
        if outcome is Outcome.NOT_A_REQUEST:
            return None
        status = STATUSES.get(outcome, Status.DONE)
        return dataclasses.replace(request, opcode=request.opcode | RESPONSE_BIT, address=0, data=found, status=status)

    def _check(self, request: Operation, node: int) -> Outcome:
        """How the request ends, if memory does its part."""
        if request.is_response:
            return Outcome.NOT_A_REQUEST
        if is_malformed(request):
            return Outcome.MALFORMED
        if request.opcode not in SUPPORTED:
            return Outcome.UNSUPPORTED
        if request.opcode in ATOMICS and request.address % request.length:
            return Outcome.MISALIGNED
        if request.opcode == Opcode.FENCE:
            return Outcome.FENCE
        return self._check_window(request, node)

    def _check_window(self, request: Operation, node: int) -> Outcome:
        kind, right = {
            Opcode.READ: (Outcome.READ, Rights.READ),
            Opcode.WRITE: (Outcome.WRITE, Rights.WRITE),
        }.get(Opcode(request.opcode), (Outcome.ATOMIC, Rights.ATOMIC))
        window = self.windows.lookup(node, request.address, request.length)
        if not window.hit or window.payload is None:
            return Outcome.WINDOW_MISS
        if window.crosses:
            return Outcome.WINDOW_CROSSED
        return kind if window.payload.rights & right else Outcome.PERMISSION

    def _access(self, request: Operation) -> bytes:
        """Do it; the data of the response.

        Raises:
            MemoryRangeError: the memory does not have these bytes.
        """
        if request.opcode == Opcode.READ:
            return self.memory.read(request.address, request.length)
        if request.opcode == Opcode.WRITE:
            self.memory.write(request.address, request.data)
            return b""
        operand, swap = (int.from_bytes(request.data[at : at + GRID], "little") for at in (0, GRID))
        old = int.from_bytes(self.memory.read(request.address, request.length), "little")
        new = execute(request.opcode, request.length, old, operand, swap)
        self.memory.write(request.address, new.to_bytes(request.length, "little"))
        return old.to_bytes(GRID, "little")


def is_malformed(request: Operation) -> bool:
    """Whether a request's status says so, or its length or its data is not what its opcode asks for."""
    if request.status == Status.MALFORMED:
        return True
    if request.opcode not in SUPPORTED:
        return False  # nobody knows what it should look like
    if request.opcode == Opcode.FENCE:
        has_length = request.length == 0
    elif request.opcode in ATOMICS:
        has_length = request.length in SIZES
    else:
        has_length = 1 <= request.length <= DATA_MAX
    words = len(padded(request.data)) // GRID
    return not has_length or words != data_words(request.opcode, request.length)
