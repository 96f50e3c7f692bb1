"""Finds the requests that have waited for too long, and those whose connection is lost."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..layouts import OPERATION
from ..transport.connection_layouts import entry_layout
from .atomics_limit import owner

TAG_BITS = OPERATION.members["tag"]
TIMEOUT_BITS = 32
_STAMP_BITS = TIMEOUT_BITS + 1  # so that the longest time-out is a small part of what the clock counts to

CLOCKS = 7  # for a look at a tag

TAG = data.StructLayout({"valid": 1, "tag": TAG_BITS})
"""A tag, for one clock."""


EXPIRED = data.StructLayout({"tag": TAG_BITS, "is_lost": 1})
"""A tag whose request is not answered any more; ``is_lost``: because its connection is lost."""


class Timeouts(wiring.Component):
    """Looks at one tag after the other, at each every ``CLOCKS * tags`` clocks.

    A tag that was ``issued`` and not ``retired`` for ``timeout`` clocks (0: for ever) or more is offered at
    ``expired``, and the round waits until it is taken. It may be retired meanwhile: whoever takes it has to look. So is
    one that was issued to an ``owner``, an incarnation of a connection, that is not open: ``scan_qp``, and two clocks
    later ``scan``, is the table of connections.

    ``used`` says how many tags, counted from index 0, were issued since the reset; the others are passed over.
    """

    def __init__(self, tags: int, queue_pairs: int) -> None:
        self.tags = tags
        self._owner = owner(queue_pairs)
        super().__init__(
            {
                "issued": In(TAG),
                "owner": In(self._owner),
                "retired": In(TAG),
                "used": In(range(tags + 1)),
                "timeout": In(TIMEOUT_BITS),
                "expired": Out(stream.Signature(EXPIRED)),
                "scan_qp": Out(self._owner.members["qp"]),
                "scan": In(entry_layout()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Read, subtract, look at the connection, compare, and offer."""
        m = Module()
        index_bits = (self.tags - 1).bit_length()
        index, is_used, is_late, of = Signal(index_bits), Signal(), Signal(), Signal(self._owner)
        m.d.comb += self.scan_qp.eq(of.qp)
        now, age = Signal(_STAMP_BITS), Signal(_STAMP_BITS)
        m.d.sync += now.eq(now + 1)

        generation = TAG_BITS - index_bits
        kept = data.StructLayout({"generation": generation, "stamp": _STAMP_BITS, "owner": self._owner})
        m.submodules.issues = issues = Memory(shape=kept, depth=self.tags, init=[])
        m.submodules.retirements = retirements = Memory(shape=generation, depth=self.tags, init=[])
        issue, retirement = issues.write_port(), retirements.write_port()
        last_issue, last_retirement = issues.read_port(), retirements.read_port()
        m.d.comb += [
            issue.addr.eq(self.issued.tag[:index_bits]),
            issue.data.generation.eq(self.issued.tag[index_bits:]),
            issue.data.stamp.eq(now),
            issue.data.owner.eq(self.owner),
            issue.en.eq(self.issued.valid),
            retirement.addr.eq(self.retired.tag[:index_bits]),
            retirement.data.eq(self.retired.tag[index_bits:]),
            retirement.en.eq(self.retired.valid),
            last_issue.addr.eq(index),
            last_retirement.addr.eq(index),
        ]
        with m.FSM(name="step"):
            with m.State("READ"):
                m.d.sync += is_used.eq(index < self.used)
                m.next = "SUBTRACT"
            with m.State("SUBTRACT"):
                m.d.sync += [
                    age.eq(now - last_issue.data.stamp),
                    self.expired.payload.tag[:index_bits].eq(index),
                    self.expired.payload.tag[index_bits:].eq(last_issue.data.generation),
                    of.eq(last_issue.data.owner),
                    is_used.eq(is_used & (last_issue.data.generation != last_retirement.data)),
                    index.eq(index + 1),
                ]
                m.next = "LOOK"
            with m.State("LOOK"):
                m.d.sync += is_late.eq((age >= self.timeout) & (self.timeout != 0))
                m.next = "WAIT"
            with m.State("WAIT"):
                m.next = "COMPARE"
            with m.State("COMPARE"):
                m.d.sync += self.expired.payload.is_lost.eq(~self.scan.is_open | (self.scan.epoch != of.epoch))
                m.next = "JUDGE"
            with m.State("JUDGE"):
                m.d.sync += self.expired.valid.eq(is_used & (is_late | self.expired.payload.is_lost))
                m.next = "OFFER"
            with m.State("OFFER"), m.If(~self.expired.valid | self.expired.ready):
                m.d.sync += self.expired.valid.eq(0)
                m.next = "READ"
        return m
