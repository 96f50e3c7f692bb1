"""What the sender keeps, and what it exchanges with others."""

from __future__ import annotations

from amaranth.lib import data

from xoe.config import CREDIT_LIMIT_MAX
from xoe.cyclic import CREDIT_BITS, EPOCH_BITS, SEQ_BITS
from xoe.transport import BACKOFF_MAX, RETRIES_MAX

from ..layouts import CLASSES, WINDOW_BITS, WORDS_BITS, qp_bits
from ..page_store import segment

CLASS_BITS = 2
LIMIT_BITS = CREDIT_LIMIT_MAX.bit_length()
SHIFT_BITS = 4  # log2 of the words that a credit is worth
PERMIT_BITS = 2
PERMITS_MAX = 2
ATOMICS_BITS = 8
TIME_BITS = 32  # clocks; twice the longest doubled time-out
STAMP_BITS = 24  # clocks; beyond what a round trip takes
TRIES_BITS = RETRIES_MAX.bit_length()
BACKOFF_BITS = BACKOFF_MAX.bit_length()


def order_bits(window: int) -> int:
    """Bits that number transmissions: four windows' worth, as some that are void wait to be passed over."""
    return (4 * window - 1).bit_length()


def commit(queue_pairs: int, pages: int) -> data.StructLayout:
    """A data frame that was gathered. ``epoch`` is this end's; ``atomics`` counts results of atomics in it."""
    return data.StructLayout(
        {
            "qp": qp_bits(queue_pairs),
            "epoch": EPOCH_BITS,
            "traffic_class": CLASS_BITS,
            "words": WORDS_BITS,
            "crc": 32,
            "atomics": ATOMICS_BITS,
            "segment": segment(pages),
        }
    )


def job(queue_pairs: int, pages: int) -> data.StructLayout:
    """A data frame to be sent now. ``epoch`` is the other end's, ``crc`` that of its operations."""
    return data.StructLayout(
        {
            "qp": qp_bits(queue_pairs),
            "epoch": EPOCH_BITS,
            "seq": SEQ_BITS,
            "traffic_class": CLASS_BITS,
            "words": WORDS_BITS,
            "crc": 32,
            "page": range(pages),
        }
    )


def acknowledgement(queue_pairs: int, window: int) -> data.StructLayout:
    """What a frame that came says about frames sent. ``epoch`` is this end's; ``freed`` counts where ``tells``."""
    return data.StructLayout(
        {
            "qp": qp_bits(queue_pairs),
            "epoch": EPOCH_BITS,
            "ack": SEQ_BITS,
            "sack": window,
            "nack": 1,
            "tells": CLASSES,
            "freed": data.ArrayLayout(CREDIT_BITS, CLASSES),
        }
    )


def opening(queue_pairs: int) -> data.StructLayout:
    """A new incarnation of a connection.

    ``window``, ``limits`` (credits), ``credit_shift`` (log2 of the words that a credit is worth) and ``peer_epoch`` are
    what the other end offers; ``most`` the credits that the largest frame of each class takes.
    """
    credits = data.ArrayLayout(LIMIT_BITS, CLASSES)
    return data.StructLayout(
        {
            "qp": qp_bits(queue_pairs),
            "epoch": EPOCH_BITS,
            "peer_epoch": EPOCH_BITS,
            "first_seq": SEQ_BITS,
            "first_credit": CREDIT_BITS,
            "window": WINDOW_BITS,
            "credit_shift": SHIFT_BITS,
            "limits": credits,
            "most": credits,
        }
    )


def permit_change(queue_pairs: int, pages: int) -> data.StructLayout:
    """What permits depend on, of a connection that works, or begins (``is_first``), or ends (``is_last``).

    ``credits`` has those that each class got, or gets at first; ``returned`` says of which class a permit was used.
    ``most`` is what the largest frame of each class takes, ``frames`` how many more the window has room for, ``pages``
    those that are outstanding.
    """
    credits = data.ArrayLayout(LIMIT_BITS, CLASSES)
    return data.StructLayout(
        {
            "qp": qp_bits(queue_pairs),
            "epoch": EPOCH_BITS,
            "is_first": 1,
            "is_last": 1,
            "credits": credits,
            "returned": CLASSES,
            "most": credits,
            "frames": WINDOW_BITS,
            "pages": range(pages + 1),
        }
    )


