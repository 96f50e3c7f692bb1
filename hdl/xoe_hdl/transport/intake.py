"""Where an engine that works on one event at a time gets it from: several streams, each in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .turns import chosen, next_turn


class Intake(wiring.Component):
    """Chooses a stream in one clock, and takes what it offers in a later one.

    Ports:

    * an input stream for each name of ``inputs``.
    * ``choose``: whose turn it is may be settled now, unless it is. No stream that is not taken yet may be served.
    * ``is_chosen``: an event waits, which is ``event``.
    * ``take``: it is served now; ``is_fetched``: it was, in the clock before. A stream of ``lasting`` stays as it is
      until ``done``.
    * ``served``: the kind that was taken last, one bit set.

    Args:
        inputs: the layout of each stream.
        event: the layout of all events; a field is 0 if its stream has none of that name.
        lasting: the streams whose events are taken at their end.
        first: the stream that comes before all others, also before one that is chosen already.
    """

    def __init__(
        self,
        inputs: Mapping[str, data.StructLayout],
        event: data.StructLayout,
        lasting: Sequence[str] = (),
        first: str | None = None,
    ) -> None:
        self.inputs, self.lasting, self.first = dict(inputs), tuple(lasting), first
        kinds = len(self.inputs)
        super().__init__(
            {
                **{name: In(stream.Signature(shape)) for name, shape in self.inputs.items()},
                "choose": In(1),
                "is_chosen": Out(1),
                "take": In(1),
                "done": In(1),
                "event": Out(event),
                "is_fetched": Out(1),
                "served": Out(kinds, init=1),
            }
        )

    def add_steps(self, m: Module, event: data.View, clear: Value) -> None:
        """CLEAR and TAKE, the first steps of an engine, of which LOAD has to be the next.

        After a reset ``clear`` is set for each queue pair, which is in ``event.qp``, so that its state is stored as it
        is after a reset. Then an event is waited for, and put in ``event``.
        """
        with m.State("CLEAR"):
            m.d.comb += clear.eq(1)
            m.d.sync += event.qp.eq(event.qp + 1)
            with m.If(event.qp.all()):
                m.next = "TAKE"
        with m.State("TAKE"):
            m.d.comb += [self.choose.eq(1), self.take.eq(self.is_chosen)]
            m.d.sync += event.eq(self.event)
            with m.If(self.is_chosen):
                m.next = "LOAD"

    def elaborate(self, platform: object) -> Module:
        """One register with the turn, one with who was served."""
        m = Module()
        turn = Signal(len(self.inputs))
        m.d.sync += self.is_fetched.eq(self.take)
        streams = {name: getattr(self, name) for name in self.inputs}
        requests, is_outdone = [each.valid for each in streams.values()], Signal()
        if self.first is not None:
            index = list(streams).index(self.first)
            m.d.comb += is_outdone.eq(requests[index] & ~turn[index])
            requests = [each if place == index else each & ~requests[index] for place, each in enumerate(requests)]
        m.d.comb += self.is_chosen.eq((turn != 0) & ~is_outdone)
        with m.If(self.choose & ~self.is_chosen):
            m.d.sync += turn.eq(next_turn(requests, self.served))
        with m.If(self.take):
            m.d.sync += [self.served.eq(turn), turn.eq(0)]
        for index, (name, each) in enumerate(streams.items()):
            ends = self.done & self.served[index] if name in self.lasting else self.take & turn[index]
            m.d.comb += each.ready.eq(ends)
        for field in self.event.shape().members:
            offers = {
                index: each.payload[field]
                for index, (name, each) in enumerate(streams.items())
                if field in self.inputs[name].members
            }
            m.d.comb += self.event[field].eq(chosen(offers, turn))
        return m
