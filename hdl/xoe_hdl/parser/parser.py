"""Checks frames and keeps ours; others go to a host, PAUSE and PFC to whoever controls the link."""

from __future__ import annotations

from amaranth.hdl import Module, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import NicConfig
from xoe.parser import CONTROL_FRAME_MAX, HOST_FRAME_MAX, Outcome
from xoe.wire import CRC_SIZE, FrameHeader

from ..delay import delayed
from ..layouts import CFG, MAC_BITS, axis, counters
from ..queues import Queue
from ..transport.page_store import PageStore, segment
from .aligner import Aligner
from .classifier import Classifier, FrameClass
from .crc_checker import CrcChecker
from .frame_buffer import FrameBuffer, FrameGate
from .frame_judge import FrameJudge
from .payload_writer import FOUND, PayloadWriter
from .word_window import payload_beat

MARGIN = 16  # beats, and frames, that may be under way from s_axis to a buffer
FRAMES = 64  # frames that wait in a buffer
COUNTERS = tuple(outcome.name.lower() for outcome in Outcome)


def parsed(pages: int) -> data.StructLayout:
    """A frame of ours that was kept: whether it is good, what was found in it, and where its rows are."""
    return data.StructLayout({"is_good": 1, "found": FOUND, "segment": segment(pages)})


class Parser(wiring.Component):
    """A beat in every clock, frames back to back; frames of ours are checked whole.

    ``frames``: ours, in order; those that turned out bad too, so that their rows can be given back. Rows are fetched
    and given back as those of a ``PageStore``; they have the layout of ``payload_beat``, and begin with the first one
    that has operations. A frame without operations is dropped. ``host`` and ``control``: frames of others, unchanged
    but for those that are marked bad or too long, which are dropped. ``counters``: how often each outcome of
    ``xoe.parser`` came.

    ``s_axis`` stops only when a buffer is full: the pages for ours, or ``FRAMES`` of them; one of 9216 bytes and more
    for the host. Each output may stop at any time; nothing is lost. From a frame's last beat to ``frames``: 7 clocks
    at 256 and 512 bits, 8 at 128, 9 at 64, if no other frame is in front.

    Args:
        config: ``data_width``, ``mtu``, ``queue_pairs`` and ``counter_width`` are used.
        pages: of the store, a power of two from 4 to 4096.
        page_rows: rows of a page, a power of two from 4 to 256.
    """

    def __init__(self, config: NicConfig, pages: int, page_rows: int) -> None:
        self.config = config
        width = config.data_width
        row = payload_beat(width)
        self.store = PageStore(Shape.cast(row).width, page_rows, pages, min(MARGIN, pages))
        fetches = ("fetch", "fetch_first", "fetch_page", "give_back")
        super().__init__(
            {
                "s_axis": In(stream.Signature(axis(width))),
                "host": Out(stream.Signature(axis(width))),
                "control": Out(stream.Signature(axis(width))),
                "frames": Out(stream.Signature(parsed(pages))),
                **{name: self.store.signature.members[name] for name in fetches},
                "row": Out(row),
                "cfg": In(CFG),
                "counters": Out(counters(*COUNTERS, width=config.counter_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Classify; others to their buffers, ours through aligner and checks to the store."""
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
        m.submodules.page_store = store = self.store
        has_written = delayed(m, "has_written", writer.has_written & aligner.end_valid, crc_checker.latency)
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
            store.write_valid.eq(writer.write_valid),
            store.write_data.eq(writer.write),
            store.write_last.eq(writer.write.last),
            store.fetch.eq(self.fetch),
            store.fetch_first.eq(self.fetch_first),
            store.fetch_page.eq(self.fetch_page),
            self.row.eq(store.row),
        ]
        connect(m, flipped(self.give_back), store.give_back)
        for block in (writer, crc_checker):
            m.d.comb += [
                block.i_valid.eq(aligner.o_valid),
                block.i.eq(aligner.o),
                block.header.eq(aligner.header),
            ]
        self._count(m, judge)
        return [store.room, *self._collect(m, writer, aligner, has_written, judge.is_good)]

    def _collect(
        self, m: Module, writer: PayloadWriter, aligner: Aligner, has_written: Value, is_good: Value
    ) -> list[Value]:
        """Bring together what is known of each frame, a part after the other; whether there is room for more."""
        o, shapes = self.frames.payload, {"found": FOUND, "segment": self.store.written.shape(), "is_good": 1}
        queues = {}
        for name, shape in shapes.items():
            m.submodules[name] = queues[name] = Queue(shape, FRAMES, MARGIN)
            m.d.comb += [
                o[name].eq(queues[name].o.payload),
                queues[name].o.ready.eq(self.frames.valid & self.frames.ready),
            ]
        # A frame's body stands in its registers a clock after its last beat.
        m.d.sync += queues["found"].i.valid.eq(writer.has_written & aligner.end_valid)
        m.d.comb += [
            self.frames.valid.eq(queues["is_good"].o.valid),  # the last of the three
            queues["found"].i.payload.eq(writer.found),
            queues["segment"].i.valid.eq(self.store.written_valid),
            queues["segment"].i.payload.eq(self.store.written),
            queues["is_good"].i.valid.eq(has_written),
            queues["is_good"].i.payload.eq(is_good),
        ]
        return [queue.room for queue in queues.values()]

    def _count(self, m: Module, judge: FrameJudge) -> None:
        is_judged, outcome = Signal(), Signal(Outcome)
        m.d.sync += [is_judged.eq(judge.is_judged), outcome.eq(judge.outcome)]
        for name in Outcome.__members__:
            counter = self.counters[name.lower()]
            with m.If(is_judged & (outcome == Outcome[name])):
                m.d.sync += counter.eq(counter + 1)
