"""The responder's first part: what a request asks for, whether it may have it, and where its bytes lie in memory."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import NicConfig
from xoe.responder import Outcome
from xoe.wire import ATOMICS, DATA_MAX, RESPONSE_BIT, Opcode, Rights, Status

from ..cam import Cam
from ..delay import delayed
from ..layouts import LENGTH_BITS, WINDOW, operation_beat
from ..queues import Queue
from .atomic import OPCODE_BITS
from .byte_aligner import lane_bits
from .layouts import (
    BEATS,
    COUNT_BITS,
    HEADER,
    KIND,
    OPERATIONS,
    OUTCOME_BITS,
    PAGE_BITS,
    data_beat,
    job_layout,
    place_layout,
)


class RequestCheck(wiring.Component):
    """Takes requests apart; ``jobs``, ``headers`` and ``beats`` come out of queues, each in order.

    A pipeline that never stalls: nine clocks from a request's first beat to its job, a new one each clock. A request
    is only taken while there is room for its header and its data; it has room among the jobs then, because its header
    stays longer.
    Data that no operation wants is taken and forgotten. ``ignored`` is high for a clock for each response that comes.
    """

    def __init__(self, config: NicConfig) -> None:
        width = config.data_width
        self.config = config
        self.cam = Cam(config.windows, WINDOW)
        super().__init__(
            {
                "requests": In(stream.Signature(operation_beat(width))),
                "window_write": self.cam.signature.members["write"],
                "window_written": self.cam.signature.members["written"],
                "jobs": Out(stream.Signature(job_layout(width))),
                "headers": Out(stream.Signature(HEADER)),
                "beats": Out(stream.Signature(data_beat(width))),
                "ignored": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Take, decode, check, look up."""
        m = Module()
        width = self.config.data_width
        m.submodules.cam = cam = self.cam
        m.submodules.jobs = jobs = Queue(job_layout(width), OPERATIONS + 1)
        m.submodules.headers = headers = Queue(HEADER, OPERATIONS + 1, margin=4)
        m.submodules.beats = beats = Queue(data_beat(width), BEATS + 1, margin=4)
        connect(m, flipped(self.window_write), cam.write)
        connect(m, jobs.o, flipped(self.jobs))
        connect(m, headers.o, flipped(self.headers))
        connect(m, beats.o, flipped(self.beats))
        m.d.comb += self.window_written.eq(cam.written)

        taken, is_taken, is_request = self._take(m, headers.room, beats.room)
        operation = taken.data.operation
        beat, is_wanted = Signal(data_beat(width)), Signal()
        m.d.sync += [
            beat.data.eq(taken.data.data),
            beat.last.eq(taken.last),
            is_wanted.eq(is_taken & _has_data(operation.opcode)),
        ]
        m.d.comb += [
            cam.lookup.valid.eq(is_request),
            cam.lookup.address.eq(operation.address),
            cam.lookup.space.eq(taken.data.route.node),
            cam.lookup.length.eq(operation.length[:LENGTH_BITS]),
            beats.i.payload.eq(beat),
            beats.i.valid.eq(is_wanted),
        ]
        self._keep_header(m, headers, taken, is_request)

        kind, fault = self._check(m, operation)
        rest = cam.latency - 3
        self._judge(m, jobs.i.payload, delayed(m, "kind", kind, rest), delayed(m, "fault", fault, rest))
        place = delayed(m, "place", self._place(m, operation), cam.latency - 2)
        later = cam.latency + 1
        m.d.comb += [
            jobs.i.valid.eq(delayed(m, "job_valid", is_request, later)),
            jobs.i.payload.has_beats.eq(delayed(m, "has_beats", _has_data(operation.opcode), later)),
            jobs.i.payload.opcode.eq(delayed(m, "opcode", operation.opcode[:OPCODE_BITS], later)),
            jobs.i.payload.is_wide.eq(delayed(m, "is_wide", operation.length[3], later)),
            jobs.i.payload.address.eq(delayed(m, "address", cam.result.address, 1)),
            jobs.i.payload.place.eq(place),
        ]
        return m

    def _take(self, m: Module, has_header_room: Value, has_beat_room: Value) -> tuple[data.View, Signal, Signal]:
        """The beat taken a clock ago, whether there was one, and whether a request began with it."""
        i = self.requests
        is_first = Signal(init=1)
        taken, is_taken, begins = Signal(i.payload.shape()), Signal(), Signal()
        m.d.comb += i.ready.eq(has_beat_room & (has_header_room | ~is_first))
        with m.If(i.valid & i.ready):
            m.d.sync += is_first.eq(i.payload.last)
        m.d.sync += [taken.eq(i.payload), is_taken.eq(i.valid & i.ready), begins.eq(i.valid & i.ready & is_first)]
        is_response = (taken.data.operation.opcode & RESPONSE_BIT).any()
        is_request = Signal()
        m.d.comb += is_request.eq(begins & ~is_response)
        m.d.sync += self.ignored.eq(begins & is_response)
        return taken, is_taken, is_request

    def _keep_header(self, m: Module, headers: Queue, taken: data.View, is_request: Value) -> None:
        header, operation = Signal(HEADER), taken.data.operation
        words = Mux(operation.opcode == Opcode.READ, _words(operation.length), _is_atomic(operation.opcode))
        m.d.sync += [
            *(header[name].eq(operation[name]) for name in ("opcode", "tag", "length")),
            *(header[name].eq(taken.data.route[name]) for name in ("mac", "node", "remote_qp", "local_qp", "epoch")),
            header.words.eq(words),
            headers.i.valid.eq(is_request),
        ]
        m.d.comb += headers.i.payload.eq(header)

    def _check(self, m: Module, operation: data.View) -> tuple[data.View, Value]:
        """What is asked for, and the fault found in the request alone (READ: none): three clocks later."""
        kind, is_supported, is_malformed, is_misaligned = self._check_shape(m, operation)
        fault = Signal(OUTCOME_BITS)
        with m.If(is_malformed):
            m.d.sync += fault.eq(Outcome.MALFORMED)
        with m.Elif(~is_supported):
            m.d.sync += fault.eq(Outcome.UNSUPPORTED)
        with m.Elif(is_misaligned):
            m.d.sync += fault.eq(Outcome.MISALIGNED)
        with m.Else():
            m.d.sync += fault.eq(Outcome.READ)
        return delayed(m, "kind_found", kind, 1), fault

    def _check_shape(self, m: Module, operation: data.View) -> tuple[data.View, Value, Value, Value]:
        """Kind, supported, malformed, misaligned: two clocks later."""
        opcode, length, address = operation.opcode, operation.length, operation.address
        kind = Signal(KIND)
        is_swap, is_done = Signal(), Signal()
        has_size, has_length, has_none = Signal(), Signal(), Signal()
        words, needed, offset = Signal(8), Signal(COUNT_BITS), Signal(3)
        m.d.sync += [
            kind.is_read.eq(opcode == Opcode.READ),
            kind.is_write.eq(opcode == Opcode.WRITE),
            kind.is_atomic.eq(_is_atomic(opcode)),
            kind.is_fence.eq(opcode == Opcode.FENCE),
            is_swap.eq(opcode == Opcode.COMPARE_SWAP),
            is_done.eq(operation.status != Status.MALFORMED),
            has_size.eq((length == 4) | (length == 8)),
            has_length.eq((length != 0) & (length <= DATA_MAX)),
            has_none.eq(length == 0),
            words.eq(operation.words),
            needed.eq(_words(length)),
            offset.eq(Cat(address[:2], address[2] & length[3])),
        ]
        is_supported, is_malformed, is_misaligned = Signal(), Signal(), Signal()
        right = Array((words == 0, words == 1, words == 2, words == needed))
        is_good = (
            kind.is_read & has_length & right[0]
            | kind.is_write & has_length & right[3]
            | kind.is_atomic & has_size & (Mux(is_swap, right[2], right[1]))
            | kind.is_fence & has_none & right[0]
        )
        m.d.sync += [
            is_supported.eq(kind.as_value().any()),
            is_malformed.eq(~is_done | kind.as_value().any() & ~is_good),
            is_misaligned.eq(kind.is_atomic & offset.any()),
        ]
        return delayed(m, "kind_decoded", kind, 1), is_supported, is_malformed, is_misaligned

    def _judge(self, m: Module, job: data.View, kind: data.View, fault: Value) -> None:
        """Add the windows' word, a clock later: the outcome, and what is left to be done."""
        found = self.cam.result
        rights = found.payload.rights
        is_allowed = Cat(kind.is_read, kind.is_write, kind.is_atomic) & Cat(
            *((rights & right).any() for right in (Rights.READ, Rights.WRITE, Rights.ATOMIC))
        )
        allowed, outcome = Signal(KIND), Signal(OUTCOME_BITS)
        m.d.sync += [allowed.eq(0), outcome.eq(fault)]
        with m.If(fault == Outcome.READ):
            with m.If(kind.is_fence):
                m.d.sync += [allowed.is_fence.eq(1), outcome.eq(Outcome.FENCE)]
            with m.Elif(~found.hit):
                m.d.sync += outcome.eq(Outcome.WINDOW_MISS)
            with m.Elif(found.crosses):
                m.d.sync += outcome.eq(Outcome.WINDOW_CROSSED)
            with m.Elif(~is_allowed.any()):
                m.d.sync += outcome.eq(Outcome.PERMISSION)
            with m.Else():
                done = Mux(kind.is_write, Outcome.WRITE, Mux(kind.is_atomic, Outcome.ATOMIC, Outcome.READ))
                m.d.sync += [allowed.eq(kind), outcome.eq(done)]
        m.d.comb += [job.kind.eq(allowed), job.outcome.eq(outcome)]

    def _place(self, m: Module, operation: data.View) -> data.View:
        """Where the bytes lie: three clocks later."""
        lanes = lane_bits(self.config.data_width)
        address, length = operation.address, operation.length[:LENGTH_BITS]
        end, data_end = Signal(LENGTH_BITS + 1), Signal(LENGTH_BITS)
        left = Signal(PAGE_BITS - lanes)
        m.d.sync += [
            end.eq(address[:lanes] + length - 1),
            data_end.eq(length - 1),
            left.eq(~address[lanes:PAGE_BITS]),
        ]
        counted, left_counted = Signal(place_layout(self.config.data_width)), Signal(COUNT_BITS)
        last = end[lanes:]
        m.d.sync += [
            counted.last.eq(last),
            counted.crosses.eq(last > left),
            counted.second.eq(last - left - 1),
            counted.is_extra.eq(last != data_end[lanes:]),
            counted.end.eq(end[:lanes]),
            counted.data_end.eq(data_end[:lanes]),
            left_counted.eq(left),
        ]
        place = Signal(place_layout(self.config.data_width))
        first = Mux(counted.crosses, left_counted, counted.last)
        m.d.sync += [
            place.eq(counted),
            place.first.eq(first),
            place.is_single.eq(counted.last == 0),
            place.is_first_single.eq(first == 0),
        ]
        return place


def _is_atomic(opcode: Value) -> Value:
    return Cat(opcode == atomic for atomic in sorted(ATOMICS)).any()


def _has_data(opcode: Value) -> Value:
    """Whether the request's data is kept until its turn comes."""
    return (opcode == Opcode.WRITE) | _is_atomic(opcode)


def _words(length: Value) -> Value:
    return (length + 7)[3 : 3 + COUNT_BITS]
