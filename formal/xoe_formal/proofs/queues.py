"""Every queue keeps what it offers until it is taken, and brings each payload once, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Module, Value

from xoe_hdl.delay import delayed

from ..harness import Harness
from ..monitors import check_order, check_stable
from ..proof import Change, Proof

WIDTH = 2  # bits of a payload: nothing depends on them
UNDER_WAY = 2  # clocks from looking at room to the payload that was started
TEXT = "keeps what it offers until it is taken; what goes in comes out, once, in order, in time"


class StreamQueue(Harness):
    """A queue between two streams, with anybody at both ends."""

    def __init__(self, queue: Any, capacity: int, patience: int) -> None:
        super().__init__()
        self.queue, self.capacity, self.patience = queue, capacity, patience

    def build(self, m: Module) -> None:
        """Drive the inputs, watch the output."""
        m.submodules.queue = self.queue
        i, o = self.queue.i, self.queue.o
        payload = Value.cast(i.payload)
        m.d.comb += [
            i.valid.eq(self.anything("valid", i.valid)),
            payload.eq(self.anything("payload", payload)),
            o.ready.eq(self.anything("ready", o.ready)),
        ]
        check_stable(self, m, "o", o)
        check_order(self, m, i.valid & i.ready, payload, o, self.capacity, self.patience)


class RoomyQueue(Harness):
    """A queue behind a free-running pipeline, which starts something in any clock in which it sees room."""

    def __init__(self, queue: Any, capacity: int, patience: int) -> None:
        super().__init__()
        self.queue, self.capacity, self.patience = queue, capacity, patience

    def build(self, m: Module) -> None:
        """The pipeline is a delay; the queue must be ready at its end."""
        m.submodules.queue = queue = self.queue
        start = self.anything("start", queue.room) & queue.room
        put, payload = delayed(m, "put", start, UNDER_WAY - 1), self.anything("payload", queue.i.payload)
        m.d.comb += [
            queue.i.valid.eq(put),
            queue.i.payload.eq(payload),
            queue.o.ready.eq(self.anything("ready", queue.o.ready)),
        ]
        self.check("never_refuses", ~put | queue.i.ready)
        check_stable(self, m, "o", queue.o)
        check_order(self, m, put, payload, queue.o, self.capacity, self.patience)


class HeadQueueEnd(Harness):
    """The same for a queue whose input has no ready."""

    def __init__(self, queue: Any, capacity: int) -> None:
        super().__init__()
        self.queue, self.capacity = queue, capacity

    def build(self, m: Module) -> None:
        """The pipeline is a delay."""
        m.submodules.queue = queue = self.queue
        start = self.anything("start", queue.room) & queue.room
        put, payload = delayed(m, "put", start, UNDER_WAY - 1), self.anything("payload", queue.i)
        m.d.comb += [queue.i_valid.eq(put), queue.i.eq(payload), queue.o.ready.eq(self.anything("ready", put))]
        check_stable(self, m, "o", queue.o)
        check_order(self, m, put, payload, queue.o, self.capacity, 0)


class PipelineEnd(Harness):
    """An ``OutputQueue`` behind a pipeline that starts something in any clock in which there is room."""

    def __init__(self, queue: Any, clocks: int) -> None:
        super().__init__()
        self.queue, self.clocks = queue, clocks

    def build(self, m: Module) -> None:
        """The pipeline is a delay."""
        m.submodules.queue = queue = self.queue
        payload = self.anything("payload", queue.i)
        m.d.comb += [
            queue.start.eq(self.anything("start", queue.start) & queue.room),
            queue.give.eq(delayed(m, "give", queue.start, self.clocks)),
            queue.i.eq(payload),
            queue.o.ready.eq(self.anything("ready", queue.o.ready)),
        ]
        check_stable(self, m, "o", queue.o)
        check_order(self, m, queue.give, payload, queue.o, queue.depth, 0)


def _proof(name: str, block: str, harness: Callable[[Any], Harness], *broken: Change) -> Proof:
    return Proof(name, TEXT, f"xoe_hdl.queues.{block}", harness, broken)


QUEUES = (
    _proof(
        "skid_buffer",
        "skid_buffer:SkidBuffer",
        lambda block: StreamQueue(block(WIDTH), 2, 0),
        ("with m.If(~self.o.valid | self.o.ready):", "with m.If(1):"),
        ("self.o.payload.eq(spare)", "self.o.payload.eq(self.i.payload)"),
    ),
    _proof(
        "ring_queue",
        "ring_queue:RingQueue",
        lambda block: StreamQueue(block(WIDTH), 4, 0),
        ("self.i.ready.eq(~count[-1])", "self.i.ready.eq(1)"),
        ("write.addr.eq(write.addr + put)", "write.addr.eq(write.addr + self.i.valid)"),
    ),
    _proof(
        "fall_through_queue",
        "fall_through_queue:FallThroughQueue",
        lambda block: StreamQueue(block(WIDTH, 2), 3, 0),
        ("passes.eq(is_free & ~fifo.r_rdy)", "passes.eq(is_free)"),
        ("is_free.eq(~self.o.valid | self.o.ready)", "is_free.eq(~self.o.valid | self.o.ready | self.i.valid)"),
    ),
    _proof(
        "fall_through_queue_room",
        "fall_through_queue:FallThroughQueue",
        lambda block: RoomyQueue(block(WIDTH, 4, margin=UNDER_WAY), 5, 0),
        ("fifo.level < self.depth - self.margin", "fifo.level <= self.depth - self.margin"),
    ),
    _proof(
        "queue",
        "queue:Queue",
        lambda block: StreamQueue(block(WIDTH, 3), 4, 2),
        ("is_read.eq(reads | is_read & ~is_taken)", "is_read.eq(reads | is_read)"),
        ("level != self.depth - 1", "level != self.depth"),
        ("(~is_read | is_taken)", "1"),
    ),
    _proof(
        "queue_room",
        "queue:Queue",
        lambda block: RoomyQueue(block(WIDTH, 4, margin=UNDER_WAY), 5, 2),
        ("level + is_read < self.depth - self.margin", "level < self.depth - self.margin"),
    ),
    _proof(
        "head_queue",
        "head_queue:HeadQueue",
        lambda block: HeadQueueEnd(block(WIDTH, 4, UNDER_WAY), 6),
        ("Mux(waits, read.data, self.i)", "self.i"),
        ("waits.eq(level != 1)", "waits.eq(0)"),
        ("level < self.depth - self.margin", "level <= self.depth - self.margin + 1"),
    ),
    _proof(
        "output_queue",
        "output_queue:OutputQueue",
        lambda block: PipelineEnd(block(WIDTH, 4), 2),
        ("self.room.eq(left != 0)", "self.room.eq(1)"),
        ("is_stored.eq(self.give & ~(is_free & (level == 0)))", "is_stored.eq(self.give & ~is_free)"),
    ),
)
