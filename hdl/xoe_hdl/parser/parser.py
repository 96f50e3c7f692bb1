"""From frames to operations; what is not ours goes to a host, PAUSE and PFC to whoever controls the link."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import NicConfig
from xoe.parser import CONTROL_FRAME_MAX, HOST_FRAME_MAX, Outcome
from xoe.wire import CRC_SIZE, FrameHeader

from ..delay import delayed
from ..layouts import CFG, MAC_BITS, ROUTE, axis, counters, operation_beat
from ..queues import Queue, RingQueue
from .aligner import Aligner
from .classifier import Classifier, FrameClass
from .crc_checker import CrcChecker
from .frame_buffer import FrameBuffer, FrameGate
from .frame_judge import FrameJudge
from .payload_writer import PayloadWriter
from .unpacker import Unpacker
from .word_window import payload_beat

MARGIN = 16  # beats, and frames, that may be under way from s_axis to a buffer
FRAMES = 64  # frames that wait in a buffer
COUNTERS = (*(outcome.name.lower() for outcome in Outcome), "operation_malformed")


class Parser(wiring.Component):
    """A beat in every clock, frames back to back; frames of ours are checked whole before any operation comes out.

    ``operations``: those of good frames, in order. ``host`` and ``control``: frames of others, unchanged but for those
    that are marked bad or too long, which are dropped like any bad frame. ``counters``: how often each outcome of
    ``xoe.parser`` came.

    ``s_axis`` stops only when a buffer is full: 2 frames of the largest MTU for operations, one of 9216 bytes and more
    for the host. Each output may stop at any time; nothing is lost. From a frame's last beat to its first operation:
    8 clocks at 256 and 512 bits, 9 at 128, 10 at 64, if no other frame is in front.
    """

    def __init__(self, config: NicConfig) -> None:
        self.config = config
        width = config.data_width
        super().__init__(
            {
                "s_axis": In(stream.Signature(axis(width))),
                "host": Out(stream.Signature(axis(width))),
                "control": Out(stream.Signature(axis(width))),
                "operations": Out(stream.Signature(operation_beat(width))),
                "cfg": In(CFG),
                "counters": Out(counters(*COUNTERS, width=config.counter_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Classify; others to their buffers, ours through aligner and checks to theirs, and then taken apart."""
        m = Module()
        m.submodules.classifier = classifier = Classifier(self.config.data_width)
        has_room = Signal()
        m.d.comb += [
            self.s_axis.ready.eq(has_room),
            classifier.i_valid.eq(self.s_axis.valid & has_room),
            classifier.i.eq(self.s_axis.payload),
            classifier.ethertype.eq(self.cfg.ethertype),
            classifier.mac.eq(self.cfg.mac),
        ]
        rooms = [
            self._pass(m, "host", classifier, FrameClass.HOST, HOST_FRAME_MAX, self.host),
            self._pass(m, "control", classifier, FrameClass.CONTROL, CONTROL_FRAME_MAX, self.control),
            *self._take(m, classifier),
        ]
        room = rooms[0]
        for other in rooms[1:]:
            room = room & other
        m.d.sync += has_room.eq(room)
        return m

    def _depth(self, size: int) -> int:
        """Beats of a buffer for frames of ``size`` bytes: a frame, and what comes until its first beat leaves."""
        beats = -(-8 * size // self.config.data_width)
        return 1 << (beats + 3 * MARGIN - 1).bit_length()

    def _pass(
        self,
        m: Module,
        name: str,
        classifier: Classifier,
        frame_class: FrameClass,
        limit: int,
        output: stream.Interface,
    ) -> Value:
        """Pass one class of frames on; whether there is room for more."""
        shape = axis(self.config.data_width)
        m.submodules[f"{name}_buffer"] = buffer = FrameBuffer(shape, self._depth(limit), FRAMES, MARGIN)
        m.submodules[f"{name}_gate"] = gate = FrameGate(shape)
        connect(m, buffer.beats, gate.beats)
        connect(m, buffer.verdicts, gate.verdicts)
        connect(m, gate.o, flipped(output))
        beat, beats = classifier.o, limit * 8 // self.config.data_width
        is_here = classifier.o_valid & (beat.frame_class == frame_class)
        m.d.sync += [
            buffer.write_valid.eq(is_here & (beat.index < beats)),
            buffer.verdict_valid.eq(is_here & beat.beat.last),
            buffer.is_good.eq(~beat.beat.user & (beat.index < beats)),
            buffer.write.eq(beat.beat),
            buffer.write.last.eq(beat.beat.last | (beat.index == beats - 1)),
        ]
        return buffer.room

    def _take(self, m: Module, classifier: Classifier) -> list[Value]:
        """Take frames of ours; whether there is room for more."""
        config, width = self.config, self.config.data_width
        m.submodules.aligner = aligner = Aligner(width, config.mtu - FrameHeader.SIZE - CRC_SIZE)
        m.submodules.writer = writer = PayloadWriter(width)
        m.submodules.crc_checker = crc_checker = CrcChecker(width, FrameJudge.latency_min)
        m.submodules.judge = judge = FrameJudge(config, crc_checker.latency)
        m.submodules.buffer = buffer = FrameBuffer(payload_beat(width), self._depth(config.mtu), FRAMES, MARGIN)
        m.submodules.routes = routes = Queue(ROUTE, FRAMES, MARGIN)
        m.submodules.next_routes = next_routes = RingQueue(ROUTE)
        m.submodules.unpacker = unpacker = Unpacker(width)
        connect(m, buffer.beats, unpacker.beats)
        connect(m, buffer.verdicts, unpacker.verdicts)
        connect(m, routes.o, next_routes.i)
        connect(m, next_routes.o, unpacker.routes)
        connect(m, unpacker.operations, flipped(self.operations))
        m.d.comb += [
            aligner.i_valid.eq(classifier.o_valid),
            aligner.i.eq(classifier.o),
            writer.fits.eq(aligner.fits),
            writer.source.eq(classifier.addresses[MAC_BITS:]),
            judge.is_to_us.eq(classifier.is_to_us),
            judge.node.eq(self.cfg.node),
            judge.end_valid.eq(aligner.end_valid),
            judge.end.eq(aligner.end),
            judge.header.eq(aligner.header),
            judge.fits.eq(aligner.fits),
            judge.is_right.eq(crc_checker.is_right),
            buffer.write_valid.eq(writer.write_valid),
            buffer.write.eq(writer.write),
            buffer.verdict_valid.eq(
                delayed(m, "has_written", writer.has_written & aligner.end_valid, crc_checker.latency)
            ),
            buffer.is_good.eq(judge.is_good),
        ]
        # A clock later, and in two queues: there is time until the verdict, and that says late when it takes a route.
        m.d.sync += [routes.i.valid.eq(writer.route_valid), routes.i.payload.eq(writer.route)]
        for block in (writer, crc_checker):
            m.d.comb += [
                block.i_valid.eq(aligner.o_valid),
                block.i.eq(aligner.o),
                block.header.eq(aligner.header),
            ]
        self._count(m, judge, unpacker)
        return [buffer.room, routes.room]

    def _count(self, m: Module, judge: FrameJudge, unpacker: Unpacker) -> None:
        is_judged, outcome = Signal(), Signal(Outcome)
        m.d.sync += [is_judged.eq(judge.is_judged), outcome.eq(judge.outcome)]
        for name in Outcome.__members__:
            counter = self.counters[name.lower()]
            with m.If(is_judged & (outcome == Outcome[name])):
                m.d.sync += counter.eq(counter + 1)
        with m.If(unpacker.is_malformed):
            m.d.sync += self.counters.operation_malformed.eq(self.counters.operation_malformed + 1)
