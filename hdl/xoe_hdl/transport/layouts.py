"""What sender and receiver have in common: bounds, widths, and how a frame is counted."""

from __future__ import annotations

from amaranth.hdl import Value
from amaranth.utils import exact_log2

from xoe.channel import CLASSES as CREDIT_CLASSES
from xoe.config import BUFFER_OVERHEAD, WINDOW_MAX, check_choice
from xoe.wire import GRID

CLASSES = len(CREDIT_CLASSES)  # that have credits
WORDS_BITS = 11  # 8-byte words of operations in a frame
WINDOW_BITS = WINDOW_MAX.bit_length()
OVERHEAD_WORDS = BUFFER_OVERHEAD // GRID  # that a frame takes in a buffer besides its operations

QUEUE_PAIRS = tuple(1 << bits for bits in range(9))
WINDOWS = tuple(1 << bits for bits in range(3, WINDOW_MAX.bit_length()))


def qp_bits(queue_pairs: int) -> int:
    """Bits of a port that names one of so many queue pairs: at least one.

    Raises:
        ConfigError: not a power of two from 1 to 256.
    """
    check_choice("queue_pairs", queue_pairs, QUEUE_PAIRS)
    return max(1, exact_log2(queue_pairs))


def credits_needed(words: Value, credit_words: int) -> Value:
    """Credits, worth ``credit_words`` words each, that a frame with so many words of operations takes."""
    return (words + (OVERHEAD_WORDS + credit_words - 1)) >> exact_log2(credit_words)
