"""Tells ours, PAUSE and PFC, and everything else apart by the EtherType, behind up to two VLAN tags."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from xoe.config import DATA_WIDTHS, check_choice
from xoe.frame import MAX_TAGS
from xoe.wire import ETHERNET_HEADER, MAC_CONTROL_ETHERTYPE, VLAN_TAG, VLAN_TPIDS

from ..layouts import MAC_BITS, axis
from ..wire import byte_swap

INDEXED_BYTES = 1 << 15
TYPE_OFFSETS = tuple(ETHERNET_HEADER - 2 + VLAN_TAG * tags for tags in range(MAX_TAGS + 1))


class FrameClass(enum.Enum, shape=2):
    """Whose frame it is."""

    HOST = 0  # somebody else's, 802.3 length frames among them
    CONTROL = 1  # PAUSE or PFC
    OURS = 2
    RUNT = 3  # ends before its EtherType


def lookahead(width: int) -> int:
    """Beats that hold all that a frame is told by."""
    return (8 * (TYPE_OFFSETS[-1] + 2) - 1) // width + 1


def beat_index(width: int) -> range:
    """Number of a beat in its frame; stays at the last value, which is past the end of what any header says."""
    return range(8 * INDEXED_BYTES // width)


def classified_beat(width: int) -> data.StructLayout:
    """A beat and what is known of its frame.

    ``frame_class`` and ``tags`` (0..2) are the same on all beats of a frame; ``count`` is the number of bytes in the
    beat; ``following`` is the data of the frame's next beat, if there is one.
    """
    return data.StructLayout(
        {
            "beat": axis(width),
            "following": width,
            "count": range(width // 8 + 1),
            "index": beat_index(width),
            "first": 1,
            "frame_class": FrameClass,
            "tags": range(MAX_TAGS + 1),
        }
    )


def _types(width: int) -> data.StructLayout:
    """What the two bytes at an offset where an EtherType may be are."""
    return data.StructLayout({"is_there": 1, "is_tag": 1, "is_ours": 1, "is_control": 1})


def _frame(width: int) -> data.StructLayout:
    """What is known of the frame of the oldest beat: ``classes`` has its class for each number of tags."""
    tags = range(MAX_TAGS + 1)
    classes = data.ArrayLayout(FrameClass, len(tags))
    return data.StructLayout({"first": 1, "index": beat_index(width), "tags": tags, "classes": classes})


class Classifier(wiring.Component):
    """Holds the first beats of a frame (3 at 64 bits, 2 at 128, 1 above) until they say what it is.

    Takes a beat in every clock in which ``i_valid`` is high; gives one for each, in order, while ``o_valid`` is high.
    A beat leaves when a later beat comes, or when its frame is whole; so the last beat of a frame leaves ``lookahead``
    clocks after it came, whatever follows. There is no back-pressure.

    ``addresses`` (destination in the low 48 bits, both in bus order) and ``is_to_us`` (the destination is ``mac``) are
    registers, valid from the clock after a frame's first beat left until the one after its last did.
    """

    def __init__(self, width: int) -> None:
        check_choice("width", width, DATA_WIDTHS)
        self.width = width
        self.lookahead = lookahead(width)
        super().__init__(
            {
                "i_valid": In(1),
                "i": In(axis(width)),
                "ethertype": In(16),
                "mac": In(MAC_BITS),
                "o_valid": Out(1),
                "o": Out(classified_beat(width)),
                "addresses": Out(2 * MAC_BITS),
                "is_to_us": Out(1),
            }
        )
        self._offsets = sorted({offset % (width // 8) for offset in TYPE_OFFSETS})
        self._held = data.StructLayout(
            {
                "beat": axis(width),
                "count": range(width // 8 + 1),
                "types": data.StructLayout({f"at_{offset}": _types(width) for offset in self._offsets}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A shift register of beats that stands still in the gaps inside a frame."""
        m = Module()
        is_open = Signal()  # the newest beat is not its frame's last
        moves = Signal()
        m.d.comb += moves.eq(self.i_valid | ~is_open)
        with m.If(self.i_valid):
            m.d.sync += is_open.eq(~self.i.last)

        newest = Signal(self._held)
        self._look_at_input(m, newest)
        line, valid = [newest], [self.i_valid]
        for stage in range(self.lookahead):
            line.append(Signal(self._held, name=f"line_{stage}"))
            valid.append(Signal(name=f"line_valid_{stage}"))
            with m.If(moves):
                m.d.sync += [line[-1].eq(line[-2]), valid[-1].eq(valid[-2])]
        frame = self._follow_frame(m, moves, moves & valid[-2], line[-2::-1])
        m.d.comb += [
            self.o_valid.eq(moves & valid[-1]),
            self.o.beat.eq(line[-1].beat),
            self.o.count.eq(line[-1].count),
            self.o.following.eq(line[-2].beat.data),
            self.o.first.eq(frame.first),
            self.o.index.eq(frame.index),
            self.o.tags.eq(frame.tags),
            self.o.frame_class.eq(frame.classes[frame.tags]),
        ]
        with m.If(frame.first):  # taken anew until the beat leaves: whether it does is known late
            addresses = Cat(beat.beat.data for beat in line[:0:-1])[: 2 * MAC_BITS]
            m.d.sync += self.addresses.eq(addresses)
            m.d.sync += self.is_to_us.eq(byte_swap(addresses[:MAC_BITS]) == self.mac)
        return m

    def _look_at_input(self, m: Module, newest: data.View) -> None:
        m.d.comb += [newest.beat.eq(self.i), newest.count.eq(_count_bytes(self.i.keep))]
        for offset in self._offsets:
            value = byte_swap(self.i.data[8 * offset : 8 * offset + 16])
            m.d.comb += newest.types[f"at_{offset}"].eq(
                Cat(
                    ~self.i.last | self.i.keep[offset + 1],
                    (value == VLAN_TPIDS[0]) | (value == VLAN_TPIDS[1]),
                    value == self.ethertype,
                    value == MAC_CONTROL_ETHERTYPE,
                )
            )

    def _types_of(self, beats: list[data.View]) -> list[tuple[Value, data.View]]:
        """For each place of an EtherType: whether the frame reaches it, and what is there; ``beats`` oldest first."""
        found = []
        for offset in TYPE_OFFSETS:
            number, offset_in_beat = divmod(offset, self.width // 8)
            types = beats[number].types[f"at_{offset_in_beat}"]
            is_there = types.is_there & ~Cat(beat.beat.last for beat in beats[:number]).any()
            found.append((is_there, types))
        return found

    def _count_tags(self, beats: list[data.View]) -> Value:
        """Number of tags of a frame that begins at the first of these beats."""
        (has_outer, outer), (has_inner, inner), _ = self._types_of(beats)
        is_tagged = has_outer & outer.is_tag
        is_twice = is_tagged & has_inner & inner.is_tag
        return Cat(is_tagged & ~is_twice, is_twice)

    def _classes(self, beats: list[data.View]) -> list[Value]:
        """The frame's class for each number of tags that it may have."""
        classes = []
        for tags, (is_there, types) in enumerate(self._types_of(beats)):
            frame_class = Mux(types.is_ours, FrameClass.OURS, FrameClass.HOST)
            if tags == 0:  # MAC control frames are never tagged
                frame_class = Mux(types.is_control, FrameClass.CONTROL, frame_class)
            classes.append(Mux(is_there, frame_class, FrameClass.RUNT))
        return classes

    def _follow_frame(self, m: Module, moves: Value, enters: Value, beats: list[data.View]) -> data.View:
        """What is known of a frame, found when its first of ``beats`` becomes the oldest, and kept to its last."""
        is_first = Signal(init=1)  # what becomes the oldest next is a frame's first
        frame = Signal(_frame(self.width))
        with m.If(moves):
            m.d.sync += frame.first.eq(is_first)
            with m.If(is_first):
                m.d.sync += [frame.tags.eq(self._count_tags(beats)), frame.index.eq(0)]
                m.d.sync += frame.classes.eq(Cat(self._classes(beats)))
            with m.Elif(frame.index != beat_index(self.width)[-1]):
                m.d.sync += frame.index.eq(frame.index + 1)
        with m.If(enters):
            m.d.sync += is_first.eq(beats[0].beat.last)
        return frame


def _count_bytes(keep: Value) -> Value:
    """Number of ones in a run of them that begins at bit 0."""
    size = len(keep)
    ends = Cat(keep, 0)
    return Cat(
        Cat(ends[at] & ~ends[min(at + step, size)] for at in range(step - 1, size, 2 * step)).any()
        for step in (1 << bit for bit in range(size.bit_length()))
    )
