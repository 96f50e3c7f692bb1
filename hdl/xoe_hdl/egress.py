"""All that sends: operations are gathered in frames, which are sent until the other end has them."""

from __future__ import annotations

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from xoe.config import ConfigError, NicConfig

from .framer import Framer
from .framer.framer import PAGE, frame_pages
from .framer.gatherer import NOTES, REQUESTS, RESPONSES
from .layouts import CFG, axis, operation_beat
from .transport import connection_layouts as layouts
from .transport.gate import Gate
from .transport.layouts import CLASSES, qp_bits
from .transport.notes import Notes
from .transport.outlet import Outlet
from .transport.page_store import POWERS
from .transport.receive_layouts import qp_layout
from .transport.releases import Releases
from .transport.sender import Sender
from .transport.terms import Terms

LAG = 24  # clocks from a frame to its job, if the sender has little else to do
SPARE = 4  # of the largest frames, in the retransmit buffer: gathered ones, notes, and those that are being given up
WORD = 8  # bytes


def resend_pages(config: NicConfig) -> tuple[int, int]:
    """Pages of the retransmit buffer, and those of them that a connection may have outstanding.

    Raises:
        ConfigError: more than the buffer can have.
    """
    largest = frame_pages(config.data_width, config.mtu)
    least = CLASSES * largest
    most = config.resend_buffer // PAGE
    if most < least:
        raise ConfigError(
            f"resend_buffer must be at least {least * PAGE} bytes, so that a frame of each class fits "
            f"(mtu {config.mtu}), not {config.resend_buffer}"
        )
    # A frame may take a page more than was set aside for it, as its operations begin inside a wide row.
    needed = config.queue_pairs * (most + most // largest) + SPARE * largest
    if needed > POWERS[-1]:
        raise ConfigError(
            f"resend_buffer must be so small that {config.queue_pairs} queue pairs have no more than "
            f"{POWERS[-1]} pages of {PAGE} bytes together, not {config.resend_buffer}"
        )
    return 1 << ceil_log2(needed), most


class Egress(wiring.Component):
    """``Framer`` and ``Sender``, with what is between them.

    Ports, streams unless said otherwise:

    * ``requests``, ``responses``: operations to be sent. Those whose connection's incarnation is over are dropped;
      those that may not be sent yet hold up the ones behind them.
    * ``answers``, ``reported``: control frames and acknowledgements to be sent, see ``Notes``.
    * ``acks``: what frames that came say of those that were sent.
    * ``offer``, ``shut``: an incarnation begins, with what the other end offers, or ends. ``failures``: one has to end.
    * ``paid``, ``shown_qp``, ``shown_class``, ``expected``, ``shown``: see ``Outlet``.
    * ``transmit_qp``, ``transmit``, ``notes_qp``, ``notes`` (no streams): look-ups in the table of connections.
    * ``m_axis``, ``cfg``, ``counters``: see ``Framer`` and ``Sender``.

    Args:
        config: the parameters.
        first_seq: PSN of the first data frame of each connection.
        first_credit: where counts of credits begin.

    Raises:
        ConfigError: a retransmit buffer that is too large.
    """

    def __init__(self, config: NicConfig, first_seq: int = 0, first_credit: int = 0) -> None:
        self.config = config
        pages, most = resend_pages(config)
        page_words = PAGE // WORD
        self.framer = Framer(config, pages, LAG)
        self.sender = Sender(
            config.queue_pairs, config.window, pages, page_words, config.mtu, most, config.counter_width
        )
        self.notes_maker = Notes(config, first_seq, first_credit)
        self.outlet = Outlet(config, pages)
        self.terms = Terms(config, first_seq, first_credit)
        self.releases = Releases(pages)
        width, bits = config.data_width, qp_bits(config.queue_pairs)
        outlet, notes, sender = (block.signature.members for block in (self.outlet, self.notes_maker, self.sender))
        counters = data.StructLayout({"framer": self.framer.counters.shape(), "sender": self.sender.counters.shape()})
        super().__init__(
            {
                "requests": In(stream.Signature(operation_beat(width))),
                "responses": In(stream.Signature(operation_beat(width))),
                "m_axis": Out(stream.Signature(axis(width))),
                "answers": notes["answers"],
                "reported": notes["reported"],
                "acks": sender["acks"],
                "offer": self.terms.signature.members["offer"],
                "shut": In(stream.Signature(qp_layout(bits))),
                "failures": sender["failures"],
                **{name: outlet[name] for name in ("paid", "shown_qp", "shown_class", "expected", "shown")},
                "transmit_qp": Out(bits),
                "transmit": In(layouts.entry_layout()),
                "notes_qp": Out(bits),
                "notes": In(layouts.entry_layout()),
                "cfg": In(CFG),
                "counters": Out(counters),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join the parts."""
        m = Module()
        m.submodules.framer = framer = self.framer
        m.submodules.sender = sender = self.sender
        m.submodules.outlet = outlet = self.outlet
        m.submodules.terms = terms = self.terms
        for name in ("requests", "responses"):
            connect(m, flipped(getattr(self, name)), getattr(framer, name))
        connect(m, framer.m_axis, flipped(self.m_axis))
        connect(m, framer.frames, outlet.frames)
        connect(m, outlet.commits, sender.commits)
        connect(m, sender.jobs, outlet.jobs)
        connect(m, outlet.o, framer.jobs)
        connect(m, outlet.paid, flipped(self.paid))
        connect(m, flipped(self.acks), sender.acks)
        connect(m, flipped(self.offer), terms.offer)
        connect(m, terms.opens, sender.opens)
        connect(m, sender.failures, flipped(self.failures))
        m.d.comb += [
            framer.cfg.eq(self.cfg),
            *(sender.cfg[name].eq(self.cfg[name]) for name in sender.cfg.shape().members),
            self.counters.framer.eq(framer.counters),
            self.counters.sender.eq(sender.counters),
            sender.shuts.valid.eq(self.shut.valid),
            sender.shuts.payload.eq(self.shut.payload.qp),
            self.shut.ready.eq(sender.shuts.ready),
            self.transmit_qp.eq(outlet.qp),
            outlet.entry.eq(self.transmit),
            self.shown_qp.eq(outlet.shown_qp),
            self.shown_class.eq(outlet.shown_class),
            outlet.expected.eq(self.expected),
            outlet.shown.eq(self.shown),
        ]
        self._gate(m)
        self._note(m)
        self._release(m)
        return m

    def _gate(self, m: Module) -> None:
        """Requests and responses begin frames by the sender's permits; notes at any time."""
        framer, sender = self.framer, self.sender
        for name, at in (("requests", REQUESTS), ("responses", RESPONSES)):
            m.submodules[f"{name}_gate"] = gate = Gate(self.config.queue_pairs)
            head = framer.heads[at]
            m.d.comb += [
                gate.head.valid.eq(head.valid),
                gate.head.qp.eq(head.route.local_qp),
                gate.head.traffic_class.eq(head.route.traffic_class),
                gate.head.epoch.eq(head.route.epoch),
                gate.begins.eq(framer.begins[at]),
                gate.leaves.eq(framer.leaves[at]),
                gate.grants.eq(sender.grants),
                framer.permits[at].eq(gate.permit),
                framer.drops[at].eq(gate.drop),
            ]
        m.d.comb += framer.permits[NOTES].eq(Const(1, 1))

    def _note(self, m: Module) -> None:
        m.submodules.notes_maker = notes = self.notes_maker
        framer, sender = self.framer, self.sender
        for name in ("answers", "reported"):
            connect(m, flipped(getattr(self, name)), getattr(notes, name))
        connect(m, notes.o, framer.notes)
        connect(m, notes.headers, self.outlet.headers)
        m.d.comb += [
            framer.note_body.eq(notes.body),
            notes.leaves.eq(framer.leaves[NOTES]),
            self.notes_qp.eq(notes.qp),
            notes.entry.eq(self.notes),
            sender.shown_qp.eq(notes.qp),
            notes.progress.eq(sender.progress),
        ]

    def _release(self, m: Module) -> None:
        m.submodules.releases = releases = self.releases
        sender, framer = self.sender, self.framer
        connect(m, releases.give_back, framer.give_back)
        issued = Signal()
        m.d.comb += [
            issued.eq(sender.jobs.valid & sender.jobs.ready),
            releases.free.eq(sender.free),
            releases.issued.eq(issued),
            releases.waits.eq(sender.jobs.valid),
            releases.sent.eq(framer.sent),
        ]
