"""Finds the requests that have waited for too long."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..layouts import OPERATION

TAG_BITS = OPERATION.members["tag"]
TIMEOUT_BITS = 32
_STAMP_BITS = TIMEOUT_BITS + 1  # so that the longest time-out is a small part of what the clock counts to

TAG = data.StructLayout({"valid": 1, "tag": TAG_BITS})
"""A tag, for one clock."""


class Timeouts(wiring.Component):
    """Looks at one tag after the other, at each every ``4 * tags`` clocks.

    A tag that was ``issued`` and not ``retired`` for ``timeout`` clocks (0: for ever) or more is offered at
    ``expired``, and the round waits until it is taken. It may be retired meanwhile: whoever takes it has to look.

    ``used`` says how many tags, counted from index 0, were issued since the reset; the others are passed over.
    """

    def __init__(self, tags: int) -> None:
        self.tags = tags
        super().__init__(
            {
                "issued": In(TAG),
                "retired": In(TAG),
                "used": In(range(tags + 1)),
                "timeout": In(TIMEOUT_BITS),
                "expired": Out(stream.Signature(TAG_BITS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Read, subtract, compare, and offer: a clock each."""
        m = Module()
        index_bits = (self.tags - 1).bit_length()
        index, is_used = Signal(index_bits), Signal()
        now, age = Signal(_STAMP_BITS), Signal(_STAMP_BITS)
        m.d.sync += now.eq(now + 1)

        generation = TAG_BITS - index_bits
        kept = data.StructLayout({"generation": generation, "stamp": _STAMP_BITS})
        m.submodules.issues = issues = Memory(shape=kept, depth=self.tags, init=[])
        m.submodules.retirements = retirements = Memory(shape=generation, depth=self.tags, init=[])
        issue, retirement = issues.write_port(), retirements.write_port()
        last_issue, last_retirement = issues.read_port(), retirements.read_port()
        m.d.comb += [
            issue.addr.eq(self.issued.tag[:index_bits]),
            issue.data.generation.eq(self.issued.tag[index_bits:]),
            issue.data.stamp.eq(now),
            issue.en.eq(self.issued.valid),
            retirement.addr.eq(self.retired.tag[:index_bits]),
            retirement.data.eq(self.retired.tag[index_bits:]),
            retirement.en.eq(self.retired.valid),
            last_issue.addr.eq(index),
            last_retirement.addr.eq(index),
        ]
        with m.FSM(name="step"):
            with m.State("READ"):
                m.d.sync += is_used.eq((index < self.used) & (self.timeout != 0))
                m.next = "SUBTRACT"
            with m.State("SUBTRACT"):
                m.d.sync += [
                    age.eq(now - last_issue.data.stamp),
                    self.expired.payload[:index_bits].eq(index),
                    self.expired.payload[index_bits:].eq(last_issue.data.generation),
                    is_used.eq(is_used & (last_issue.data.generation != last_retirement.data)),
                    index.eq(index + 1),
                ]
                m.next = "COMPARE"
            with m.State("COMPARE"):
                m.d.sync += self.expired.valid.eq(is_used & (age >= self.timeout))
                m.next = "OFFER"
            with m.State("OFFER"), m.If(~self.expired.valid | self.expired.ready):
                m.d.sync += self.expired.valid.eq(0)
                m.next = "READ"
        return m
