"""Queues between streams, each for another place: what comes late, what is wide, how long it may take.

``Queue`` is the usual one, in block RAM. ``FallThroughQueue`` takes a clock only. ``SkidBuffer`` is a register in both
directions. ``RingQueue`` and ``HeadQueue`` are for consumers that decide late. ``OutputQueue`` ends a pipeline that
cannot stop. ``OperationQueue`` holds whole operations.
"""

from .fall_through_queue import FallThroughQueue
from .head_queue import HeadQueue
from .operation_queue import WORDS_MAX, OperationQueue, beats_max
from .output_queue import OutputQueue
from .queue import Queue
from .ring_queue import RingQueue
from .skid_buffer import SkidBuffer

__all__ = [
    "WORDS_MAX",
    "FallThroughQueue",
    "HeadQueue",
    "OperationQueue",
    "OutputQueue",
    "Queue",
    "RingQueue",
    "SkidBuffer",
    "beats_max",
]
