"""Completions: of requests that were answered, of requests that were not, and of commands that were refused."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.wire import ANSWER_STATUS_MAX, RESPONSE_BIT, Status

from ..delay import delayed
from ..layouts import ID_BITS, LENGTH_BITS, STATUS_BITS, completion_beat, operation_beat
from ..queues import FallThroughQueue
from .tags import ANSWERED
from .timeouts import EXPIRED, TAG

BEATS = 8  # completed and not yet taken
LOOKUP_CLOCKS = 2
UNDER_WAY = 3  # beats that may be on their way when the queue says that it has room

REFUSAL = data.StructLayout({"id": ID_BITS, "opcode": 8, "status": STATUS_BITS})
"""A command that was refused."""

_HEADER = data.StructLayout({"id": ID_BITS, "opcode": 8, "length": LENGTH_BITS, "status": STATUS_BITS})
_KINDS = range(3)
_RESPONSES, _EXPIRED, _REFUSALS = _KINDS


class Completer(wiring.Component):
    """Makes completions of three kinds of events, which take turns, each until it is done.

    Three clocks from a response's beat to the completion's; a beat a clock. A response is held only while completions
    are not taken, or another kind has its turn.

    ``answer`` and ``answered`` go to the table of tags. For one clock each: ``stray``, a response that nobody waits for
    was dropped; ``bad_response``, one that does not fit its request was completed as malformed; ``timed_out`` and
    ``connection_lost``.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(
            {
                "responses": In(stream.Signature(operation_beat(width))),
                "expired": In(stream.Signature(EXPIRED)),
                "refusals": In(stream.Signature(REFUSAL)),
                "answer": Out(TAG),
                "answered": In(ANSWERED),
                "completions": Out(stream.Signature(completion_beat(width))),
                "stray": Out(1),
                "bad_response": Out(1),
                "timed_out": Out(1),
                "connection_lost": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Choose an event and look its tag up; complete it two clocks later."""
        m = Module()
        m.submodules.queue = queue = FallThroughQueue(completion_beat(self.width), BEATS, UNDER_WAY)
        connect(m, queue.o, flipped(self.completions))
        chosen, is_inside = self._choose(m, queue.room)

        response, beat = self.responses.payload, queue.i.payload
        kind, is_first, is_last, operation, refusal, is_lost, found = (
            delayed(m, name, value, LOOKUP_CLOCKS)
            for name, value in {
                "kind": chosen,
                "is_first": ~is_inside,
                "is_last": response.last,
                "operation": response.data.operation,
                "refusal": self.refusals.payload,
                "is_lost": self.expired.payload.is_lost,
                "data": response.data.data,
            }.items()
        )
        # Whatever the response port idles at is not for the user to see.
        m.d.comb += beat.data.data.eq(Mux(kind[_RESPONSES], found, 0))
        is_good, is_done, passes = self.answered.is_good, Signal(), Signal()
        header, kept = self._judge(m, kind, operation, refusal, is_lost, is_done), Signal(_HEADER)
        with m.If(is_first & kind.any()):
            m.d.sync += [kept.eq(header), passes.eq(is_good & is_done)]
        m.d.comb += [
            queue.i.valid.eq(Mux(is_first, kind[_REFUSALS] | is_good, kind[_RESPONSES] & passes)),
            beat.last.eq(is_last | is_first & ~is_done),
            self.stray.eq(is_first & kind[_RESPONSES] & ~is_good),
            self.timed_out.eq(kind[_EXPIRED] & is_good & ~is_lost),
            self.connection_lost.eq(kind[_EXPIRED] & is_good & is_lost),
        ]
        m.d.comb += [beat.data[name].eq(Mux(is_first, header[name], kept[name])) for name in _HEADER.members]
        return m

    def _choose(self, m: Module, room: Value) -> tuple[Signal, Signal]:
        """A bit for each kind, set if a beat of it is taken; and whether a response is under way.

        Whose turn it is was settled in the clock before, because a look-up follows in this one.
        """
        sources = (self.responses, self.expired, self.refusals)
        turn, chosen = Signal(len(_KINDS), init=1 << _RESPONSES), Signal(len(_KINDS))
        is_inside, stays_inside = Signal(), Signal()
        for kind, source in enumerate(sources):
            m.d.comb += [source.ready.eq(turn[kind] & room), chosen[kind].eq(source.valid & source.ready)]
        m.d.comb += stays_inside.eq(Mux(chosen[_RESPONSES], ~self.responses.payload.last, is_inside))
        m.d.sync += is_inside.eq(stays_inside)
        with m.If(room):
            m.d.sync += turn.eq(1 << _RESPONSES)
            for kind in _KINDS:
                with m.If(turn[kind] & ~stays_inside):
                    for later in ((kind + 2) % len(_KINDS), (kind + 1) % len(_KINDS)):
                        with m.If(sources[later].valid):
                            m.d.sync += turn.eq(1 << later)
        m.d.comb += [
            self.answer.valid.eq(~is_inside & (chosen[_RESPONSES] | chosen[_EXPIRED])),
            self.answer.tag.eq(
                Mux(turn[_EXPIRED], self.expired.payload.tag, self.responses.payload.data.operation.tag)
            ),
        ]
        return chosen, is_inside

    def _judge(
        self, m: Module, kind: Value, operation: data.View, refusal: data.View, is_lost: Value, is_done: Signal
    ) -> data.View:
        """The header of the completion; ``is_done`` if data may follow."""
        record, header = self.answered.record, Signal(_HEADER)
        is_bad, is_error = Signal(), operation.status != Status.DONE
        m.d.comb += [
            is_bad.eq(
                (operation.opcode != record.opcode | RESPONSE_BIT)
                | (operation.status > ANSWER_STATUS_MAX)
                | ~is_error & (operation.words != record.words)
            ),
            is_done.eq(kind[_RESPONSES] & ~is_bad & ~is_error),
            self.bad_response.eq(kind[_RESPONSES] & self.answered.is_good & is_bad),
            header.id.eq(record.id),
            header.opcode.eq(record.opcode),
        ]
        with m.If(kind[_REFUSALS]):
            m.d.comb += [header[name].eq(refusal[name]) for name in REFUSAL.members]
        with m.Elif(kind[_EXPIRED]):
            m.d.comb += header.status.eq(Mux(is_lost, Status.CONNECTION_LOST, Status.TIMED_OUT))
        with m.Elif(is_bad):
            m.d.comb += header.status.eq(Status.MALFORMED)
        with m.Elif(is_error):
            m.d.comb += header.status.eq(operation.status)
        with m.Else():
            m.d.comb += header.length.eq(record.length)
        return header
