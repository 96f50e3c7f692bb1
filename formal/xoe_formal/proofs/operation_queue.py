"""The operation queue: operations come out whole, once, in order, and without a gap."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data

from ..harness import Harness
from ..monitors import check_order, check_stable
from ..proof import Proof

OPERATIONS, BEATS = 4, 4
LONGEST = 3  # beats of an operation
BEAT = data.StructLayout({"data": data.StructLayout({"data": 1, "tag": 1}), "last": 1})
WIDE = 1 << 16  # bits: so wide that a beat holds the largest operation, and a small queue is allowed


class OperationStream(Harness):
    """A queue between two streams with anybody at both ends, who gives the header with every beat."""

    def __init__(self, block: Any) -> None:
        super().__init__()
        self.queue = block(WIDE, OPERATIONS, BEATS, lambda width: BEAT)
        self.queue.width = 1

    def build(self, m: Module) -> None:
        """Follow the operation that goes in, how many are whole, and whether one is on its way out."""
        m.submodules.queue = queue = self.queue
        i, o, payload = queue.i, queue.o, Value.cast(queue.i.payload)
        beats, tag, whole, is_inside = Signal(range(LONGEST + 1)), Signal(), Signal(range(BEATS + 3)), Signal()
        m.d.comb += [
            i.valid.eq(self.anything("valid", i.valid)),
            payload.eq(self.anything("payload", payload)),
            o.ready.eq(self.anything("ready", o.ready)),
        ]
        put, take = i.valid & i.ready, o.valid & o.ready
        self.assume(~i.valid | (beats == 0) | (i.payload.data.tag == tag))
        self.assume(~i.valid | i.payload.last | (beats < LONGEST - 1))
        m.d.sync += whole.eq(whole + (put & i.payload.last) - (take & o.payload.last))
        with m.If(put):
            m.d.sync += [tag.eq(i.payload.data.tag), beats.eq(beats + 1)]
            with m.If(i.payload.last):
                m.d.sync += beats.eq(0)
        with m.If(take):
            m.d.sync += is_inside.eq(~o.payload.last)
        check_stable(self, m, "o", o)
        check_order(self, m, put, payload, o, BEATS + 1, 2, whole != 0)
        self.check("is_whole", ~o.valid | (whole != 0))
        self.check("has_no_gap", ~is_inside | o.valid)


OPERATION_QUEUE = Proof(
    "operation_queue",
    "keeps what it offers until it is taken; operations come out once, in order, in time, whole, without a gap",
    "xoe_hdl.queues.operation_queue:OperationQueue",
    OperationStream,
    (
        ("self.i.valid & beats.i.ready & i.last", "self.i.valid & beats.i.ready"),
        ("beats.o.valid & self.o.ready & o.last", "beats.o.valid & self.o.ready"),
        ("beats.o.ready.eq(headers.o.valid & self.o.ready)", "beats.o.ready.eq(self.o.ready)"),
    ),
)
