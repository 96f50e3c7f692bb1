"""The registers and memories that the sender's steps share."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value, ValueLike, unsigned
from amaranth.lib import data, enum, memory, stream
from amaranth.utils import exact_log2

from xoe.cyclic import SEQ_BITS

from ...memories import NO_COLLISION
from ...queues import Queue
from ..layouts import qp_bits
from ..page_store import segment
from .layouts import (
    CFG,
    PROGRESS,
    STAMP_BITS,
    TIME_BITS,
    acknowledgement,
    commit,
    failure,
    frame,
    job,
    order_bits,
    permit_change,
    state,
    track,
)

EVENTS = ("resent", "probes", "timeouts", "failed", "acks_refused", "acks_stale", "commits_stale")
"""What is counted."""


class Flow(enum.Enum, shape=3):
    """What a frame is looked at for."""

    LEARN = 0  # it is acknowledged
    LOSS = 1  # it may be lost, as a later one has arrived
    PROBE = 2  # it may be the last one
    TIMEOUT = 3  # nothing was acknowledged for too long
    RESEND = 4
    SHUT = 5  # its connection ends


class Context:
    """One connection's state in registers, and one frame's, as far as it was fetched.

    ``place`` counts frames from the oldest outstanding one; ``index``, the low bits of a PSN, is where memories have a
    frame: ``frame`` and ``track`` are what they say of it, three clocks after ``index``. ``look_at`` finds the frame at
    a place, and goes on in the state that ``flow`` names five clocks later, in which all that is said of it is right.
    """

    def __init__(self, m: Module, queue_pairs: int, window: int, pages: int) -> None:
        self.m = m
        self.queue_pairs, self.window, self.pages = queue_pairs, window, pages
        self.index_bits, self.order_bits = exact_log2(window), order_bits(window)
        self.cfg = Signal(CFG)
        self.now = Signal(TIME_BITS)
        self.time = Signal(TIME_BITS)  # time: when the event was taken
        self.patience = Signal(TIME_BITS)  # what the timer starts with, as of the clock before
        self.qp = Signal(qp_bits(queue_pairs))
        self.s = Signal(state(window, pages))
        self.ack = Signal(acknowledgement(queue_pairs, window))
        self.commit = Signal(commit(queue_pairs, pages))
        self.job = stream.Signature(job(queue_pairs, pages)).create(path=("job",))
        self.flow = Signal(Flow)
        self.place = Signal(self.index_bits + 1)
        self.seq = Signal(SEQ_BITS)
        self.index = Signal(self.index_bits)
        self.is_outstanding = Signal()
        self.is_on_wire = Signal()  # and does not wait to be sent again
        self.is_worn = Signal()  # it was sent as often as it may be
        self.is_last = Signal()  # of those that were sent
        self.is_past = Signal()  # those that were sent
        self.frame = Signal(frame(pages))
        self.track = Signal(track(window))
        self.is_usable = Signal()  # the connection is open and works
        self.takes_ack = Signal()  # and of the acknowledgement's epoch
        self.has_sack = Signal()  # the acknowledgement has bits of it
        self.takes_commit = Signal()  # and of the commit's
        self.free = Signal(data.StructLayout({"valid": 1, "payload": segment(pages)}))
        self.is_confirmed = Signal()  # ``frame`` is acknowledged
        self.is_to_be_resent = Signal()  # the frame of ``seq``, or any while going back
        self.is_probing = Signal()  # the timer ended for a probe
        self.changes = stream.Signature(permit_change(queue_pairs, pages)).create(path=("changes",))
        self.stores = Signal()  # ``s`` is stored
        self.is_told = Signal()  # what permits say is said
        self.shown_qp = Signal(qp_bits(queue_pairs))
        self.progress = Signal(PROGRESS)
        self.events = {name: Signal(name=name) for name in EVENTS}
        entry = data.StructLayout({"qp": qp_bits(queue_pairs), "index": self.index_bits})
        m.submodules.resends = self.resends = Queue(entry, max(4, 2 * queue_pairs * window))
        m.submodules.failures = self.failures = Queue(failure(queue_pairs), max(2, queue_pairs))
        self._make_memories()
        self._keep_time()
        self._describe_change()

    def _keep_time(self) -> None:
        m, s, cfg = self.m, self.s, self.cfg
        is_probe = (cfg.probe_timeout != 0) & ~s.probed & ~cfg.go_back_n
        m.d.sync += [
            self.now.eq(self.now + 1),
            self.patience.eq(Mux(is_probe, cfg.probe_timeout, (cfg.resend_timeout << s.backoff)[:TIME_BITS])),
        ]

    def _make_memories(self) -> None:
        m, frames = self.m, self.queue_pairs * self.window
        self.state_read, self.state_write = self._memory("states", self.s.shape(), self.queue_pairs)
        self.frame_read, self.frame_write = self._memory("frames", self.frame.shape(), frames)
        self.track_read, self.track_write = self._memory("tracks", self.track.shape(), frames)
        depth = self.queue_pairs << self.order_bits
        self.ring_read, self.ring_write = self._memory("ring", unsigned(self.index_bits), depth)
        self._show()
        m.d.comb += [
            self.state_write.addr.eq(self.qp),
            self.state_write.data.eq(self.s),
            self.stores.eq(self.state_write.en),
            self.ring_read.addr.eq(self._address(self.s.tail)),
            self.ring_write.addr.eq(self._address(self.s.order)),
            self.ring_write.data.eq(self.index),
        ]
        for port in (self.frame_read, self.frame_write, self.track_read, self.track_write):
            m.d.comb += port.addr.eq(self._address(self.index))
        m.d.comb += [self.frame_write.data[name].eq(self.commit[name]) for name in self.frame.shape().members]
        # While a frame waits to be sent again its order and time mean nothing.
        m.d.comb += [
            self.track_write.data.order.eq(self.s.order),
            self.track_write.data.sent_at.eq(self.time[:STAMP_BITS]),
            self.free.payload.eq(self.frame.segment),
        ]
        m.d.sync += [self.frame.eq(self.frame_read.data), self.track.eq(self.track_read.data)]
        m.d.sync += [
            self.failures.i.valid.eq(self.events["failed"]),
            self.failures.i.payload.qp.eq(self.qp),
            self.failures.i.payload.epoch.eq(self.s.peer_epoch),
            self.resends.i.valid.eq(self.is_to_be_resent),
            self.resends.i.payload.qp.eq(self.qp),
            self.resends.i.payload.index.eq(self.index),
        ]

    def _memory(self, name: str, shape: ShapeLike, depth: int) -> tuple[memory.ReadPort, memory.WritePort]:
        """A memory whose readers never want a row in the clock in which it is written, or read it once more."""
        self.m.submodules[name] = made = memory.Memory(shape=shape, depth=depth, init=[], attrs=NO_COLLISION)
        return made.read_port(), made.write_port()

    def _show(self) -> None:
        """A copy for others, who may look in any clock: ``progress`` is there three clocks after ``shown_qp``."""
        m, s = self.m, self.s
        told = {name: s[name].shape() for name in ("alive", "epoch", "first", "count")}
        kept = data.StructLayout({**told, "consumed": PROGRESS.members["consumed"]})
        m.submodules.shown = shown = memory.Memory(shape=kept, depth=self.queue_pairs, init=[])
        write, read, found = shown.write_port(), shown.read_port(), Signal(kept)
        m.d.comb += [
            read.addr.eq(self.shown_qp),
            write.addr.eq(self.qp),
            write.en.eq(self.stores),
            *(write.data[name].eq(s[name]) for name in told),
            *(write.data.consumed[at].eq(credit.consumed) for at, credit in enumerate(s.credits)),
        ]
        m.d.sync += [
            found.eq(read.data),
            self.progress.alive.eq(found.alive),
            self.progress.epoch.eq(found.epoch),
            self.progress.next_seq.eq(found.first + found.count),
            self.progress.consumed.eq(found.consumed),
        ]

    def _describe_change(self) -> None:
        """What permits depend on, as of this clock, and but for what the event brings."""
        s, change = self.s, self.changes.payload
        self.m.d.comb += [
            change.qp.eq(self.qp),
            change.epoch.eq(s.epoch),
            change.frames.eq(s.window - s.count),
            change.pages.eq(s.pages),
            *(change.most[at].eq(credit.most) for at, credit in enumerate(s.credits)),
        ]

    def _address(self, within: Value) -> Value:
        """Where a connection's entry is; with one connection its number is always 0."""
        return Cat(within, self.qp) if self.queue_pairs > 1 else within

    def add_fetch(self) -> None:
        """Add the states that fetch the frame at ``place``."""
        m, s = self.m, self.s
        group_bits = self.index_bits // 2
        acked = Signal(1 << group_bits)
        with m.State("INDEX"):
            seq = s.first + self.place
            m.d.sync += [
                self.seq.eq(seq),
                self.index.eq(seq[: self.index_bits]),
                acked.eq(s.acked.word_select(self.place[group_bits : self.index_bits], 1 << group_bits)),
            ]
            m.next = "FETCH"
        with m.State("FETCH"):
            is_acked = acked.bit_select(self.place[:group_bits], 1)
            is_there = self.place < s.count
            m.d.sync += [
                self.is_outstanding.eq(is_there & ~is_acked),
                self.is_last.eq(self.place + 1 == s.count),
                self.is_past.eq(~is_there),
            ]
            m.next = "FETCHED"
        with m.State("FETCHED"):  # ``frame`` and ``track`` are filled
            m.next = "KNOW"
        with m.State("KNOW"):
            m.d.sync += [
                self.is_on_wire.eq(self.is_outstanding & ~self.track.waits),
                self.is_worn.eq(self.track.tries == self.cfg.retries),
            ]
            with m.Switch(self.flow):
                for flow in Flow:
                    with m.Case(flow):
                        m.next = flow.name

    def look_at(self, place: ValueLike, flow: Flow) -> None:
        """Go and fetch the frame at ``place``, for ``flow``."""
        self.m.d.sync += [self.place.eq(place), self.flow.eq(flow)]
        self.m.next = "INDEX"

    def start_timer(self) -> None:
        """Start the timer anew; ``probed`` and ``backoff`` are as they were a clock before."""
        self.m.d.sync += [self.s.runs.eq(1), self.s.deadline.eq(self.time + self.patience)]

    def count_transmission(self, tries: ValueLike) -> None:
        """Note that the frame of ``seq`` is sent now: its place in the ring, and time and order in its track."""
        m, s = self.m, self.s
        m.d.comb += [self.track_write.en.eq(1), self.track_write.data.tries.eq(tries)]
        with m.If(~self.cfg.go_back_n):  # where loss is found by order
            m.d.comb += self.ring_write.en.eq(1)
            m.d.sync += s.order.eq(s.order + 1)
        with m.If(~s.runs):
            self.start_timer()

    def prepare_job(self, frame: data.View) -> None:
        """Describe the frame of ``seq``; a job only once ``job.valid`` is set. There is none in this step."""
        payload = self.job.payload
        self.m.d.sync += [
            payload.qp.eq(self.qp),
            payload.epoch.eq(self.s.peer_epoch),
            payload.seq.eq(self.seq),
            payload.traffic_class.eq(frame.traffic_class),
            payload.words.eq(frame.words),
            payload.crc.eq(frame.crc),
            payload.page.eq(frame.segment.first),
        ]

    def lose(self, is_worn: ValueLike) -> None:
        """Let the frame wait to be sent again; if it was as often as may be, give the connection up."""
        m = self.m
        with m.If(is_worn):
            self.fail()
        with m.Else():
            m.d.comb += [
                self.track_write.en.eq(1),
                self.track_write.data.tries.eq(self.track.tries + 1),
                self.track_write.data.waits.eq(1),
                self.is_to_be_resent.eq(1),
            ]

    def fail(self) -> None:
        """Give the connection up, and tell whoever ends it."""
        m = self.m
        m.d.sync += self.s.failed.eq(1)
        m.d.comb += self.events["failed"].eq(1)
