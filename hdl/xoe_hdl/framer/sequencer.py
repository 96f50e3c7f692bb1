"""Sends every gathered frame once, in order, with the next number of its flow: a wire without loss needs no more."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import NicConfig
from xoe.wire import Kind, TrafficClass

from ..queues import FallThroughQueue
from .collector import collected
from .emitter import job
from .sequence import SequenceNumbers


class Sequencer(wiring.Component):
    """Two clocks from a frame to its job; one a clock.

    Sequence numbers count the frames of each local queue pair, those of responses apart. Nothing is taken for
    ``2 * queue_pairs`` clocks after a reset.

    Raises:
        ConfigError: ``first_sequence`` does not fit the header's field.
    """

    def __init__(self, config: NicConfig, pages: int, first_sequence: int = 0) -> None:
        self.config = config
        self._pages = pages
        self._sequence = SequenceNumbers(2 * config.queue_pairs, first_sequence)
        super().__init__(
            {
                "frames": In(stream.Signature(collected(pages))),
                "epoch": In(8),
                "jobs": Out(stream.Signature(job(pages))),
            }
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
            header.epoch.eq(self.epoch),
            header.seq.eq(sequence.number),
        ]
        return m
