"""Sends gathered frames: puts headers, operations and CRC together, a beat every clock."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.config import check_choice
from xoe.cyclic import CREDIT_BITS, EPOCH_BITS, SEQ_BITS
from xoe.wire import FRAME_MIN, VERSION, VLAN_TPIDS, FrameHeader

from ..crc import CRC_WIDTHS, LEAD_WORDS, WORD, HeaderCrc
from ..delay import delayed
from ..layouts import CFG, MAC_BITS, NODE_BITS, QP_BITS, axis
from ..queues import OutputQueue
from ..transport.page_store import segment
from ..wire import byte_swap, to_bus
from .operation_input import WORDS_BITS
from .packer import lead_words

FRAMES = 8  # that can wait
PIECE = 4  # bytes: frames end on this grid
PIECE_BITS = WORDS_BITS + 1
BACKLOG_BITS = 13  # more than two of the largest frames, or FRAMES of the shortest
HEADER_BITS = LEAD_WORDS * WORD  # canonical alignment up to the operations
HEADER_PIECES, WORD_PIECES = HEADER_BITS // 8 // PIECE, WORD // 8 // PIECE
CUT_UNTAGGED, CUT_TAGGED = 4, 8  # bytes of a frame in front of canonical alignment
TAIL = CUT_TAGGED * 8

HEADER = data.StructLayout(
    {
        "kind": 4,
        "traffic_class": 3,
        "ack_valid": 1,
        "credit_valid": 1,
        "nack": 1,
        "dst_node": NODE_BITS,
        "dst_qp": QP_BITS,
        "src_qp": QP_BITS,
        "epoch": EPOCH_BITS,
        "src_epoch": EPOCH_BITS,
        "seq": SEQ_BITS,
        "ack": SEQ_BITS,
        "credit_class": 3,
        "credit": CREDIT_BITS,
    }
)
"""What a frame header says of its frame."""


def job(pages: int) -> data.StructLayout:
    """A frame to be sent: where to, its header, and where its rows are; ``crc`` is that of its operations.

    Unless it ``is_kept``, nobody needs it any more when it is sent.
    """
    return data.StructLayout(
        {
            "mac": MAC_BITS,
            "header": HEADER,
            "words": WORDS_BITS,
            "crc": 32,
            "segment": segment(pages),
            "is_kept": 1,
        }
    )


def _waiting(pages: int) -> data.StructLayout:
    """A job with the places, in pieces, of its frame's end and, in canonical alignment, of its CRC.

    Also, whether they are in the first beat.
    """
    places = {"last_piece": PIECE_BITS, "crc_piece": PIECE_BITS, "ends_at_once": 1, "has_crc_at_once": 1}
    return data.StructLayout({"job": job(pages), **places})


_STEP = data.StructLayout({"valid": 1, "first": 1, "last": 1, "has_row": 1, "has_crc": 1, "slot": 2, "is_head": 1})
"""What is known about a beat before it has any data. ``slot`` counts the beats that have the headers."""


class Emitter(wiring.Component):
    """Sends frames on ``m_axis``: a beat every clock, within a frame and from one frame to the next.

    ``jobs`` are taken while fewer than ``FRAMES`` wait. Rows are fetched as from a ``PageStore``: ``row`` belongs to
    the clock after ``fetch``. All header fields are gathered in ``_headers``, in the clock after the frame was chosen
    to be sent.

    The pipeline is free-running from the choice of a beat to the queue at its end, where room is reserved beforehand:
    ``m_axis.ready`` low stops the choice once the queue is full. The first beat is there five clocks after its job was
    taken. ``sent`` says that the last beat of a frame was chosen, and so its last row fetched; one clock later
    ``sent_bytes`` is how long it is. ``backlog`` is the number of beats of all frames taken that are not chosen; a
    frame counts from two clocks after it was taken.

    Args:
        width: bits of a beat.
        pages: of the store.

    Raises:
        ConfigError: another width than the CRC has.
    """

    def __init__(self, width: int, pages: int) -> None:
        check_choice("width", width, CRC_WIDTHS)
        self.width = width
        self._waiting = _waiting(pages)
        self._words, self._per_slot = width // WORD, exact_log2(width // 8 // PIECE)
        super().__init__(
            {
                "cfg": In(CFG),
                "jobs": In(stream.Signature(job(pages))),
                "fetch": Out(1),
                "fetch_first": Out(1),
                "fetch_page": Out(range(pages)),
                "row": In(width),
                "m_axis": Out(stream.Signature(axis(width))),
                "backlog": Out(BACKLOG_BITS),
                "sent": Out(data.StructLayout({"valid": 1, "is_kept": 1, "segment": segment(pages)})),
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
        payload_crc = delayed(m, "payload_crc", frame.job.crc, 1)
        crc = byte_swap(payload_crc ^ header_crc)
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
        frame = Signal(self._waiting, name="frame")
        per_slot, words = self._per_slot, self._words
        head_slots = 0 if lead_words(words) else LEAD_WORDS // words
        is_fresh = Signal(init=1)  # no row of the frame was fetched yet
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
            self.fetch_first.eq(is_fresh),
            self.fetch_page.eq(Mux(busy, frame.job.segment.first, head.job.segment.first)),
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
        with m.If(self.fetch):
            m.d.sync += is_fresh.eq(0)
        with m.If(chosen.valid & chosen.last):
            m.d.sync += is_fresh.eq(1)
        step = _later(m, chosen, "step_fetch")
        m.d.sync += self.backlog.eq(self.backlog + new_beats - chosen.valid)
        m.d.sync += self.sent_bytes.eq((frame.last_piece + 1) * PIECE)
        m.d.comb += [
            self.sent.valid.eq(step.valid & step.last),
            self.sent.is_kept.eq(frame.job.is_kept),
            self.sent.segment.eq(frame.job.segment),
        ]
        return step, frame

    def _wait(self, m: Module) -> tuple[SyncFIFO, data.View, Signal]:
        """The queue of frames, the one at its head, and the beats of one that was queued a clock ago."""
        m.submodules.frames = frames = SyncFIFO(width=Shape.cast(self._waiting).width, depth=FRAMES)
        given, is_given, new_beats, words = Signal(self._waiting), Signal(), Signal(PIECE_BITS), self.jobs.payload.words
        m.d.comb += self.jobs.ready.eq(frames.w_level < FRAMES - 1)  # one may be on its way
        m.d.sync += [
            is_given.eq(self.jobs.valid & self.jobs.ready),
            given.job.eq(self.jobs.payload),
            given.crc_piece.eq(HEADER_PIECES + words * WORD_PIECES),
            given.last_piece.eq(Mux(self.cfg.tagged, self._last_piece(words, 1), self._last_piece(words, 0))),
            new_beats.eq(Mux(is_given, (given.last_piece >> self._per_slot) + 1, 0)),
        ]
        m.d.comb += [
            given.ends_at_once.eq(given.last_piece >> self._per_slot == 0),
            given.has_crc_at_once.eq(given.crc_piece >> self._per_slot == 0),
            frames.w_data.eq(given),
            frames.w_en.eq(is_given),
        ]
        return frames, data.View(self._waiting, frames.r_data), new_beats

    def _last_piece(self, words: Value, tag: int) -> Value:
        """The place of the end of a frame that has ``tag`` pieces of a tag, padding included."""
        before, pieces = HEADER_PIECES + CUT_UNTAGGED // PIECE + tag, words * WORD_PIECES
        least = FRAME_MIN // PIECE - 1
        return Mux(pieces < least - before, least, before + pieces)

    def _headers(self, m: Module, frame: data.View, step: data.View) -> tuple[Value, Value, Value]:
        """What stands in front of the operations: the part before canonical alignment, the beat's share of the rest.

        The third is the frame header's part of the CRC, one clock later.
        """
        cfg, given = self.cfg, frame.job.header
        fields = {name: given[name] for name in HEADER.members} | {
            "version": Const(VERSION, 4),
            "ect": cfg.ect,
            "src_node": cfg.node,
            "length": Cat(Const(0, 3), frame.job.words),
        }
        header = to_bus(FrameHeader, fields)
        m.submodules.header_crc = header_crc = HeaderCrc()
        m.d.comb += header_crc.header.eq(header)

        addresses = [byte_swap(frame.job.mac), byte_swap(cfg.mac)]
        tag = [byte_swap(Const(VLAN_TPIDS[0], 16)), byte_swap(Cat(cfg.vid, Const(0, 1), cfg.pcp[given.traffic_class]))]
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


def _later(m: Module, step: data.View, name: str) -> data.View:
    late = Signal(_STEP, name=name)
    m.d.sync += late.eq(step)
    return late
