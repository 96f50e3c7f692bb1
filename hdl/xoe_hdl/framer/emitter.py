"""Sends gathered frames: puts headers, operations and CRC together, a beat every clock."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.config import check_choice
from xoe.wire import FRAME_MIN, VERSION, VLAN_TPIDS, FrameHeader, Kind

from ..crc import CRC_WIDTHS, LEAD_WORDS, WORD, HeaderCrc
from ..layouts import CFG, axis
from ..queues import OutputQueue
from ..wire import byte_swap, to_bus
from .gatherer import GATHERED
from .operation_input import WORDS_BITS
from .packer import lead_words
from .sequence import SEQUENCE_BITS

FRAMES = 16  # closed frames that can wait
PIECE = 4  # bytes: frames end on this grid
PIECE_BITS = WORDS_BITS + 1
BACKLOG_BITS = 13  # more than two of the largest frames, or FRAMES of the shortest
HEADER_BITS = LEAD_WORDS * WORD  # canonical alignment up to the operations
HEADER_PIECES, WORD_PIECES = HEADER_BITS // 8 // PIECE, WORD // 8 // PIECE
CUT_UNTAGGED, CUT_TAGGED = 4, 8  # bytes of a frame in front of canonical alignment
TAIL = CUT_TAGGED * 8

_WAITING = data.StructLayout(
    {
        "gathered": GATHERED,
        "seq": SEQUENCE_BITS,
        "last_piece": PIECE_BITS,
        "crc_piece": PIECE_BITS,
        "ends_at_once": 1,
        "has_crc_at_once": 1,
    }
)
"""A closed frame with the places, in pieces, of its end and, in canonical alignment, of its CRC.

