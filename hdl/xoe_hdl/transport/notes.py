"""Makes acknowledgements and control frames: what their headers and bodies say."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from xoe.config import NicConfig
from xoe.offer import make_offer
from xoe.wire import AckBody, ControlBody, Kind, TrafficClass

from ..framer.emitter import HEADER
from ..layouts import MAC_BITS, operation_beat
from ..queues import FallThroughQueue
from ..wire import byte_swap, to_bus
from . import connection_layouts as layouts
from .layouts import CLASSES, qp_bits
from .receive_layouts import reported_layout
from .sender.layouts import PROGRESS
from .turns import Rotation

SACK_BITS = 64  # of the body; a word with as many more follows it if the window is larger
WAITING = 16  # notes that are being gathered

NOTE = data.StructLayout({"mac": MAC_BITS, "header": HEADER})
"""Where a note goes, and its header."""


class Notes(wiring.Component):
    """Makes one note at a time, of which there are two kinds; about ten clocks each, control frames first.

    Ports, streams unless said otherwise:

    * ``answers``: control frames to be sent. ``reported``: what an acknowledgement says.
    * ``qp`` (no stream), and up to three clocks later ``entry`` and ``progress``: the connection, and its sending end.
      An acknowledgement of an incarnation that is over, here or there, is not sent. Those of a connection tell the
      credits consumed of one class after another.
    * ``o``: the note as the gatherer takes it, with ``body`` beside it until it ``leaves``. ``headers`` has an entry
      for each, in their order.

    Args:
        config: what this end offers.
        first_seq, first_credit: see ``Terms``.
    """

    def __init__(self, config: NicConfig, first_seq: int, first_credit: int) -> None:
        self.config = config
        self._offer = make_offer(config, first_seq, first_credit)
        bits = qp_bits(config.queue_pairs)
        super().__init__(
            {
                "answers": In(stream.Signature(layouts.answer_layout(bits))),
                "reported": In(stream.Signature(reported_layout(bits, config.window))),
                "qp": Out(bits),
                "entry": In(layouts.entry_layout()),
                "progress": In(PROGRESS),
                "o": Out(stream.Signature(operation_beat(config.data_width))),
                "body": Out(8 * AckBody.SIZE),
                "leaves": In(1),
                "headers": Out(stream.Signature(NOTE)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Choose, look up, compare, offer, and wait until it has left."""
        m = Module()
        m.submodules.queue = queue = FallThroughQueue(NOTE, WAITING, 1)
        m.submodules.counted = counted = Rotation(len(self.qp), CLASSES)
        m.d.comb += [
            self.headers.valid.eq(queue.o.valid),
            self.headers.payload.eq(queue.o.payload),
            queue.o.ready.eq(self.headers.ready),
        ]
        is_control, is_current, further = Signal(), Signal(), Signal(SACK_BITS)
        report = self.reported.payload
        note, words = Signal(NOTE), 1 if self.config.window > SACK_BITS else 0
        m.d.comb += [
            queue.i.payload.eq(note),
            self.qp.eq(report.qp),
            counted.user.eq(report.qp),
            self.o.payload.last.eq(1),
            self.o.payload.data.operation.words.eq(Mux(is_control, 0, words)),
            self.o.payload.data.data[:SACK_BITS].eq(further),
        ]
        m.d.sync += [
            is_current.eq(
                report.is_open
                & self.entry.is_open
                & (self.entry.epoch == report.epoch)
                & self.progress.alive
                & (self.progress.epoch == report.epoch)
            )
        ]
        if words:
            with m.If(~is_control):  # an acknowledgement may come while a control frame is offered, which must hold
                m.d.comb += further.eq(byte_swap(report.sack[SACK_BITS:]))
        with m.FSM(name="step"):
            with m.State("IDLE"):
                m.d.sync += is_control.eq(self.answers.valid)
                with m.If(queue.room & (self.answers.valid | self.reported.valid)):
                    m.next = "LOOK"
            for step, following in (("LOOK", "WAIT"), ("WAIT", "SETTLE"), ("SETTLE", "COMPARE"), ("COMPARE", "MAKE")):
                with m.State(step):
                    m.next = following
            with m.State("MAKE"):
                self._make(m, note, is_control, counted.next)
                m.d.comb += counted.takes.eq(~is_control & is_current)
                m.next = "OFFER"
                with m.If(~is_control & ~is_current):
                    m.d.comb += self.reported.ready.eq(1)
                    m.next = "IDLE"
            with m.State("OFFER"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.comb += queue.i.valid.eq(1)
                    m.next = "LEAVE"
            with m.State("LEAVE"), m.If(self.leaves):
                m.d.comb += [self.answers.ready.eq(is_control), self.reported.ready.eq(~is_control)]
                m.next = "IDLE"
        return m

    def _make(self, m: Module, note: data.View, is_control: Signal, counted: Signal) -> None:
        """Header and body of the note; an acknowledgement tells the credits consumed of class ``counted``."""
        header, answer, report = note.header, self.answers.payload, self.reported.payload
        m.d.sync += header.eq(0)
        m.d.sync += header.traffic_class.eq(TrafficClass.RESPONSE)
        with m.If(is_control):
            m.d.sync += [
                note.mac.eq(answer.mac),
                self.body.eq(self._control_body(answer)),
                header.kind.eq(Kind.CONTROL),
                header.dst_node.eq(answer.node),
                header.dst_qp.eq(answer.remote_qp),
                header.src_qp.eq(answer.qp),
                header.epoch.eq(Mux(answer.echo_valid, answer.echo, 0)),
            ]
        with m.Else():
            m.d.sync += [
                note.mac.eq(self.entry.mac),
                self.body.eq(self._ack_body(report)),
                header.kind.eq(Kind.ACK),
                header.dst_node.eq(self.entry.node),
                header.dst_qp.eq(self.entry.remote_qp),
                header.src_qp.eq(report.qp),
                header.epoch.eq(self.entry.peer_epoch),
                header.src_epoch.eq(self.entry.epoch),
                header.seq.eq(self.progress.next_seq),
                header.ack_valid.eq(1),
                header.ack.eq(report.ack),
                header.nack.eq(report.nack),
                header.credit_valid.eq(1),
                header.credit_class.eq(counted),
                header.credit.eq(self.progress.consumed[counted]),
            ]

    def _control_body(self, answer: data.View) -> Value:
        """What the answer says, and the offer, which is the same in all."""
        offered = {name: Const(getattr(self._offer, name), width) for name, width in layouts.BODY.items()}
        said = {name: answer[name] for name in layouts.SAID}
        return to_bus(ControlBody, {**offered, **said})

    def _ack_body(self, report: data.View) -> Value:
        sack = Cat(report.sack, Const(0, SACK_BITS))[:SACK_BITS]
        names = ("freed_request", "freed_response", "freed_atomic")
        freed = {name: report.freed[at] for at, name in enumerate(names)}
        return to_bus(AckBody, {"sack": sack, **freed})
