"""Operations to Ethernet frames."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from xoe.config import NicConfig, check_range
from xoe.wire import DATA_MAX, TrafficClass

from ..crc import WORD, PayloadCrc
from ..delay import delayed
from ..layouts import CFG, axis, counters, operation_beat
from .emitter import FRAMES, Emitter
from .gatherer import OVERHEAD, Gatherer, room_within
from .packer import HEADER_WORDS, Packer, lead_words
from .sequence import SEQUENCE_BITS, SequenceNumbers

COUNTERS = ("frames", "operations", "bytes")

NO_COLLISION = {"no_rw_check": 1}  # no row is fetched in the clock in which it is written


def frame_rows(width: int, mtu: int) -> int:
    """Rows of ``width`` bits that the operations and the CRC of the largest frame take."""
    words = width // WORD
    return (lead_words(words) + (mtu - OVERHEAD) * 8 // WORD) // words + 1


def operation_rows(width: int) -> int:
    """Rows of ``width`` bits that the largest operation takes, however it lies."""
    return -(-(HEADER_WORDS * WORD + DATA_MAX * 8) // width) + 1


class Framer(wiring.Component):
    """Gathers operations in frames and sends them, a beat every clock, frames back to back, never a gap inside one.

    See ``Gatherer`` for which operations share a frame and for the back-pressure on ``requests`` and ``responses``;
    ``m_axis`` may hold back at any time. At 64..512 bits an operation that comes alone is on ``m_axis`` 8 clocks after
    it was accepted; one frame of the largest size is gathered while another is sent. For ``2 * queue_pairs`` clocks
    after a reset nothing is accepted.

    Sequence numbers count the frames of each local queue pair, those of responses apart. ``counters``: frames and their
    bytes (destination address to padding), operations accepted. ``cfg.mtu`` is taken as the configuration's when it is
    larger. An operation's data go out as they came, the bytes after its length in the last word included.

    Args:
        config: ``data_width``, ``mtu``, ``queue_pairs`` and ``counter_width`` are used.
        first_sequence: the first sequence number of each queue pair.

    Raises:
        ConfigError: ``first_sequence`` does not fit the header's field.
    """

    def __init__(self, config: NicConfig, first_sequence: int = 0) -> None:
        self.config = config
        width = config.data_width
        check_range("first_sequence", first_sequence, 0, (1 << SEQUENCE_BITS) - 1)
        self.first_sequence = first_sequence
        super().__init__(
            {
                "requests": In(stream.Signature(operation_beat(width))),
                "responses": In(stream.Signature(operation_beat(width))),
                "m_axis": Out(stream.Signature(axis(width))),
                "cfg": In(CFG),
                "counters": Out(counters(*COUNTERS, width=config.counter_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Gatherer, packer, store and emitter in a row; beside them the CRC and the sequence numbers."""
        m = Module()
        width = self.config.data_width
        m.submodules.gatherer = gatherer = Gatherer(width)
        m.submodules.packer = packer = Packer(width)
        m.submodules.crc = crc = PayloadCrc(width, lead_words(width // WORD))
        m.submodules.emitter = emitter = Emitter(width)
        for name in ("requests", "responses"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(gatherer, name))
        wiring.connect(m, emitter.m_axis, wiring.flipped(self.m_axis))
        m.d.sync += gatherer.gather.eq(self.cfg.gather)
        most = room_within(Const(self.config.mtu))
        m.d.sync += gatherer.room.eq(Mux(self.cfg.mtu > self.config.mtu, most, room_within(self.cfg.mtu)))
        m.d.comb += [
            emitter.cfg.eq(self.cfg),
            packer.placing.eq(gatherer.placing),
            packer.place.eq(gatherer.place),
            packer.close.eq(gatherer.close),
            packer.at.eq(gatherer.at),
            crc.valid.eq(packer.row_valid),
            crc.beat.eq(packer.row),
            emitter.crc_done.eq(crc.done),
            emitter.crc.eq(crc.crc),
        ]
        self._store(m, gatherer, packer, emitter)
        sequence = self._number(m, gatherer, emitter)
        self._follow(m, gatherer, emitter, sequence)
        self._count(m, gatherer, emitter)
        return m

    def _store(self, m: Module, gatherer: Gatherer, packer: Packer, emitter: Emitter) -> None:
        """The rows on their way from packer to emitter, and whether more may be made."""
        width = self.config.data_width
        depth = 1 << ceil_log2(max(2 * frame_rows(width, self.config.mtu), 4 * Gatherer.ROOM))
        m.submodules.store = store = memory.Memory(shape=width, depth=depth, init=[], attrs=NO_COLLISION)
        write, read = store.write_port(), store.read_port()
        for port, moves in ((write, packer.row_valid), (read, emitter.fetch)):
            with m.If(moves):
                m.d.sync += port.addr.eq(port.addr + 1)
        m.d.comb += [write.en.eq(packer.row_valid), write.data.eq(packer.row.data)]
        m.d.comb += [read.en.eq(1), emitter.row.eq(read.data)]
        free = Signal(range(depth + 1), init=depth)
        is_fetched = delayed(m, "is_fetched", emitter.fetch, 1)
        m.d.sync += [free.eq(free + is_fetched - gatherer.rows), gatherer.has_room.eq(free >= Gatherer.ROOM)]

    def _number(self, m: Module, gatherer: Gatherer, emitter: Emitter) -> SequenceNumbers:
        """Give each closed frame its sequence number."""
        flows = 2 * self.config.queue_pairs
        m.submodules.sequence = sequence = SequenceNumbers(flows, self.first_sequence)
        route = gatherer.frame.route
        is_response = route.traffic_class == TrafficClass.RESPONSE
        qp_bits = (self.config.queue_pairs - 1).bit_length()
        m.d.comb += [sequence.take.eq(gatherer.closed), sequence.flow.eq(Cat(is_response, route.local_qp[:qp_bits]))]
        m.d.comb += [emitter.give.eq(gatherer.closed), emitter.gathered.eq(gatherer.frame)]
        m.d.comb += emitter.seq.eq(sequence.number)
        return sequence

    def _follow(self, m: Module, gatherer: Gatherer, emitter: Emitter, sequence: SequenceNumbers) -> None:
        """Keep count of closed frames, and of whether the wire falls idle unless one is closed after this operation."""
        closed, recent, is_low = Signal(range(FRAMES + 1)), Signal(2), Signal()
        m.d.comb += is_low.eq(emitter.backlog < operation_rows(self.config.data_width) + 6)
        m.d.sync += [
            closed.eq(closed + gatherer.closed - emitter.sent),
            recent.eq(Cat(gatherer.closed, recent)),  # frames that the backlog does not have yet
            gatherer.hungry.eq(is_low & ~gatherer.close & ~gatherer.closed & ~recent.any()),
            gatherer.may_open.eq((closed < FRAMES - 6) & sequence.ready),
        ]

    def _count(self, m: Module, gatherer: Gatherer, emitter: Emitter) -> None:
        """Let the counters follow, some clocks behind."""
        is_sent = delayed(m, "is_sent", emitter.sent, 2)
        for name, step in (
            ("frames", is_sent),
            ("operations", gatherer.operation_taken),
            ("bytes", Mux(is_sent, emitter.sent_bytes, 0)),
        ):
            m.d.sync += self.counters[name].eq(self.counters[name] + step)