Also, whether they are in the first beat.
"""

_STEP = data.StructLayout({"valid": 1, "first": 1, "last": 1, "has_row": 1, "has_crc": 1, "slot": 2, "is_head": 1})
"""What is known about a beat before it has any data. ``slot`` counts the beats that have the headers."""


class Emitter(wiring.Component):
    """Sends frames on ``m_axis``: a beat every clock, within a frame and from one frame to the next.

    A frame is announced by ``give`` with ``gathered``; its sequence number ``seq`` follows one clock later. Its first
    row must enter the store no later than in that next clock, each further one a clock later. It waits here for its
    turn. Rows are fetched in order: ``row`` belongs to the clock after ``fetch``. ``crc_done`` brings the operations'
    part of each frame's CRC in turn, that of a frame of one beat no later than four clocks after ``give``. All header
    fields are gathered in ``_headers``, in the clock after the frame was chosen to be sent.

    The pipeline is free-running from the choice of a beat to the queue at its end, where room is reserved beforehand:
    ``m_axis.ready`` low stops the choice once the queue is full. The first beat is there five clocks after ``give``.
    ``sent`` says that the last beat of a frame is chosen, ``sent_bytes`` two clocks later how long it is. ``backlog``
    is the number of beats of all frames announced that are not chosen; a frame counts from three clocks after ``give``.

    Args:
        width: bits of a beat.

    Raises:
        ConfigError: another width than the CRC has.
    """

    def __init__(self, width: int) -> None:
        check_choice("width", width, CRC_WIDTHS)
        self.width = width
        self._words, self._per_slot = width // WORD, exact_log2(width // 8 // PIECE)
        super().__init__(
            {
                "cfg": In(CFG),
                "give": In(1),
                "gathered": In(GATHERED),
                "seq": In(SEQUENCE_BITS),
                "fetch": Out(1),
                "row": In(width),
                "crc_done": In(1),
                "crc": In(32),
                "m_axis": Out(stream.Signature(axis(width))),
                "backlog": Out(BACKLOG_BITS),
                "sent": Out(1),
                "sent_bytes": Out(14),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Choose and fetch, put in front what goes there, fill in and shift: one clock each."""
        m = Module()
        m.submodules.queue = queue = OutputQueue(axis(self.width))
        step, frame = self._choose(m, queue)
        prefix, head, header_crc = self._headers(m, frame, step)

        # The store's output is slow, so it goes straight to registers.
        row, front, keep = Signal(self.width), Signal(len(head)), Signal(self.width // 8)
        column, marks = frame.crc_piece[1 : 1 + exact_log2(self._words)], Signal(self._words)
        m.d.sync += [
            row.eq(self.row),
            front.eq(head),
            keep.eq(self._keep(frame, step)),
            marks.eq(Cat(step.has_crc & (column == at) for at in range(self._words))),
        ]
        end = _later(m, step, "step_body")

        filled, tail = Signal(self.width), Signal(TAIL)
        crc = byte_swap(self._payload_crc(m, end) ^ header_crc)
        end_part = Cat(Cat(crc & mark.replicate(32), Const(0, 32)) for mark in marks)
        m.d.comb += filled.eq(row & end.has_row.replicate(self.width) | front | end_part)
        with m.If(step.valid & step.first):
            m.d.sync += tail.eq(prefix)
        with m.Elif(end.valid):
            m.d.sync += tail.eq(filled[-TAIL:])
        m.d.comb += [
            queue.give.eq(end.valid),
            queue.i.data.eq(Mux(self.cfg.tagged, Cat(tail, filled), Cat(tail[8 * CUT_UNTAGGED :], filled))),
            queue.i.keep.eq(keep),
            queue.i.last.eq(end.last),
        ]
        wiring.connect(m, queue.o, wiring.flipped(self.m_axis))
        return m

    def _choose(self, m: Module, queue: OutputQueue) -> tuple[data.View, data.View]:
        """The beat that was chosen a clock ago, and its frame."""
        frames, head, new_beats = self._wait(m)
        frame = Signal(_WAITING, name="frame")
        per_slot, words = self._per_slot, self._words
        head_slots = 0 if lead_words(words) else LEAD_WORDS // words
        slot, busy, has_row, chosen = Signal(PIECE_BITS), Signal(), Signal(init=head_slots == 0), Signal(_STEP)
        m.d.comb += [
            chosen.valid.eq(queue.room & (busy | frames.r_rdy)),
            chosen.first.eq(~busy),
            chosen.last.eq(Mux(busy, slot == frame.last_piece >> per_slot, head.ends_at_once)),
            chosen.has_row.eq(has_row),
            chosen.has_crc.eq(Mux(busy, slot == frame.crc_piece >> per_slot, head.has_crc_at_once)),
            chosen.slot.eq(slot),
            chosen.is_head.eq(slot < max(1, head_slots)),
            queue.start.eq(chosen.valid),
            self.fetch.eq(chosen.valid & chosen.has_row),
            self.sent.eq(chosen.valid & chosen.last),
            frames.r_en.eq(chosen.valid & ~busy),
        ]
        with m.If(chosen.valid):
            m.d.sync += [
                busy.eq(~chosen.last),
                slot.eq(Mux(chosen.last, 0, slot + 1)),
                has_row.eq(Mux(chosen.last, head_slots == 0, (slot + 1 == head_slots) | has_row & ~chosen.has_crc)),
            ]
            with m.If(~busy):
                m.d.sync += frame.eq(head)
        m.d.sync += self.backlog.eq(self.backlog + new_beats - chosen.valid)
        m.d.sync += self.sent_bytes.eq((frame.last_piece + 1) * PIECE)
        return _later(m, chosen, "step_fetch"), frame

    def _wait(self, m: Module) -> tuple[SyncFIFO, data.View, Signal]:
        """The queue of closed frames, the one at its head, and the beats of one that was queued a clock ago."""
        m.submodules.frames = frames = SyncFIFO(width=Shape.cast(_WAITING).width, depth=FRAMES)
        given, is_given, new_beats = Signal(_WAITING), Signal(), Signal(PIECE_BITS)
        m.d.sync += [
            is_given.eq(self.give),
            given.gathered.eq(self.gathered),
            given.crc_piece.eq(HEADER_PIECES + self.gathered.words * WORD_PIECES),
            given.last_piece.eq(Mux(self.cfg.tagged, self._last_piece(1), self._last_piece(0))),
            new_beats.eq(Mux(is_given, (given.last_piece >> self._per_slot) + 1, 0)),
        ]
        m.d.comb += [
            given.seq.eq(self.seq),
            given.ends_at_once.eq(given.last_piece >> self._per_slot == 0),
            given.has_crc_at_once.eq(given.crc_piece >> self._per_slot == 0),
            frames.w_data.eq(given),
            frames.w_en.eq(is_given),
        ]
        return frames, data.View(_WAITING, frames.r_data), new_beats

    def _last_piece(self, tag: int) -> Value:
        """The place of the end of a frame that has ``tag`` pieces of a tag, padding included."""
        before, pieces = HEADER_PIECES + CUT_UNTAGGED // PIECE + tag, self.gathered.words * WORD_PIECES
        least = FRAME_MIN // PIECE - 1
        return Mux(pieces < least - before, least, before + pieces)

    def _headers(self, m: Module, frame: data.View, step: data.View) -> tuple[Value, Value, Value]:
        """What stands in front of the operations: the part before canonical alignment, the beat's share of the rest.

        The third is the frame header's part of the CRC, one clock later.
        """
        cfg, route = self.cfg, frame.gathered.route
        fields = {
            "version": Const(VERSION, 4),
            "kind": Const(Kind.DATA, 4),
            "traffic_class": route.traffic_class,
            "ect": cfg.ect,
            "dst_node": route.node,
            "src_node": cfg.node,
            "dst_qp": route.remote_qp,
            "src_qp": route.local_qp,
            "epoch": cfg.epoch,
            "seq": frame.seq,
            "length": Cat(Const(0, 3), frame.gathered.words),
        }
        header = to_bus(FrameHeader, fields)
        m.submodules.header_crc = header_crc = HeaderCrc()
        m.d.comb += header_crc.header.eq(header)

        addresses = [byte_swap(route.mac), byte_swap(cfg.mac)]
        tag = [byte_swap(Const(VLAN_TPIDS[0], 16)), byte_swap(Cat(cfg.vid, Const(0, 1), cfg.pcp[route.traffic_class]))]
        untagged = Cat(*addresses, byte_swap(cfg.ethertype))
        tagged = Cat(*addresses, *tag, byte_swap(cfg.ethertype))
        cut, cut_tagged = 8 * CUT_UNTAGGED, 8 * CUT_TAGGED
        prefix = Mux(cfg.tagged, tagged[:cut_tagged], Cat(Const(0, TAIL - cut), untagged[:cut]))
        lead = Cat(Mux(cfg.tagged, tagged[cut_tagged:], untagged[cut:]), header)
        share = lead if self.width >= HEADER_BITS else lead.word_select(step.slot, self.width)
        return prefix, share & step.is_head.replicate(len(share)), header_crc.crc

    def _keep(self, frame: data.View, step: data.View) -> Value:
        """Which bytes of the beat are the frame's."""
        pieces = self.width // 8 // PIECE
        last = frame.last_piece[: exact_log2(pieces)]
        return Cat((~step.last | (at <= last)).replicate(PIECE) for at in range(pieces))

    def _payload_crc(self, m: Module, step: data.View) -> Value:
        """The operations' part of the CRC of the frame that needs one now; it may have come this very clock."""
        m.submodules.crcs = crcs = SyncFIFO(width=32, depth=FRAMES)
        takes = step.valid & step.has_crc
        m.d.comb += [
            crcs.w_data.eq(self.crc),
            crcs.w_en.eq(self.crc_done & (crcs.r_rdy | ~takes)),
            crcs.r_en.eq(takes),
        ]
        return Mux(crcs.r_rdy, crcs.r_data, self.crc)


def _later(m: Module, step: data.View, name: str) -> data.View:
    late = Signal(_STEP, name=name)
    m.d.sync += late.eq(step)
    return late