def failure(queue_pairs: int) -> data.StructLayout:
    """A connection that is given up, and the other end's epoch, which its frames had."""
    return data.StructLayout({"qp": qp_bits(queue_pairs), "epoch": EPOCH_BITS})


PROGRESS = data.StructLayout(
    {"alive": 1, "epoch": EPOCH_BITS, "next_seq": SEQ_BITS, "consumed": data.ArrayLayout(CREDIT_BITS, CLASSES)}
)
"""How far a connection is: the PSN to come next, and the credits consumed before that, by class."""

GRANT = data.StructLayout({"alive": 1, "epoch": EPOCH_BITS, "count": PERMIT_BITS})
"""How many frames, cyclically counted, a class of a connection was permitted to begin in this incarnation."""


def grant_write(queue_pairs: int) -> data.StructLayout:
    """A change of a grant; ``is_reset``: the incarnation begins or ends, and nothing was begun."""
    return data.StructLayout(
        {"valid": 1, "qp": qp_bits(queue_pairs), "traffic_class": CLASS_BITS, "is_reset": 1, "grant": GRANT}
    )


def incident(queue_pairs: int) -> data.StructLayout:
    """What happened to a connection: its timer ended (with a probe, or with everything sent again), or it failed."""
    return data.StructLayout({"valid": 1, "qp": qp_bits(queue_pairs), "is_probe": 1, "is_timeout": 1, "is_failed": 1})


CFG = data.StructLayout(
    {
        "resend_timeout": 24,
        "probe_timeout": 24,
        "retries": TRIES_BITS,
        "reorder": 6,
        "go_back_n": 1,
    }
)
"""Settings, see ``xoe.transport.TransportSettings``. Changed only while no connection is open."""

CREDIT = data.StructLayout(
    {
        "consumed": CREDIT_BITS,
        "freed": CREDIT_BITS,
        "most": LIMIT_BITS,  # that the largest frame takes
    }
)


def state(window: int, pages: int) -> data.StructLayout:
    """All that is known of a connection.

    ``first`` is the oldest PSN outstanding, ``count`` the number of those from it to the next one; ``acked`` has a bit
    for each. ``order`` numbers the next transmission; ``tail`` the oldest that may still be found lost; ``reach`` is
    how many from ``tail`` on were sent no later than the latest that is known to have arrived. ``again``: going back,
    how many of the outstanding frames are sent already; ``is_queued``: the queue of resends has an entry for that.
    ``pages`` counts those of frames that are outstanding.
    """
    return data.StructLayout(
        {
            "alive": 1,
            "failed": 1,
            "epoch": EPOCH_BITS,
            "peer_epoch": EPOCH_BITS,
            "window": WINDOW_BITS,
            "credit_shift": SHIFT_BITS,
            "first": SEQ_BITS,
            "count": WINDOW_BITS,
            "acked": window,
            "order": order_bits(window),
            "tail": order_bits(window),
            "reach": order_bits(window),
            "again": WINDOW_BITS,
            "is_queued": 1,
            "attempts": TRIES_BITS,
            "runs": 1,  # the timer
            "deadline": TIME_BITS,
            "probed": 1,
            "backoff": BACKOFF_BITS,
            "rtt_min": STAMP_BITS,
            "pages": range(pages + 1),
            "credits": data.ArrayLayout(CREDIT, CLASSES),
        }
    )


def frame(pages: int) -> data.StructLayout:
    """What stays the same of a frame that is kept."""
    return data.StructLayout(
        {
            "traffic_class": CLASS_BITS,
            "words": WORDS_BITS,
            "crc": 32,
            "atomics": ATOMICS_BITS,
            "segment": segment(pages),
        }
    )


def track(window: int) -> data.StructLayout:
    """What changes: how often it was sent again, whether it waits for that, and its latest transmission."""
    return data.StructLayout({"tries": TRIES_BITS, "waits": 1, "order": order_bits(window), "sent_at": STAMP_BITS})
