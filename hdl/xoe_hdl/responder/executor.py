"""Carries out the responder's operations, one after the other, by asking memory for bursts."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import DATA_WIDTHS, check_choice

from ..queues import RingQueue, SkidBuffer
from .atomic_unit import WORD, AtomicUnit
from .byte_aligner import lane_bits
from .layouts import (
    BURST,
    COUNT_BITS,
    OPERATIONS,
    PAGE_BITS,
    TOKEN,
    data_beat,
    job_layout,
    order_layout,
    step_layout,
)


class Executor(wiring.Component):
    """Each clock a step of the operation in hand: a write's beat, a read's burst.

    Operations of one kind follow without a gap; a change between writes and reads waits until memory has answered
    everything asked before, and so do atomics. A fence asks for nothing: it is answered in its turn, after all before
    it. ``order`` tells what will have to be answered, in order.
    All outputs come one clock after their step; without ``read_room`` or ``write_room`` there is none.

    ``token`` is the end of a burst. ``abort`` makes up for the token of the write that an atomic leaves out because
    its read, for whose beat it waits on ``read_beat``, has failed.
    """

    def __init__(self, width: int) -> None:
        check_choice("width", width, DATA_WIDTHS)
        self.width = width
        super().__init__(
            {
                "jobs": In(stream.Signature(job_layout(width))),
                "beats": In(stream.Signature(data_beat(width))),
                "burst": Out(BURST),
                "step": Out(step_layout(width)),
                "order": Out(order_layout(width)),
                "read_room": In(1),
                "write_room": In(1),
                "read_beat": In(data.StructLayout({"valid": 1, "data": width})),
                "token": In(TOKEN),
                "abort": Out(1),
            }
        )
        self._job_queue, self._beat_queue = SkidBuffer(job_layout(width)), RingQueue(data_beat(width))
        self._jobs, self._beats = self._job_queue.o, self._beat_queue.o
        self._job = self._jobs.payload
        flags = ("write", "read", "refuse", "fence", "load", "read_old", "abort", "write_new")
        self._do = Signal(data.StructLayout(dict.fromkeys(flags, 1)))  # what this clock does: one thing at the most
        self._is_first, self._is_last, self._needs_beat = Signal(init=1), Signal(), Signal()  # beat of an operation
        self._starts, self._ends, self._in_second = Signal(init=1), Signal(), Signal()  # bursts
        self._writing, self._settled = Signal(), Signal(init=1)

    def elaborate(self, platform: object) -> Module:
        """Decide on a step, count it, say what it asks for."""
        m = Module()
        # The memories that jobs and beats come from are far away: they must not have to wait for the decision.
        m.submodules.job_queue, m.submodules.beat_queue = self._job_queue, self._beat_queue
        connect(m, flipped(self.jobs), self._job_queue.i)
        connect(m, flipped(self.beats), self._beat_queue.i)
        m.submodules.atomic = atomic = AtomicUnit(self.width)
        job = self._job
        m.d.comb += [
            atomic.opcode.eq(job.opcode),
            atomic.is_wide.eq(job.is_wide),
            atomic.lane.eq(job.address),
            atomic.operands.eq(self._beats.payload),
            atomic.operands_valid.eq(self._do.load),
            atomic.old.eq(self.read_beat.data),
        ]
        self._decide(m, atomic)
        self._count(m)
        self._take(m)
        self._settle(m)
        self._ask(m)
        self._write(m, atomic.o)
        self._order(m)
        return m

    def _decide(self, m: Module, atomic: AtomicUnit) -> None:
        """What to do in this clock."""
        job, do = self._job, self._do
        kind, settled = job.kind, self._settled
        with m.FSM(name="state"):
            with m.State("RUN"), m.If(self._jobs.valid):
                m.d.comb += [
                    do.write.eq(
                        kind.is_write & self._writing & self.write_room & (self._beats.valid | ~self._needs_beat)
                    ),
                    do.read.eq(kind.is_read & ~self._writing & self.read_room),
                    do.fence.eq(kind.is_fence),  # answers keep their order
                    do.refuse.eq(~kind.as_value().any() & (self._beats.valid | ~job.has_beats)),
                ]
                with m.If(settled & (kind.is_write | kind.is_read)):
                    m.d.sync += self._writing.eq(kind.is_write)
                with m.If(settled & kind.is_atomic):
                    m.next = "LOAD"
            with m.State("LOAD"):
                m.d.comb += do.load.eq(self._beats.valid)
                with m.If(do.load & self._beats.payload.last):
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += do.read_old.eq(self.read_room)
                with m.If(do.read_old):
                    m.next = "OLD"
            with m.State("OLD"):
                m.d.comb += [
                    atomic.old_valid.eq(self.read_beat.valid),
                    do.abort.eq(self.token.valid & self.token.is_bad),
                ]
                with m.If(self.token.valid):
                    m.next = "NEW"
                with m.If(do.abort):
                    m.next = "RUN"
            with m.State("NEW"), m.If(atomic.done):
                m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += do.write_new.eq(self.write_room)
                with m.If(do.write_new):
                    m.d.sync += self._writing.eq(1)
                    m.next = "RUN"

    def _count(self, m: Module) -> None:
        """Where the operation is. Comparisons are made a clock before they are needed."""
        place, do = self._job.place, self._do
        beat, is_last, ends = Signal(COUNT_BITS), Signal(), Signal()
        following = beat + 1
        m.d.comb += [
            self._is_last.eq(Mux(self._is_first, place.is_single, is_last)),
            self._ends.eq(self._is_last | Mux(self._is_first, place.is_first_single, ends)),
            self._needs_beat.eq(~(place.is_extra & self._is_last)),
        ]
        with m.If(do.write):
            m.d.sync += [
                beat.eq(Mux(self._is_last, 0, following)),
                is_last.eq(following == place.last),
                ends.eq(following == place.first),
                self._is_first.eq(self._is_last),
                self._starts.eq(self._ends),
                self._in_second.eq(self._ends & ~self._is_last),
            ]
        with m.If(do.read):
            m.d.sync += self._in_second.eq(place.crosses & ~self._in_second)

    def _take(self, m: Module) -> None:
        """Take an operation, or a beat of its data, when it is done with."""
        job, do = self._job, self._do
        m.d.comb += [
            self._beats.ready.eq(do.write & self._needs_beat | do.refuse & job.has_beats | do.load),
            self._jobs.ready.eq(
                do.write & self._is_last
                | do.read & (self._in_second | ~job.place.crosses)
                | do.refuse & (self._beats.payload.last | ~job.has_beats)
                | do.fence
                | do.abort
                | do.write_new
            ),
        ]

    def _settle(self, m: Module) -> None:
        """Memory is settled when it has answered all that was asked. The count lags behind by a clock."""
        unanswered = Signal(range(2 * OPERATIONS + 8))
        do = self._do
        asks = do.write & self._starts | do.read | do.read_old | do.write_new
        asked = self.burst.is_read | self.burst.is_write
        m.d.sync += [
            unanswered.eq(unanswered + asked - self.token.valid),
            self._settled.eq(~asks & ~asked & (unanswered == 0)),
        ]

    def _ask(self, m: Module) -> None:
        do, place, lanes = self._do, self._job.place, lane_bits(self.width)
        address, next_page = self._job.address, Signal(64 - PAGE_BITS)
        m.d.sync += [
            # A clock late, but so is the second burst.
            next_page.eq(address[PAGE_BITS:] + 1),
            self.burst.is_read.eq(do.read | do.read_old),
            self.burst.is_write.eq(do.write & self._starts | do.write_new),
            self.burst.length.eq(Mux(self._in_second, place.second, place.first)),
            self.burst.address.eq(
                Mux(self._in_second, Cat(Const(0, PAGE_BITS), next_page), Cat(Const(0, lanes), address[lanes:]))
            ),
        ]

    def _write(self, m: Module, new: Value) -> None:
        do, job, place, step = self._do, self._job, self._job.place, self.step
        from_beat = self._beats.payload.data
        m.d.sync += [
            step.valid.eq(do.write | do.write_new),
            step.last.eq(self._ends),
            step.beat.data.eq(Cat(Mux(job.kind.is_atomic, new, from_beat[:WORD]), from_beat[WORD:])),
            step.beat.shift.eq(job.address),
            step.beat.is_alone.eq(0),
            step.beat.is_head.eq(self._is_first),
            step.beat.is_tail.eq(self._is_last),
            step.beat.end.eq(place.end),
        ]

    def _order(self, m: Module) -> None:
        do, job, order = self._do, self._job, self.order
        kind, place = job.kind, job.place
        has_data = kind.is_read | kind.is_atomic
        is_direct = ~has_data | place.is_single | (job.address[: lane_bits(self.width)] == 0)
        is_flushed = ~is_direct & ~place.is_extra
        is_first = (do.write & self._starts | do.read) & ~self._in_second
        m.d.sync += [
            order.valid.eq(is_first | do.refuse & self._jobs.ready | do.fence | do.read_old),
            order.outcome.eq(job.outcome),
            order.awaits.eq(has_data | kind.is_write),
            order.awaits_two.eq((has_data | kind.is_write) & place.crosses | kind.is_atomic),
            order.has_data.eq(has_data),
            order.last.eq(place.last + is_flushed),
            order.is_single.eq(~has_data | place.is_single),
            order.is_direct.eq(is_direct),
            order.is_flushed.eq(is_flushed),
            order.shift.eq(-job.address[: lane_bits(self.width)]),
            order.end.eq(place.data_end),
            self.abort.eq(do.abort),
        ]
