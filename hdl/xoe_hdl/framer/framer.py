"""Operations to Ethernet frames."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import NicConfig
from xoe.wire import CRC_SIZE, DATA_MAX, ETHERNET_HEADER, GRID, FrameHeader

from ..crc import WORD, PayloadCrc
from ..delay import delayed
from ..layouts import CFG, axis, counters, operation_beat
from ..transport.page_store import PageStore, segment
from .collector import FRAMES, Collector, collected
from .emitter import BACKLOG_BITS, Emitter, job
from .gatherer import INPUTS, OVERHEAD, Gatherer, room_within
from .packer import HEADER_WORDS, Packer, lead_words

COUNTERS = ("frames", "operations", "bytes")

PAGE = 512  # bytes
ANNOUNCED = 16  # clocks from the end of a frame's gathering to its first beat, besides those of who makes it a job
KNOWN = 3  # of these, from the collector to the emitter's backlog
HEADERS = ETHERNET_HEADER + FrameHeader.SIZE + CRC_SIZE


def frame_rows(width: int, mtu: int) -> int:
    """Rows of ``width`` bits that the operations and the CRC of the largest frame take."""
    words = width // WORD
    return (lead_words(words) + (mtu - OVERHEAD) * 8 // WORD) // words + 1


def operation_rows(width: int) -> int:
    """Rows of ``width`` bits that the largest operation takes, however it lies."""
    return -(-(HEADER_WORDS * WORD + DATA_MAX * 8) // width) + 1


def frame_pages(width: int, mtu: int) -> int:
    """Pages of the store that the largest frame takes."""
    return -(-frame_rows(width, mtu) * width // 8 // PAGE)


class Framer(wiring.Component):
    """Gathers operations in frames and sends them, a beat every clock, frames back to back, never a gap inside one.

    See ``Gatherer`` for which operations share a frame and for the back-pressure on ``requests`` and ``responses``, for
    ``notes`` and for the ports from ``heads`` to ``leaves``; ``m_axis`` may hold back at any time. A gathered frame
    comes out of ``frames``, and is sent when a ``jobs`` says so, as often as one does; its rows are kept until its
    segment is put into ``give_back``. ``sent``, see ``Emitter``.

    An operation that comes alone is on ``m_axis`` 15 clocks after it was accepted, and those that its frame waits
    for its job. Frames are gathered ahead of the wire only as far as it needs to be busy.

    ``counters``: frames and their bytes (destination address to padding), operations accepted. ``cfg.mtu`` is taken as
    the configuration's when it is larger. An operation's data go out as they came, the bytes after its length in the
    last word included.

    Args:
        config: ``data_width``, ``mtu`` and ``counter_width`` are used.
        pages: of the store, each of ``PAGE`` bytes, see ``frame_pages``; a power of two from 4 to 4096.
        lag: clocks from a frame to its job, about.

    Raises:
        ConfigError: ``pages`` out of bounds.
    """

    def __init__(self, config: NicConfig, pages: int, lag: int) -> None:
        self.config, self.lag = config, lag
        width = config.data_width
        # A frame is begun when there is room for it and for what is still to come of the one before.
        self.store = PageStore(width, PAGE * 8 // width, pages, 2 * frame_pages(width, config.mtu))
        self.gatherer, self.emitter = Gatherer(width), Emitter(width, pages)
        passed = ("heads", "permits", "drops", "begins", "leaves", "note_body")
        super().__init__(
            {
                **{name: In(stream.Signature(operation_beat(width))) for name in INPUTS},
                **{name: self.gatherer.signature.members[name] for name in passed},
                "frames": Out(stream.Signature(collected(pages))),
                "jobs": In(stream.Signature(job(pages))),
                "sent": self.emitter.signature.members["sent"],
                "give_back": In(stream.Signature(segment(pages))),
                "m_axis": Out(stream.Signature(axis(width))),
                "cfg": In(CFG),
                "counters": Out(counters(*COUNTERS, width=config.counter_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Gatherer, packer, store and emitter in a row; beside them the CRC."""
        m = Module()
        width = self.config.data_width
        m.submodules.gatherer = gatherer = self.gatherer
        m.submodules.packer = packer = Packer(width)
        m.submodules.crc = crc = PayloadCrc(width, lead_words(width // WORD))
        m.submodules.page_store = store = self.store
        m.submodules.collector = collector = Collector(store.pages)
        m.submodules.emitter = emitter = self.emitter
        for name in INPUTS:
            connect(m, flipped(getattr(self, name)), getattr(gatherer, name))
        connect(m, collector.frames, flipped(self.frames))
        connect(m, flipped(self.jobs), emitter.jobs)
        connect(m, flipped(self.give_back), store.give_back)
        connect(m, emitter.m_axis, flipped(self.m_axis))
        m.d.sync += gatherer.gather.eq(self.cfg.gather)
        most = room_within(Const(self.config.mtu))
        m.d.sync += gatherer.room.eq(Mux(self.cfg.mtu > self.config.mtu, most, room_within(self.cfg.mtu)))
        m.d.comb += [
            emitter.cfg.eq(self.cfg),
            self.sent.eq(emitter.sent),
            self.heads.eq(gatherer.heads),
            self.begins.eq(gatherer.begins),
            self.leaves.eq(gatherer.leaves),
            gatherer.permits.eq(self.permits),
            gatherer.drops.eq(self.drops),
            gatherer.note_body.eq(self.note_body),
            packer.placing.eq(gatherer.placing),
            packer.place.eq(gatherer.place),
            packer.close.eq(gatherer.close),
            packer.at.eq(gatherer.at),
            crc.valid.eq(packer.row_valid),
            crc.beat.eq(packer.row),
        ]
        self._store(m, packer, store, emitter)
        self._collect(m, collector, gatherer, store, crc)
        self._follow(m, gatherer, store, collector, emitter)
        self._count(m, gatherer, emitter)
        return m

    def _store(self, m: Module, packer: Packer, store: PageStore, emitter: Emitter) -> None:
        """Rows go into the store, and come out of it."""
        m.d.comb += [
            store.write_valid.eq(packer.row_valid),
            store.write_data.eq(packer.row.data),
            store.write_last.eq(packer.row.last),
            store.fetch.eq(emitter.fetch),
            store.fetch_first.eq(emitter.fetch_first),
            store.fetch_page.eq(emitter.fetch_page),
            emitter.row.eq(store.row),
        ]

    def _collect(self, m: Module, collector: Collector, gatherer: Gatherer, store: PageStore, crc: PayloadCrc) -> None:
        """What is known of each frame, from those who find it out."""
        m.d.comb += [
            collector.gathered.valid.eq(gatherer.closed),
            collector.gathered.payload.eq(gatherer.frame),
            collector.segment.valid.eq(store.written_valid),
            collector.segment.payload.eq(store.written),
            collector.crc.valid.eq(crc.done),
            collector.crc.payload.eq(crc.crc),
        ]

    def _follow(self, m: Module, gatherer: Gatherer, store: PageStore, collector: Collector, emitter: Emitter) -> None:
        """Keep count of gathered frames, and of whether the wire falls idle unless one is closed after this one."""
        waiting, recent, is_low = Signal(range(FRAMES + 1)), Signal(2), Signal()
        ahead, enough = Signal.like(emitter.backlog), Signal.like(emitter.backlog)
        announced = ANNOUNCED + self.lag
        m.d.comb += is_low.eq(ahead < operation_rows(self.config.data_width) + announced)
        beats = Signal.like(emitter.backlog)  # of frames that are closed and that the emitter does not know yet
        leaves = collector.frames.valid & collector.frames.ready
        comes = self._beats(m, "comes", gatherer.closed, gatherer.frame.words)
        goes = self._beats(m, "goes", leaves, collector.frames.payload.gathered.words)
        m.d.sync += [
            waiting.eq(waiting + gatherer.closed - leaves),
            recent.eq(Cat(gatherer.closed, recent)),  # frames that are not counted yet
            beats.eq(beats + comes - delayed(m, "known", goes, KNOWN + self.lag - 1)),
            ahead.eq(beats + emitter.backlog),
            enough.eq(gatherer.room // (self.config.data_width // WORD) + announced),
            gatherer.hungry.eq(is_low & ~gatherer.close & ~gatherer.closed & ~recent.any()),
            # No more waits than the wire needs while a frame is gathered, so that whatever comes late is soon sent.
            gatherer.may_open.eq((waiting < FRAMES - 6) & store.room & (ahead < enough)),
        ]

    def _beats(self, m: Module, name: str, is_there: Value, words: Value) -> Signal:
        """How many beats a frame with so many words has, about, a clock later; 0 if there is none."""
        found = Signal(BACKLOG_BITS, name=name)
        per_beat = self.config.data_width // WORD
        m.d.sync += found.eq(Mux(is_there, (words + HEADERS // GRID) // per_beat + 1, 0))
        return found

    def _count(self, m: Module, gatherer: Gatherer, emitter: Emitter) -> None:
        """Let the counters follow, some clocks behind."""
        is_sent = delayed(m, "is_sent", emitter.sent.valid, 1)
        for name, step in (
            ("frames", is_sent),
            ("operations", gatherer.operation_taken),
            ("bytes", Mux(is_sent, emitter.sent_bytes, 0)),
        ):
            m.d.sync += self.counters[name].eq(self.counters[name] + step)
