"""Payloads between the parts of the responder."""

from __future__ import annotations

from amaranth.hdl import Module, Value
from amaranth.lib import data

from xoe.cyclic import EPOCH_BITS

from ..layouts import MAC_BITS, NODE_BITS, QP_BITS
from .atomic import OPCODE_BITS
from .byte_aligner import aligner_input, lane_bits

OPERATIONS = 64  # that the responder has in hand, about
BEATS = 64  # of data that wait for their operation's turn
PAGE_BITS = 12  # AXI4: no burst crosses 4 KB (ARM IHI 0022, A3.4.1)
WAITING = 16  # bursts, or beats, that wait for a channel
INCR = 1  # AXI4's burst type
OUTCOME_BITS = 4
COUNT_BITS = 6  # bus beats of an operation, less one: 256 bytes and a byte's shift on 64 bits are 33

HEADER = data.StructLayout(
    {
        "opcode": 8,
        "tag": 16,
        "length": 12,
        "words": COUNT_BITS,
        "mac": MAC_BITS,
        "node": NODE_BITS,
        "remote_qp": QP_BITS,
        "local_qp": QP_BITS,
        "epoch": EPOCH_BITS,
    }
)
"""What the response will need of the request; ``words`` is what it carries if all goes well."""


def data_beat(width: int) -> data.StructLayout:
    """A beat of a request's data."""
    return data.StructLayout({"data": width, "last": 1})


def place_layout(width: int) -> data.StructLayout:
    """Where an operation's bytes lie on the memory bus.

    ``last``: bus beats less one; ``first``, ``second``: the same for its bursts, the second if it ``crosses`` 4 KB.
    ``is_single``, ``is_first_single``: one beat, in all or in the first burst. ``is_extra``: there is a bus beat more
    than ``data`` has beats. ``end``: lane of the last byte in memory; ``data_end``: in the data.
    """
    lanes = lane_bits(width)
    counts = dict.fromkeys(("last", "first", "second"), COUNT_BITS)
    flags = dict.fromkeys(("is_single", "is_first_single", "crosses", "is_extra"), 1)
    return data.StructLayout({**counts, **flags, "end": lanes, "data_end": lanes})


KIND = data.StructLayout({"is_read": 1, "is_write": 1, "is_atomic": 1, "is_fence": 1})
"""What is to be done: nothing if none is set."""


def job_layout(width: int) -> data.StructLayout:
    """An operation ready to be carried out; ``has_beats``: there is data to be taken or thrown away."""
    return data.StructLayout(
        {
            "kind": KIND,
            "outcome": OUTCOME_BITS,
            "has_beats": 1,
            "opcode": OPCODE_BITS,
            "is_wide": 1,
            "address": 64,
            "place": place_layout(width),
        }
    )


BURST = data.StructLayout({"is_read": 1, "is_write": 1, "address": 64, "length": COUNT_BITS})
"""A burst to be asked for, if either bit is set: address of its first beat, beats less one."""

TOKEN = data.StructLayout({"valid": 1, "is_bad": 1})
"""A burst has ended; ``is_bad``: with an error."""


def step_layout(width: int) -> data.StructLayout:
    """A beat to be written, and how it is to be aligned; ``last`` of its burst."""
    return data.StructLayout({"valid": 1, "beat": aligner_input(width), "last": 1})


def order_layout(width: int) -> data.StructLayout:
    """An operation that was carried out, or refused, and is to be answered.

    ``awaits``: a burst has to end first, or two if it ``awaits_two``. ``last``: steps of the answer, less one, 0 if it
    ``is_single``. Each takes a bus beat of what was read, but the last if it ``is_flushed``: that brings out what the
    one before left. Data goes up by ``shift`` lanes; ``is_direct``: each step gives a beat, else the first gives none.
    """
    lanes = lane_bits(width)
    return data.StructLayout(
        {
            "valid": 1,
            "outcome": OUTCOME_BITS,
            "awaits": 1,
            "awaits_two": 1,
            "has_data": 1,
            "last": COUNT_BITS,
            "is_single": 1,
            "is_direct": 1,
            "is_flushed": 1,
            "shift": lanes,
            "end": lanes,
        }
    )


def ask(m: Module, address: data.View, burst: data.View, width: int) -> None:
    """Make ``address``, the payload of an AXI4 address channel, ask for a burst of beats as wide as the bus."""
    m.d.comb += [
        address.id.eq(0),
        address.addr.eq(burst.address),
        address.len.eq(burst.length),
        address.size.eq(lane_bits(width)),
        address.burst.eq(INCR),
    ]


def is_error(resp: Value) -> Value:
    """Whether an AXI4 response is SLVERR or DECERR (ARM IHI 0022, A3.4.4)."""
    return resp[1]
