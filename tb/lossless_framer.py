"""A framer that sends every gathered frame once, in order: a wire without loss needs no more."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from sequence import SequenceNumbers
from xoe.config import NicConfig
from xoe.wire import Kind, TrafficClass
from xoe_hdl.framer import Framer
from xoe_hdl.framer.collector import FRAMES, collected
from xoe_hdl.framer.emitter import job
from xoe_hdl.framer.framer import frame_pages
from xoe_hdl.framer.gatherer import INPUTS
from xoe_hdl.queues import FallThroughQueue

LAG = 2


class Sequencer(wiring.Component):
    """Two clocks from a frame to its job; one a clock.

    Sequence numbers count the frames of each local queue pair, those of responses apart. Nothing is taken for
    ``2 * queue_pairs`` clocks after a reset.
    """

    def __init__(self, config: NicConfig, pages: int, first_sequence: int) -> None:
        self.config = config
        self._pages = pages
        self._sequence = SequenceNumbers(2 * config.queue_pairs, first_sequence)
        super().__init__(
            {"frames": In(stream.Signature(collected(pages))), "jobs": Out(stream.Signature(job(pages)))},
        )

    def elaborate(self, platform: object) -> Module:
        """A register beside the number's way, and a queue that reserves its place."""
        m = Module()
        m.submodules.sequence = sequence = self._sequence
        m.submodules.queue = queue = FallThroughQueue(job(self._pages), 4, 2)
        connect(m, queue.o, flipped(self.jobs))
        route = self.frames.payload.gathered.route
        qp_bits = (self.config.queue_pairs - 1).bit_length()
        frame = Signal(self.frames.payload.shape())
        is_taken = self.frames.valid & self.frames.ready
        m.d.comb += [
            self.frames.ready.eq(queue.room & sequence.ready),
            sequence.take.eq(is_taken),
            sequence.flow.eq(Cat(route.traffic_class == TrafficClass.RESPONSE, route.local_qp[:qp_bits])),
        ]
        m.d.sync += [frame.eq(self.frames.payload), queue.i.valid.eq(is_taken)]
        given, header, way = queue.i.payload, queue.i.payload.header, frame.gathered.route
        m.d.comb += [
            given.mac.eq(way.mac),
            given.words.eq(frame.gathered.words),
            given.crc.eq(frame.crc),
            given.segment.eq(frame.segment),
            header.kind.eq(Kind.DATA),
            header.traffic_class.eq(way.traffic_class),
            header.dst_node.eq(way.node),
            header.dst_qp.eq(way.remote_qp),
            header.src_qp.eq(way.local_qp),
            header.epoch.eq(way.epoch),
            header.seq.eq(sequence.number),
        ]
        return m


class LosslessFramer(wiring.Component):
    """``Framer`` with a ``Sequencer``, in the smallest store; see there. It has no notes, and permits everything."""

    def __init__(self, config: NicConfig, first_sequence: int = 0) -> None:
        pages = 1 << ceil_log2(max(4 * frame_pages(config.data_width, config.mtu), 2 * FRAMES))
        self.framer = Framer(config, pages, LAG)
        self.sequencer = Sequencer(config, pages, first_sequence)
        passed = ("requests", "responses", "m_axis", "cfg", "counters")
        super().__init__({name: self.framer.signature.members[name] for name in passed})

    def elaborate(self, platform: object) -> Module:
        """Frames are given up when they are sent."""
        m = Module()
        m.submodules.framer = framer = self.framer
        m.submodules.sequencer = sequencer = self.sequencer
        m.submodules.segments = segments = FallThroughQueue(framer.sent.segment.shape(), FRAMES)
        for name in ("requests", "responses"):
            connect(m, flipped(getattr(self, name)), getattr(framer, name))
        connect(m, framer.m_axis, flipped(self.m_axis))
        connect(m, framer.frames, sequencer.frames)
        connect(m, sequencer.jobs, framer.jobs)
        connect(m, segments.o, framer.give_back)
        m.d.comb += [
            framer.cfg.eq(self.cfg),
            self.counters.eq(framer.counters),
            framer.permits.eq((1 << len(INPUTS)) - 1),
            segments.i.valid.eq(framer.sent.valid),
            segments.i.payload.eq(framer.sent.segment),
        ]
        return m
