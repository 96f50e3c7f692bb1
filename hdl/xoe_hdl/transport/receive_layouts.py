"""What passes through the receiving half of the transport. ``docs/transport.md`` says what the fields mean."""

from __future__ import annotations

from amaranth.hdl import ShapeLike
from amaranth.lib import data

from xoe.cyclic import CREDIT_BITS, EPOCH_BITS, SEQ_BITS

from .layouts import CLASSES, WINDOW_BITS, WORDS_BITS
from .page_store import segment

CLASS_BITS = 3


def qp_layout(bits: int) -> data.StructLayout:
    """A connection, by its queue pair here."""
    return data.StructLayout({"qp": bits})


def _frame(pages: int) -> dict[str, ShapeLike]:
    return {"traffic_class": CLASS_BITS, "words": WORDS_BITS, "segment": segment(pages)}


def frame_layout(pages: int) -> data.StructLayout:
    """What is known of a data frame in the receive buffer."""
    return data.StructLayout(_frame(pages))


def arrival_layout(bits: int, pages: int) -> data.StructLayout:
    """A good data frame that lies in the receive buffer."""
    return data.StructLayout({"qp": bits, "epoch": EPOCH_BITS, "seq": SEQ_BITS, **_frame(pages)})


def delivery_layout(bits: int, pages: int) -> data.StructLayout:
    """A frame whose turn it is."""
    return data.StructLayout({"qp": bits, "epoch": EPOCH_BITS, **_frame(pages)})


def freed_layout(bits: int) -> data.StructLayout:
    """A delivered frame that has left the receive buffer."""
    return data.StructLayout({"qp": bits, "epoch": EPOCH_BITS, "traffic_class": CLASS_BITS, "words": WORDS_BITS})


def open_layout(bits: int) -> data.StructLayout:
    """An incarnation that begins: the epoch that its frames have, and what the other end said of them.

    ``seq`` is the PSN of the first, ``credits`` where the counts begin; ``window`` is 1 and up.
    """
    fields = {"qp": bits, "epoch": EPOCH_BITS, "seq": SEQ_BITS, "credits": CREDIT_BITS, "window": WINDOW_BITS}
    return data.StructLayout(fields)


def reconcile_layout(bits: int) -> data.StructLayout:
    """Of an acknowledgement: the credits of a class that its sender had consumed before the frame ``seq`` to come."""
    fields = {"qp": bits, "epoch": EPOCH_BITS, "seq": SEQ_BITS, "traffic_class": CLASS_BITS, "credits": CREDIT_BITS}
    return data.StructLayout(fields)


def snapshot_layout(window: int) -> data.StructLayout:
    """What an acknowledgement says of frames. Without ``is_open`` there is nothing to acknowledge."""
    return data.StructLayout({"is_open": 1, "epoch": EPOCH_BITS, "nack": 1, "ack": SEQ_BITS, "sack": window})


FREED = data.ArrayLayout(CREDIT_BITS, CLASSES)
"""Credits freed, by class."""


def reported_layout(bits: int, window: int) -> data.StructLayout:
    """What an acknowledgement says."""
    return data.StructLayout({"qp": bits, **snapshot_layout(window).members, "freed": FREED})


def owe_layout(bits: int) -> data.StructLayout:
    """The other end is to be told something; ``urgent``: at once.

    ``is_credit``: of credits of a class that were freed, else of a data frame that came, of whatever class.
    """
    return data.StructLayout({"qp": bits, "urgent": 1, "is_credit": 1, "traffic_class": CLASS_BITS})


def paid_layout(bits: int) -> data.StructLayout:
    """A data frame goes out; it tells of all that came, and of the credits of one class that were freed."""
    return data.StructLayout({"qp": bits, "traffic_class": CLASS_BITS})


def command_layout(bits: int) -> data.StructLayout:
    """From the engine that orders frames to the one that returns credit; one bit of the last four is set.

    ``credits``: where the counts begin, or how many are free besides.
    """
    kinds = dict.fromkeys(("reconciles", "reports", "shuts", "opens"), 1)
    fields = {"qp": bits, "epoch": EPOCH_BITS, "traffic_class": CLASS_BITS, "credits": CREDIT_BITS}
    return data.StructLayout({**fields, **kinds})


def event_layout(bits: int, pages: int) -> data.StructLayout:
    """What the engine that orders frames works on: the fields of all its inputs."""
    numbers = {"qp": bits, "epoch": EPOCH_BITS, "seq": SEQ_BITS, "credits": CREDIT_BITS, "window": WINDOW_BITS}
    return data.StructLayout({**numbers, **_frame(pages)})


def state_layout(window: int, pages: int) -> data.StructLayout:
    """A connection, as the engine that orders frames knows it."""
    return data.StructLayout(
        {
            "is_alive": 1,
            "is_nacked": 1,  # a frame is missing, and its sender was told or will be
            "owes_nack": 1,
            "epoch": EPOCH_BITS,
            "window": WINDOW_BITS,
            "expected": SEQ_BITS,
            "present": window,  # bit n: frame expected + n is here
            "kept": range(window),  # how many of them are set
            "delivered": range(2 * pages),  # frames, over all incarnations; counts round
        }
    )


def order_inputs(bits: int, pages: int) -> dict[str, data.StructLayout]:
    """The streams of the engine that orders frames."""
    return {
        "reconcile": reconcile_layout(bits),
        "report": qp_layout(bits),
        "shut": qp_layout(bits),
        "open": open_layout(bits),
        "arrivals": arrival_layout(bits, pages),
    }
