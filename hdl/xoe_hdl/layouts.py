"""Every payload that passes between blocks, declared once.

A stream's payload always has the members of AXI4-Stream that it needs, named ``data``, ``keep``, ``last`` and
``user``; ``xoe_hdl.verilog`` turns them into ``tdata``, ``tkeep`` and so on. ``data`` may itself be a structure.
"""

from __future__ import annotations

from amaranth.hdl import ShapeLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from xoe.cyclic import EPOCH_BITS
from xoe.transport import CLOCKS_MAX, RETRIES_MAX
from xoe.wire import OperationHeader

from .wire import fields_layout

ADDRESS_SPACE_BITS = 16  # width of an address-space id
ID_BITS = 16  # width of the id that a user gives an operation and gets back with its completion
NODE_BITS = 16
QP_BITS = 12
MAC_BITS = 48
LENGTH_BITS = 9  # 0..256 bytes
STATUS_BITS = 4


def axis(width: int) -> data.StructLayout:
    """A beat of an Ethernet frame: byte 0 in the low bits; ``user`` on the last beat says that the frame is bad."""
    return data.StructLayout({"data": width, "keep": width // 8, "last": 1, "user": 1})


OPERATION = fields_layout(OperationHeader)
"""An operation header as the blocks see it: each field a plain number."""

ROUTE = data.StructLayout(
    {
        "mac": MAC_BITS,
        "node": NODE_BITS,
        "remote_qp": QP_BITS,
        "local_qp": QP_BITS,
        "traffic_class": 3,
        "epoch": EPOCH_BITS,
    }
)
"""Who is at the other end: where an outgoing operation goes, where an incoming one came from.

``epoch`` is that of this end, and names the incarnation of the connection that the operation belongs to.
"""


def operation_beat(width: int) -> data.StructLayout:
    """A beat of an operation between blocks.

    ``data`` is packed from the operation's first byte, low bits first; ``operation`` and ``route`` are the same on
    every beat. An operation without data has one beat; one with ``w`` words of data has ``ceil(w / (width / 64))``.
    """
    body = data.StructLayout({"data": width, "operation": OPERATION, "route": ROUTE})
    return data.StructLayout({"data": body, "last": 1})


def command_beat(width: int) -> data.StructLayout:
    """A beat of what a user asks for: the requester's input. All but ``data`` is read on the first beat only."""
    body = data.StructLayout(
        {
            "data": width,
            "opcode": 8,
            "id": ID_BITS,
            "length": LENGTH_BITS,
            "qp": QP_BITS,
            "address_space": ADDRESS_SPACE_BITS,
            "address": 64,
        }
    )
    return data.StructLayout({"data": body, "last": 1})


def completion_beat(width: int) -> data.StructLayout:
    """A beat of what a user gets back: data packed from the first byte, the rest the same on every beat."""
    body = data.StructLayout({"data": width, "opcode": 8, "id": ID_BITS, "length": LENGTH_BITS, "status": STATUS_BITS})
    return data.StructLayout({"data": body, "last": 1})


class Axi4Signature(wiring.Signature):
    """An AXI4 manager (ARM IHI 0022): each channel a stream, its payload named as in the standard.

    ``width`` is the data width in bits; addresses have 64 bits, ids one. Bursts are INCR, of full-width beats.
    """

    def __init__(self, width: int) -> None:
        address = data.StructLayout({"id": 1, "addr": 64, "len": 8, "size": 3, "burst": 2})
        write = data.StructLayout({"data": width, "strb": width // 8, "last": 1})
        read = data.StructLayout({"id": 1, "data": width, "resp": 2, "last": 1})
        super().__init__(
            {
                "aw": Out(stream.Signature(address)),
                "w": Out(stream.Signature(write)),
                "b": In(stream.Signature(data.StructLayout({"id": 1, "resp": 2}))),
                "ar": Out(stream.Signature(address)),
                "r": In(stream.Signature(read)),
            }
        )


TRANSPORT: dict[str, ShapeLike] = {
    "resend_timeout": CLOCKS_MAX.bit_length(),
    "probe_timeout": CLOCKS_MAX.bit_length(),
    "retries": RETRIES_MAX.bit_length(),
    "reorder": 6,
    "ack_every": 7,
    "ack_delay": CLOCKS_MAX.bit_length(),
    "sync_interval": CLOCKS_MAX.bit_length(),
    "silence_timeout": CLOCKS_MAX.bit_length(),
    "open_timeout": CLOCKS_MAX.bit_length(),
    "go_back_n": 1,
}
"""The settings of the transport, see ``xoe.transport.TransportSettings``; times in clocks."""

CFG = data.StructLayout(
    {
        "mac": MAC_BITS,
        "node": NODE_BITS,
        "ethertype": 16,
        "mtu": 14,  # bytes of Ethernet payload, 256..9000 and at most the configuration's
        "gather": 14,  # bytes of operations that a frame waits for, while they follow without a gap, on an idle wire
        "tagged": 1,  # frames are sent with an 802.1Q tag
        "vid": 12,
        "pcp": data.ArrayLayout(3, 8),  # by traffic class
        "ect": 1,  # frames say that they take part in congestion control
        "timeout": 32,  # clocks until a request is given up; 0: never
        **TRANSPORT,
    }
)
"""Run-time settings, to be driven by a register block. Changed only while nothing is in flight."""

TRANSLATION = data.StructLayout(
    {"base": 64, "mac": MAC_BITS, "node": NODE_BITS, "qp": QP_BITS, "rights": 3, "coherence": 3}
)
"""What the translation CAM holds for a page: remote address of its first byte, who has it, what may be done."""

WINDOW = data.StructLayout({"rights": 3})
"""What the responder's window table holds for a range and the node that may touch it."""


def counters(*names: str, width: int) -> data.StructLayout:
    """A block's counters, each of ``width`` bits, wrapping."""
    return data.StructLayout(dict.fromkeys(names, width))
