"""Says what is in the headers of the frames that are sent, and in which order they go. Model: ``xoe.outlet``."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from xoe.config import NicConfig
from xoe.cyclic import CREDIT_BITS, SEQ_BITS
from xoe.wire import Kind

from ..framer.collector import collected
from ..framer.emitter import job as emitter_job
from . import connection_layouts as layouts
from .layouts import CLASSES, qp_bits
from .notes import NOTE
from .receive_layouts import CLASS_BITS, paid_layout
from .sender.layouts import commit
from .sender.layouts import job as sender_job
from .turns import Rotation


class Outlet(wiring.Component):
    """Sorts gathered frames, and makes jobs for the emitter; about eight clocks for a data frame, one for a note.

    Ports, streams unless said otherwise:

    * ``frames``: gathered ones: data frames go on to ``commits``; notes meet their ``headers``, and are sent.
    * ``jobs``: data frames that the sender wants sent; a note that waits goes first.
    * ``qp`` (no stream), and two clocks later ``entry``: the connection; ``shown_qp``, ``shown_class``, and two clocks
      later ``expected`` and ``shown``: what the receiver has. Each data frame tells that, and the credits of one class,
      each class of a connection in turn, unless its incarnation is over.
    * ``paid``: a data frame is about to tell that, see ``Acknowledger``.
    * ``o``: jobs for the emitter.
    """

    def __init__(self, config: NicConfig, pages: int) -> None:
        self.pages = pages
        bits = self.bits = qp_bits(config.queue_pairs)
        super().__init__(
            {
                "frames": In(stream.Signature(collected(pages))),
                "headers": In(stream.Signature(NOTE)),
                "commits": Out(stream.Signature(commit(config.queue_pairs, pages))),
                "jobs": In(stream.Signature(sender_job(config.queue_pairs, pages))),
                "qp": Out(bits),
                "entry": In(layouts.entry_layout()),
                "shown_qp": Out(bits),
                "shown_class": Out(CLASS_BITS),
                "expected": In(SEQ_BITS),
                "shown": In(CREDIT_BITS),
                "paid": Out(stream.Signature(paid_layout(bits))),
                "o": Out(stream.Signature(emitter_job(pages))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Notes pass; a data frame's header is put together from what is looked up."""
        m = Module()
        notes = stream.Signature(collected(self.pages)).create(path=("notes",))
        self._sort(m, notes)
        job, made, is_current = self.jobs.payload, Signal(emitter_job(self.pages)), Signal()
        m.submodules.told = turns = Rotation(self.bits, CLASSES)
        told = turns.next
        m.d.comb += [
            self.qp.eq(job.qp),
            turns.user.eq(job.qp),
            self.shown_qp.eq(job.qp),
            self.shown_class.eq(told),
            self.paid.payload.qp.eq(job.qp),
            self.paid.payload.traffic_class.eq(told),
        ]
        is_same, pays = Signal(), Signal()
        m.d.comb += is_same.eq(self.entry.is_open & (self.entry.peer_epoch == job.epoch))
        m.d.sync += is_current.eq(is_same)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        is_free, passes = Signal(), Signal()
        m.d.comb += is_free.eq(~self.o.valid | self.o.ready)
        with m.FSM(name="step"):
            with m.State("IDLE"):
                m.d.comb += passes.eq(notes.valid & self.headers.valid & is_free)
                with m.If(passes):
                    m.d.sync += [self.o.valid.eq(1), self.o.payload.eq(self._note(m, notes.payload))]
                with m.Elif(self.jobs.valid):
                    m.next = "LOOK"
            for step, following in (("LOOK", "WAIT"), ("WAIT", "COMPARE")):
                with m.State(step):
                    m.next = following
            with m.State("COMPARE"):
                m.d.sync += pays.eq(is_same)  # from now on it is offered, whatever becomes of the incarnation
                m.next = "PAY"
            with m.State("PAY"):
                m.d.comb += self.paid.valid.eq(pays)
                with m.If(self.paid.ready | ~pays):
                    m.next = "ASK"
            for step, following in (("ASK", "ANSWER"), ("ANSWER", "MAKE")):
                with m.State(step):
                    m.next = following
            with m.State("MAKE"):
                self._make(m, made, told, is_current)
                m.next = "GIVE"
            with m.State("GIVE"), m.If(is_free):
                m.d.sync += [self.o.valid.eq(1), self.o.payload.eq(made)]
                m.d.comb += [turns.takes.eq(is_current), self.jobs.ready.eq(1)]
                m.next = "IDLE"
        m.d.comb += [notes.ready.eq(passes), self.headers.ready.eq(passes)]
        return m

    def _sort(self, m: Module, notes: stream.Interface) -> None:
        """To the sender, or not."""
        frame, given = self.frames.payload, self.commits.payload
        gathered, is_note = frame.gathered, frame.gathered.is_note
        m.d.comb += [
            notes.payload.eq(frame),
            notes.valid.eq(self.frames.valid & is_note),
            self.commits.valid.eq(self.frames.valid & ~is_note),
            self.frames.ready.eq(Mux(is_note, notes.ready, self.commits.ready)),
            given.qp.eq(gathered.route.local_qp),
            given.epoch.eq(gathered.route.epoch),
            given.traffic_class.eq(gathered.route.traffic_class),
            given.words.eq(gathered.words),
            given.crc.eq(frame.crc),
            given.segment.eq(frame.segment),
        ]

    def _note(self, m: Module, frame: data.View) -> data.View:
        """The job of a note."""
        job, header = Signal(emitter_job(self.pages), name="note_job"), self.headers.payload
        m.d.comb += [
            job.mac.eq(header.mac),
            job.header.eq(header.header),
            job.words.eq(frame.gathered.words),
            job.crc.eq(frame.crc),
            job.segment.eq(frame.segment),
            job.is_kept.eq(0),
        ]
        return job

    def _make(self, m: Module, made: data.View, told: Signal, is_current: Signal) -> None:
        """The job of a data frame."""
        job, entry, header = self.jobs.payload, self.entry, made.header
        m.d.sync += [
            made.mac.eq(entry.mac),
            made.words.eq(job.words),
            made.crc.eq(job.crc),
            made.segment.first.eq(job.page),
            made.is_kept.eq(1),
            header.kind.eq(Kind.DATA),
            header.traffic_class.eq(job.traffic_class),
            header.dst_node.eq(entry.node),
            header.dst_qp.eq(entry.remote_qp),
            header.src_qp.eq(job.qp),
            header.epoch.eq(job.epoch),
            header.src_epoch.eq(entry.epoch),
            header.seq.eq(job.seq),
            header.ack_valid.eq(is_current),
            header.ack.eq(self.expected),
            header.credit_valid.eq(is_current),
            header.credit_class.eq(told),
            header.credit.eq(self.shown),
        ]
