"""The responder's last part: answers its operations in their order, when memory has done its part."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import DATA_WIDTHS, check_choice
from xoe.responder import STATUSES, Outcome
from xoe.wire import RESPONSE_BIT, Status, TrafficClass

from ..delay import delayed
from ..layouts import STATUS_BITS, operation_beat
from ..queues import Queue, RingQueue, SkidBuffer
from .byte_aligner import ByteAligner
from .layouts import HEADER, OPERATIONS, OUTCOME_BITS, TOKEN, WAITING, order_layout

STATUS_OF = Array(STATUSES.get(outcome, Status.DONE) for outcome in Outcome)


class Answerer(wiring.Component):
    """One step a clock: a beat of what was read, or an answer without data.

    ``order`` and ``token`` may come in every clock: there is room for as many as there are operations in hand. Data is
    passed on only when all of the operation's bursts have ended well; after an error it is thrown away. ``outcome`` is
    what became of an operation, valid for a clock when its answer is ready.
    """

    def __init__(self, width: int) -> None:
        check_choice("width", width, DATA_WIDTHS)
        self.width = width
        super().__init__(
            {
                "order": In(order_layout(width)),
                "token": In(TOKEN),
                "beats": In(stream.Signature(width)),
                "headers": In(stream.Signature(HEADER)),
                "responses": Out(stream.Signature(operation_beat(width))),
                "outcome": Out(data.StructLayout({"valid": 1, "value": OUTCOME_BITS})),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Await the tokens, take the steps, align, and put headers to what comes out."""
        m = Module()
        answer = data.StructLayout({"data": self.width, "last": 1, "status": STATUS_BITS})
        m.submodules.aligner = aligner = ByteAligner(self.width)
        m.submodules.answers = answers = Queue(answer, WAITING + 1, margin=aligner.latency + 3)
        step, is_bad, order, beat = self._step(m, answers.room)

        gives = Mux(is_bad, step.is_last, order.is_direct | ~step.is_first)
        outcome = Mux(is_bad, Outcome.MEMORY_ERROR, order.outcome)
        m.d.comb += [
            aligner.i_valid.eq(step.valid),
            aligner.i.data.eq(beat),
            aligner.i.shift.eq(order.shift),
            aligner.i.is_alone.eq(order.is_direct),
            aligner.i.is_head.eq(0),
            aligner.i.is_tail.eq(step.is_last),
            aligner.i.end.eq(order.end),
        ]
        m.d.sync += [self.outcome.valid.eq(step.valid & step.is_last), self.outcome.value.eq(outcome)]
        latency = aligner.latency
        m.d.comb += [
            answers.i.valid.eq(delayed(m, "gives", step.valid & gives, latency)),
            answers.i.payload.data.eq(aligner.data),
            answers.i.payload.last.eq(delayed(m, "last", step.is_last, latency)),
            answers.i.payload.status.eq(STATUS_OF[delayed(m, "outcome", outcome, latency)]),
        ]
        self._respond(m, answers.o)
        return m

    def _step(self, m: Module, room: Value) -> tuple[data.View, Value, data.View, Value]:
        """The step taken in this clock, whether memory failed, the operation it belongs to, and the beat."""
        orders, tokens, beats = self._queues(m)
        order, token = orders.payload, tokens.payload
        step = Signal(data.StructLayout({"valid": 1, "is_first": 1, "is_last": 1}))
        is_first, has_one, was_bad = Signal(init=1), Signal(), Signal()
        lacks_two = is_first & order.awaits_two & ~has_one
        awaits = is_first & order.awaits
        takes_beat = order.has_data & ~(order.is_flushed & step.is_last)
        is_bad = was_bad | awaits & token.is_bad
        m.d.comb += [
            step.is_first.eq(is_first),
            step.valid.eq(orders.valid & room & ~lacks_two & (tokens.valid | ~awaits) & (beats.valid | ~takes_beat)),
            tokens.ready.eq(step.valid & awaits | orders.valid & lacks_two),
            orders.ready.eq(step.valid & step.is_last),
            beats.ready.eq(step.valid & takes_beat),
        ]
        self._count(m, order, step)
        with m.If(orders.valid & lacks_two & tokens.valid):
            m.d.sync += [has_one.eq(1), was_bad.eq(token.is_bad)]
        with m.If(step.valid):
            m.d.sync += [is_first.eq(step.is_last), has_one.eq(0), was_bad.eq(is_bad & ~step.is_last)]
        return step, is_bad, order, beats.payload

    def _queues(self, m: Module) -> tuple[stream.Interface, stream.Interface, stream.Interface]:
        """Orders, tokens and beats; short queues keep the memories they come from clear of what is decided here."""
        m.submodules.orders = orders = Queue(order_layout(self.width), OPERATIONS + 1)
        m.submodules.tokens = tokens = Queue(TOKEN, 2 * OPERATIONS + 1)
        m.submodules.order_queue = order_queue = SkidBuffer(order_layout(self.width))
        m.submodules.beat_queue = beat_queue = RingQueue(self.width)
        connect(m, orders.o, order_queue.i)
        connect(m, flipped(self.beats), beat_queue.i)
        m.d.comb += [
            orders.i.payload.eq(self.order),
            orders.i.valid.eq(self.order.valid),
            tokens.i.payload.eq(self.token),
            tokens.i.valid.eq(self.token.valid),
        ]
        return order_queue.o, tokens.o, beat_queue.o

    def _count(self, m: Module, order: data.View, step: data.View) -> None:
        """Find the last step, a clock before it comes."""
        count, is_last = Signal(order.last.shape()), Signal()
        following = count + 1
        m.d.comb += step.is_last.eq(Mux(step.is_first, order.is_single, is_last))
        with m.If(step.valid):
            m.d.sync += [count.eq(Mux(step.is_last, 0, following)), is_last.eq(following == order.last)]

    def _respond(self, m: Module, answer: stream.Interface) -> None:
        """A header, which has long been there, to every beat."""
        header, response = self.headers, self.responses
        body, operation, route = response.payload.data, response.payload.data.operation, response.payload.data.route
        found = header.payload
        m.d.comb += [
            response.valid.eq(answer.valid & header.valid),
            answer.ready.eq(response.ready & header.valid),
            header.ready.eq(response.ready & answer.valid & answer.payload.last),
            response.payload.last.eq(answer.payload.last),
            body.data.eq(answer.payload.data),
            operation.opcode.eq(found.opcode | RESPONSE_BIT),
            operation.words.eq(Mux(answer.payload.status == Status.DONE, found.words, 0)),
            operation.tag.eq(found.tag),
            operation.status.eq(answer.payload.status),
            operation.length.eq(found.length),
            route.traffic_class.eq(TrafficClass.RESPONSE),
            *(route[name].eq(found[name]) for name in ("mac", "node", "remote_qp", "local_qp", "epoch")),
        ]
