"""Turns between requests, for engines that work on one event at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out


def next_turn(requests: Sequence[Value], last: Value) -> Value:
    """One bit for each request: the first one behind the ``last`` that was served (one bit set), or none."""
    count = len(requests)
    turns = []
    for index, request in enumerate(requests):
        behind = []
        for back in range(1, count + 1):
            between = [requests[(index - step) % count] for step in range(1, back)]
            behind.append(last[(index - back) % count] & ~reduce(or_, between, Value.cast(0)).bool())
        turns.append(request & reduce(or_, behind))
    return Cat(turns)


def chosen(values: Mapping[int, Value], turn: Value) -> Value:
    """The value whose bit of ``turn`` is set; 0 if none is. An AND and an OR, where a priority would be a chain."""
    masked = []
    for index, value in values.items():
        bits = Value.cast(value)
        masked.append(bits & turn[index].replicate(len(bits)))
    return reduce(or_, masked)


class Rotation(wiring.Component):
    """Says which of ``count`` is next for each of several users: the one behind that which it had last.

    ``next`` belongs to the ``user`` of two clocks ago; ``takes``, valid for a clock, moves that user on. A reset leaves
    everyone where he is.
    """

    def __init__(self, bits: int, count: int) -> None:
        self.bits, self.count = bits, count
        super().__init__({"user": In(bits), "takes": In(1), "next": Out(range(count))})

    def elaborate(self, platform: object) -> Module:
        """A memory, and a register behind it."""
        m = Module()
        m.submodules.places = places = Memory(shape=range(self.count), depth=1 << self.bits, init=[])
        read, write = places.read_port(), places.write_port()
        m.d.comb += [
            read.addr.eq(self.user),
            write.addr.eq(self.user),
            write.en.eq(self.takes),
            write.data.eq(Mux(self.next == self.count - 1, 0, self.next + 1)),
        ]
        m.d.sync += self.next.eq(read.data)
        return m


class Merge(wiring.Component):
    """Joins two streams: one clock from in to out, a payload in every clock, each in turn. ``o`` is a register."""

    def __init__(self, shape: ShapeLike) -> None:
        inward, outward = In(stream.Signature(shape)), Out(stream.Signature(shape))
        super().__init__({"a": inward, "b": inward, "o": outward})

    def elaborate(self, platform: object) -> Module:
        """Take ``a`` unless it was the last and ``b`` waits."""
        m = Module()
        is_free, takes_a, was_a = Signal(), Signal(), Signal()
        m.d.comb += [
            is_free.eq(~self.o.valid | self.o.ready),
            takes_a.eq(self.a.valid & ~(was_a & self.b.valid)),
            self.a.ready.eq(is_free & takes_a),
            self.b.ready.eq(is_free & ~takes_a),
        ]
        with m.If(is_free):
            m.d.sync += self.o.valid.eq(self.a.valid | self.b.valid)
            with m.If(takes_a):
                m.d.sync += [self.o.payload.eq(self.a.payload), was_a.eq(1)]
            with m.Else():
                m.d.sync += [self.o.payload.eq(self.b.payload), was_a.eq(0)]
        return m
