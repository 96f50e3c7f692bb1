"""The wire format, version 1: every constant and every header, declared once.

``docs/wire-format.md`` explains it and draws its tables from here. It is an open format that carries xGMI's
operations; it is not AMD's packet format, which is not public.
"""

from __future__ import annotations

import dataclasses
from enum import IntEnum
from typing import ClassVar

from .header import Header, bits, reserved

VERSION = 1
ETHERTYPE = 0x88B5  # IEEE 802 local experimental 1; a register, because whoever deploys xoe is assigned another
VLAN_TPIDS = (0x8100, 0x88A8)  # IEEE 802.1Q C-tag and S-tag
MAC_CONTROL_ETHERTYPE = 0x8808  # IEEE 802.3 annex 31: PAUSE and PFC
ETHERTYPE_MIN = 0x0600  # below it the field is an 802.3 length

ETHERNET_HEADER = 14  # bytes: destination, source, EtherType
VLAN_TAG = 4  # bytes
CRC_SIZE = 4  # bytes
FRAME_MIN = 60  # bytes before the FCS, IEEE 802.3 3.2.8
GRID = 8  # bytes: operations start on this grid, counted from the end of the frame header
MTU_MIN, MTU_MAX = 256, 9000  # bytes of Ethernet payload: frame header, operations, CRC
DATA_MAX = 256  # bytes that one operation carries


class Kind(IntEnum):
    """What a frame is for."""

    DATA = 0  # carries operations
    ACK = 1  # carries acknowledgement and credit alone; takes no sequence number
    CONTROL = 2  # opens and closes connections


class TrafficClass(IntEnum):
    """What a frame's operations have in common; chooses the PCP, and so the PFC priority."""

    REQUEST = 0
    RESPONSE = 1
    ATOMIC = 2
    PROBE = 3


class Opcode(IntEnum):
    """Operations. A response has the opcode of its request with ``RESPONSE_BIT`` set."""

    READ = 0x01
    WRITE = 0x02
    FENCE = 0x03
    ADD = 0x10
    SUB = 0x11
    SMIN = 0x12
    SMAX = 0x13
    UMIN = 0x14
    UMAX = 0x15
    INC = 0x16
    DEC = 0x17
    AND = 0x18
    OR = 0x19
    XOR = 0x1A
    EXCHANGE = 0x1B
    COMPARE_SWAP = 0x1C
    # Set aside: answered "unsupported" until they work.
    FLOAT_ADD = 0x20
    HALF_ADD = 0x21
    BFLOAT_ADD = 0x22
    PROBE_SHARED = 0x30
    PROBE_EXCLUSIVE = 0x31
    PROBE_INVALIDATE = 0x32


RESPONSE_BIT = 0x40
SHORT_BIT = 0x80  # opcodes set aside for operations with an 8-byte header
ATOMICS = frozenset(op for op in Opcode if Opcode.ADD <= op <= Opcode.COMPARE_SWAP)
SUPPORTED = ATOMICS | {Opcode.READ, Opcode.WRITE, Opcode.FENCE}


class Status(IntEnum):
    """How an operation ended."""

    DONE = 0
    TRANSLATION_FAULT = 1
    PERMISSION = 2
    OUT_OF_RANGE = 3
    MISALIGNED = 4
    UNSUPPORTED = 5
    MALFORMED = 6
    TIMED_OUT = 7
    NOT_CONNECTED = 8
    CONNECTION_LOST = 9


ANSWER_STATUS_MAX = Status.TIMED_OUT  # those above it are said by a requester to its user, never in a frame


class Rights(IntEnum):
    """Bits of a rights field: what may be done to a page or a window."""

    READ = 1
    WRITE = 2
    ATOMIC = 4


