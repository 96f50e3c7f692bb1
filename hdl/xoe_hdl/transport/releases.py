"""Gives up the rows of frames only when nothing is to be sent of them any more."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import check_choice

from ..queues import FallThroughQueue, Queue
from .page_store import POWERS, segment
from .turns import Merge

_COUNT_BITS = 16  # of jobs: many more than are done while a segment waits for its turn
_PASSING = 16  # frames sent that are not kept


class Releases(wiring.Component):
    """Holds each segment back until all jobs that were given out before have been sent.

    ``free``, valid for a clock: a frame is not needed any more. ``issued`` and ``waits``: a job is given out in this
    clock; one is there to be. ``sent``, valid for a clock, for each job: its last row was fetched; the segment of one
    that is not kept is given back too. ``give_back``, at least three clocks after ``free``, and one after ``sent``.

    Args:
        pages: of the store: each segment has one at least, so all that may be freed have room here.

    Raises:
        ConfigError: ``pages`` is no power of two from 4 to 4096.
    """

    def __init__(self, pages: int) -> None:
        check_choice("pages", pages, POWERS)
        self.pages = pages
        shape = segment(pages)
        super().__init__(
            {
                "free": In(data.StructLayout({"valid": 1, "payload": shape})),
                "issued": In(1),
                "waits": In(1),
                "sent": In(data.StructLayout({"valid": 1, "is_kept": 1, "segment": shape})),
                "give_back": Out(stream.Signature(shape)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A queue, with the number of the last job that a segment waits for."""
        m = Module()
        shape = segment(self.pages)
        entry = data.StructLayout({"segment": shape, "last_job": _COUNT_BITS})
        m.submodules.queue = queue = Queue(entry, self.pages)
        m.submodules.passing = passing = FallThroughQueue(shape, _PASSING)
        m.submodules.merge = merge = Merge(shape)
        connect(m, passing.o, merge.a)
        connect(m, merge.o, flipped(self.give_back))
        issued, sent, ahead = Signal(_COUNT_BITS), Signal(_COUNT_BITS), Signal(_COUNT_BITS)
        is_settled, is_done = Signal(), Signal()
        m.d.sync += [
            issued.eq(issued + self.issued),
            sent.eq(sent + (self.sent.valid & self.sent.is_kept)),
            ahead.eq(sent - queue.o.payload.last_job),
            is_settled.eq(queue.o.valid & ~queue.o.ready),
        ]
        m.d.comb += [
            queue.i.valid.eq(self.free.valid),
            queue.i.payload.segment.eq(self.free.payload),
            queue.i.payload.last_job.eq(issued + self.waits),
            is_done.eq(queue.o.valid & is_settled & ~ahead[-1]),
            merge.b.valid.eq(is_done),
            merge.b.payload.eq(queue.o.payload.segment),
            queue.o.ready.eq(is_done & merge.b.ready),
            passing.i.valid.eq(self.sent.valid & ~self.sent.is_kept),
            passing.i.payload.eq(self.sent.segment),
        ]
        return m
