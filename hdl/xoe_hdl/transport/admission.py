"""What becomes of a frame that came: who it is from, and what it says to whom. Model: ``xoe.intake``."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import NicConfig
from xoe.wire import GRID, AckBody, ControlBody, Kind

from ..layouts import counters
from ..parser.parser import parsed
from ..queues import FallThroughQueue, Queue
from ..wire import byte_swap, read_fields
from . import connection_layouts as layouts
from .layouts import CLASSES, qp_bits
from .page_store import segment
from .receive_layouts import arrival_layout, reconcile_layout
from .sender.layouts import acknowledgement

COUNTERS = ("stranger", "other_epoch", "bad_body", "bad_class", "control_dropped")

ACKS = 16  # that wait for the sender
CONTROLS = 8  # that wait for the table of connections; more are dropped, as they come again
SACK_BITS = 64

_IS = data.StructLayout(dict.fromkeys(("peer", "current", "data", "ack", "control", "whole", "in_class"), 1))
"""What is known of a frame, a clock after its connection."""


class Admission(wiring.Component):
    """Takes one frame at a time, about eight clocks each.

    Ports, streams unless said otherwise:

    * ``frames``: see ``Parser``; the bad ones are given up.
    * ``qp`` (no stream), and two clocks later ``entry``: the connection.
    * ``acks``: what a frame says of those that were sent; before its own ``arrivals``.
    * ``arrivals``: data frames, for ``Receiver``; ``reconcile``: what acknowledgements say to it.
    * ``controls``: control frames, of whomever. ``unaccepted``: frames of an incarnation that is not open; one at
      a time, and none of those that come until it is taken.
    * ``free``: segments of frames that are not kept.
    * ``heard``, valid for a clock: the other end of a connection was.
    * ``counters``: frames of strangers, of other epochs, too short, of classes that have no credits, and control frames
      that found no room.

    Args:
        config: ``queue_pairs``, ``window`` and ``counter_width`` are used.
        pages: of the receive buffer.
    """

    def __init__(self, config: NicConfig, pages: int) -> None:
        self.config, self.pages = config, pages
        self.bits = bits = qp_bits(config.queue_pairs)
        super().__init__(
            {
                "frames": In(stream.Signature(parsed(pages))),
                "qp": Out(bits),
                "entry": In(layouts.entry_layout()),
                "acks": Out(stream.Signature(acknowledgement(config.queue_pairs, config.window))),
                "arrivals": Out(stream.Signature(arrival_layout(bits, pages))),
                "reconcile": Out(stream.Signature(reconcile_layout(bits))),
                "controls": Out(stream.Signature(layouts.control_layout(bits))),
                "unaccepted": Out(stream.Signature(layouts.epoch_layout(bits))),
                "free": Out(stream.Signature(segment(pages))),
                "heard": Out(data.StructLayout({"valid": 1, "qp": bits})),
                "counters": Out(counters(*COUNTERS, width=config.counter_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Look up, compare, and hand on; a frame stays at the input until that is done."""
        m = Module()
        m.submodules.acks_queue = acks = FallThroughQueue(self.acks.payload.shape(), ACKS)
        m.submodules.controls_queue = controls = Queue(self.controls.payload.shape(), CONTROLS)
        connect(m, acks.o, flipped(self.acks))
        connect(m, controls.o, flipped(self.controls))
        frame, found, known = self.frames.payload, self.frames.payload.found, self._know(m)
        m.d.comb += self.qp.eq(found.dst_qp)
        self._say(m, acks.i.payload, controls.i.payload)
        m.d.sync += [self.heard.valid.eq(0), self.heard.qp.eq(found.dst_qp)]
        happened = {name: Signal(name=f"{name}_happened") for name in COUNTERS}
        for name, event in happened.items():
            m.d.sync += self.counters[name].eq(self.counters[name] + event)
        self._refuse(m, happened["other_epoch"])
        with m.FSM(name="step"):
            with m.State("IDLE"), m.If(self.frames.valid):
                m.next = "LOOK"
            for step, following in (("LOOK", "WAIT"), ("WAIT", "COMPARE"), ("COMPARE", "DECIDE")):
                with m.State(step):
                    m.next = following
            with m.State("DECIDE"):
                m.next = "FREE"
                with m.If(~frame.is_good):
                    pass
                with m.Elif(known.control):
                    m.d.comb += happened["bad_body"].eq(~known.whole)
                    with m.If(known.whole):
                        m.d.comb += controls.i.valid.eq(1)
                        m.d.comb += happened["control_dropped"].eq(~controls.i.ready)
                with m.Elif(~known.peer):
                    m.d.comb += happened["stranger"].eq(1)
                with m.Elif(~known.current):
                    m.d.comb += happened["other_epoch"].eq(1)
                with m.Elif(known.ack & ~known.whole):
                    m.d.comb += happened["bad_body"].eq(1)
                with m.Else():
                    m.d.sync += self.heard.valid.eq(1)
                    m.next = "ACK"
            with m.State("ACK"):
                m.d.comb += acks.i.valid.eq(found.ack_valid)
                with m.If(acks.i.ready | ~found.ack_valid):
                    m.next = "RECONCILE"
                    with m.If(known.data):
                        m.next = "ARRIVE"
                        with m.If(~known.in_class):
                            m.d.comb += happened["bad_class"].eq(1)
                            m.next = "FREE"
            with m.State("RECONCILE"):
                m.d.comb += self.reconcile.valid.eq(found.credit_valid)
                with m.If(self.reconcile.ready | ~found.credit_valid):
                    m.next = "FREE"
            with m.State("ARRIVE"):
                m.d.comb += self.arrivals.valid.eq(1)
                with m.If(self.arrivals.ready):
                    m.d.comb += self.frames.ready.eq(1)
                    m.next = "IDLE"
            with m.State("FREE"):
                m.d.comb += self.free.valid.eq(1)
                with m.If(self.free.ready):
                    m.d.comb += self.frames.ready.eq(1)
                    m.next = "IDLE"
        return m

    def _know(self, m: Module) -> data.View:
        """Compare the frame with its connection, a step a clock."""
        found, entry, known = self.frames.payload.found, self.entry, Signal(_IS)
        is_data = found.kind == Kind.DATA
        m.d.sync += [
            known.peer.eq(
                (found.mac == entry.mac) & (found.src_node == entry.node) & (found.src_qp == entry.remote_qp)
            ),
            known.current.eq(entry.is_open & (found.epoch == entry.epoch) & (found.src_epoch == entry.peer_epoch)),
            known.data.eq(is_data),
            known.ack.eq(found.kind == Kind.ACK),
            known.control.eq(found.kind == Kind.CONTROL),
            known.whole.eq(found.words >= AckBody.SIZE // GRID),
            known.in_class.eq(found.traffic_class < CLASSES),
        ]
        return known

    def _refuse(self, m: Module, is_refused: Value) -> None:
        """Tell of a frame of an incarnation that is not open, and of the next one only when that is taken."""
        found, told = self.frames.payload.found, self.unaccepted
        with m.If(~told.valid):
            m.d.sync += [
                told.valid.eq(is_refused),
                told.payload.qp.eq(found.dst_qp),
                told.payload.epoch.eq(found.epoch),
            ]
        with m.Elif(told.ready):
            m.d.sync += told.valid.eq(0)

    def _say(self, m: Module, ack: data.View, control: data.View) -> None:
        """What goes out, whether anybody takes it or not."""
        frame, found = self.frames.payload, self.frames.payload.found
        is_ack = found.kind == Kind.ACK
        body = read_fields(AckBody, found.body[: 8 * AckBody.SIZE])
        freed = [body[name] for name in ("freed_request", "freed_response", "freed_atomic")]
        further = byte_swap(found.body[8 * AckBody.SIZE :]) & (found.words > AckBody.SIZE // GRID).replicate(SACK_BITS)
        sack = Cat(body["sack"], further)
        m.d.comb += [
            ack.qp.eq(found.dst_qp),
            ack.epoch.eq(found.epoch),
            ack.ack.eq(found.ack),
            ack.nack.eq(found.nack),
            ack.sack.eq(sack & is_ack.replicate(len(sack))),
            self.reconcile.payload.qp.eq(found.dst_qp),
            self.free.payload.eq(frame.segment),
            *(self.reconcile.payload[name].eq(found[name]) for name in ("epoch", "seq")),
            self.reconcile.payload.traffic_class.eq(found.credit_class),
            self.reconcile.payload.credits.eq(found.credit),
            self.arrivals.payload.qp.eq(found.dst_qp),
            self.arrivals.payload.segment.eq(frame.segment),
            *(self.arrivals.payload[name].eq(found[name]) for name in ("epoch", "seq", "traffic_class", "words")),
        ]
        for at in range(CLASSES):
            is_told = found.credit_valid & (found.credit_class == at)
            m.d.comb += [ack.tells[at].eq(is_ack | is_told), ack.freed[at].eq(found.credit)]
            with m.If(is_ack):
                m.d.comb += ack.freed[at].eq(freed[at])
        said = read_fields(ControlBody, found.body[: 8 * ControlBody.SIZE])
        m.d.comb += [
            control.qp.eq(found.dst_qp),
            control.mac.eq(found.mac),
            control.node.eq(found.src_node),
            control.remote_qp.eq(found.src_qp),
            control.echo.eq(found.epoch),
            *(control[name].eq(said[name]) for name in layouts.BODY),
        ]