@dataclasses.dataclass(frozen=True)
class FrameHeader(Header):
    """Follows the EtherType of every frame."""

    SIZE: ClassVar[int] = 22

    version: int = bits(4, "Version of this format: 1", VERSION)
    kind: int = bits(4, "0 data, 1 acknowledgement, 2 control", Kind.DATA)
    traffic_class: int = bits(3, "0 requests, 1 responses, 2 atomics, 3 probes", TrafficClass.REQUEST)
    ect: int = bits(1, "The sender takes part in congestion control: switches may mark")
    ce: int = bits(1, "Congestion mark, set by switches; taken as 0 by the CRC")
    ack_valid: int = bits(1, "ack is valid")
    credit_valid: int = bits(1, "credit_class and credit are valid")
    nack: int = bits(1, "Go back: frame `ack` is missed, and those behind it are not kept")
    dst_node: int = bits(16, "Destination node")
    src_node: int = bits(16, "Source node")
    dst_qp: int = bits(12, "Destination queue pair")
    src_qp: int = bits(12, "Source queue pair")
    epoch: int = bits(8, "Epoch of the connection, as the destination chose it")
    seq: int = bits(24, "Sequence number (PSN) of this frame; in an acknowledgement, of the data frame to come next")
    ack: int = bits(24, "Cumulative acknowledgement: the next PSN expected")
    credit_class: int = bits(3, "Traffic class that credit is about")
    reserved_credit: int = reserved(1)
    credit: int = bits(20, "Cumulative cyclic count of credits: freed, or in an acknowledgement consumed")
    reserved_length: int = reserved(2)
    length: int = bits(14, "Bytes of operations that follow, a multiple of 8")
    src_epoch: int = bits(8, "Epoch of the connection, as the source chose it; 0 in control frames")


@dataclasses.dataclass(frozen=True)
class OperationHeader(Header):
    """Begins every operation, on the 8-byte grid."""

    SIZE: ClassVar[int] = 16

    opcode: int = bits(8, "Operation; bit 6 set in a response, bit 7 set aside for 8-byte headers")
    words: int = bits(8, "8-byte words of data that follow this header")
    tag: int = bits(16, "Chosen by the requester, returned in the response")
    status: int = bits(4, "How the operation ended; 0 in a request", Status.DONE)
    length: int = bits(12, "Bytes read, written or operated on: 1..256; 4 or 8 for atomics; 0 for a fence")
    reserved_middle: int = reserved(16)
    address: int = bits(64, "Remote address; 0 in a response")


@dataclasses.dataclass(frozen=True)
class AckBody(Header):
    """Follows the header of an acknowledgement; words with 64 further bits of ``sack`` each may follow it."""

    SIZE: ClassVar[int] = 16

    sack: int = bits(64, "Bit n, counted from the least significant: frame `ack` + 1 + n is here")
    freed_request: int = bits(20, "Credits freed of class 0")
    freed_response: int = bits(20, "Credits freed of class 1")
    freed_atomic: int = bits(20, "Credits freed of class 2")
    reserved_last: int = reserved(4)


class Message(IntEnum):
    """What a control frame says."""

    OPEN = 0
    CLOSE = 1
    CLOSED = 2


@dataclasses.dataclass(frozen=True)
class ControlBody(Header):
    """Follows the header of a control frame: what its sender offers for frames in the other direction."""

    SIZE: ClassVar[int] = 16

    message: int = bits(4, "0 open, 1 close, 2 closed", Message.OPEN)
    echo_valid: int = bits(1, "The frame header's `epoch` is the destination's, heard from it; else it is 0")
    is_open: int = bits(1, "The sender is open with these epochs; else it wants an answer")
    reserved_message: int = reserved(2)
    epoch: int = bits(8, "Epoch that frames to the sender of this one shall have")
    first_seq: int = bits(24, "PSN of the first data frame that the sender of this one will send")
    first_credit: int = bits(20, "Where its counts of credits begin, for every class")
    credit_size: int = bits(4, "log2 of the bytes that a credit is worth, 5 to 11")
    credit_request: int = bits(12, "Credits granted for class 0")
    credit_response: int = bits(12, "Credits granted for class 1")
    credit_atomic: int = bits(12, "Credits granted for class 2")
    atomic_slots: int = bits(8, "Atomics that may be without an answer")
    window: int = bits(8, "Frames that may be without acknowledgement")
    reserved_last: int = reserved(12)


def data_words(opcode: int, length: int, status: int = Status.DONE) -> int:
    """8-byte words of data that an operation carries: 0..32.

    ``opcode`` may be a request's or a response's; an unknown one carries none.
    """
    request = opcode & ~RESPONSE_BIT
    if opcode & RESPONSE_BIT:
        has_data = status == Status.DONE and (request == Opcode.READ or request in ATOMICS)
    else:
        has_data = request == Opcode.WRITE or request in ATOMICS
    if not has_data:
        return 0
    if request == Opcode.COMPARE_SWAP and not opcode & RESPONSE_BIT:
        return 2
    return 1 if request in ATOMICS else -(-length // GRID)
