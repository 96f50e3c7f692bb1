"""What passes between the table of connections and those around it."""

from __future__ import annotations

from enum import IntEnum

from amaranth.lib import data

from xoe.cyclic import EPOCH_BITS
from xoe.transport import CLOCKS_MAX, RETRIES_MAX
from xoe.wire import ControlBody

from ..layouts import MAC_BITS, NODE_BITS, QP_BITS
from ..wire import fields_layout
from .layouts import WINDOW_BITS
from .receive_layouts import open_layout, qp_layout

CLOCK_BITS = CLOCKS_MAX.bit_length()
RETRY_BITS = RETRIES_MAX.bit_length()

PEER = {"mac": MAC_BITS, "node": NODE_BITS, "remote_qp": QP_BITS}
BODY = fields_layout(ControlBody).members
GRANTED = ("credit_size", "credit_request", "credit_response", "credit_atomic", "atomic_slots", "window")
SAID = ("message", "echo_valid", "is_open", "epoch")  # of a body: what is not the same in all


class Action(IntEnum):
    """What a user wants of a connection."""

    LISTEN = 0
    OPEN = 1
    CLOSE = 2


_TIMES = {"open_timeout": CLOCK_BITS, "silence_timeout": CLOCK_BITS}
CONNECTION_CFG = data.StructLayout({**_TIMES, "retries": RETRY_BITS, "window": WINDOW_BITS})
"""As in ``xoe.transport.TransportSettings``; ``window`` is what this end offers, in frames."""


def connect_layout(bits: int) -> data.StructLayout:
    """What the user wants. The other end is read with ``LISTEN`` and ``OPEN``."""
    return data.StructLayout({"qp": bits, "action": 2, **PEER})


def notice_layout(bits: int) -> data.StructLayout:
    """What the user is told, see ``xoe.connection.Notice``."""
    return data.StructLayout({"qp": bits, "notice": 3})


def control_layout(bits: int) -> data.StructLayout:
    """A control frame that came: where from, ``echo`` the epoch of its header, and its body."""
    return data.StructLayout({"qp": bits, **PEER, "echo": EPOCH_BITS, **BODY})


def answer_layout(bits: int) -> data.StructLayout:
    """A control frame to send: where to, ``echo`` for its header, and what its body says besides the offer."""
    return data.StructLayout({"qp": bits, **PEER, "echo": EPOCH_BITS, **{name: BODY[name] for name in SAID}})


def heard_layout(bits: int) -> data.StructLayout:
    """A connection to whose end something came, in a clock in which ``valid`` is set."""
    return data.StructLayout({"valid": 1, "qp": bits})


def epoch_layout(bits: int) -> data.StructLayout:
    """A connection, and an epoch of one of its directions."""
    return data.StructLayout({"qp": bits, "epoch": EPOCH_BITS})


def sender_layout(bits: int) -> data.StructLayout:
    """For the sending end: the epochs of both directions, as in ``entry_layout``, and what the other end grants."""
    epochs = {"epoch": EPOCH_BITS, "peer_epoch": EPOCH_BITS}
    return data.StructLayout({"qp": bits, **epochs, **{name: BODY[name] for name in GRANTED}})


def entry_layout() -> data.StructLayout:
    """What others see of a connection.

    ``epoch`` is that of frames to this end, ``peer_epoch`` of those from it; ``atomic_slots`` what the other end
    grants.
    """
    epochs = {"epoch": EPOCH_BITS, "peer_epoch": EPOCH_BITS}
    return data.StructLayout({"is_open": 1, **epochs, **PEER, "atomic_slots": BODY["atomic_slots"]})


def begin_layouts(bits: int) -> dict[str, data.StructLayout]:
    """What tells each of the three ends' parts that an incarnation begins."""
    return {"receiver": open_layout(bits), "sender": sender_layout(bits), "acknowledger": qp_layout(bits)}


def event_layout(bits: int) -> data.StructLayout:
    """The fields of all that comes."""
    return data.StructLayout({**control_layout(bits).members, "action": 2})
