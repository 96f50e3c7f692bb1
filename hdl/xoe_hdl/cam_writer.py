"""The CAM's write port: checks a page against all others and lays it into a row that is not in use."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from xoe.cam import PAGE_LOG2_MAX, PAGE_LOG2_MIN, CamError

from .delay import delayed
from .layouts import ADDRESS_SPACE_BITS
from .memories import NO_COLLISION

INDEX_BITS = 8  # the largest CAM has 256 entries
LEVEL_BITS = 5  # log2 of the page size, counted from the smallest page
KEY_BITS = 64 - PAGE_LOG2_MIN + ADDRESS_SPACE_BITS
MASK_BITS = PAGE_LOG2_MAX - PAGE_LOG2_MIN  # the low bits of the key, which a large page leaves out
CHUNK = 4  # bits of the key that one memory of the match array takes as its address
CHUNKS = KEY_BITS // CHUNK
GROUP = 4  # rows that are written together: with CHUNK, the 16 x 4 memories of FPGAs

WRITTEN = data.StructLayout({"valid": 1, "error": CamError})
"""Outcome of a write, valid for one clock."""

FILL = data.ArrayLayout(GROUP, CHUNKS)
"""What one clock writes to the match array: for each chunk, a bit for each row of the group."""

_COPY = data.StructLayout({"key": KEY_BITS, "mask": MASK_BITS, "index": INDEX_BITS})


def write_layout(payload: data.Layout) -> data.StructLayout:
    """A write: entry ``index`` becomes this page or, with ``valid`` 0, invalid."""
    page = {"space": ADDRESS_SPACE_BITS, "address": 64, "size_log2": 5, "payload": payload}
    return data.StructLayout({"index": INDEX_BITS, "valid": 1, **page})


def page_key(space: ValueLike, address: ValueLike) -> Value:
    """What is compared: the address above the smallest page, then the space."""
    return Cat(Value.cast(address)[PAGE_LOG2_MIN:], space)


def page_mask(level: ValueLike) -> Value:
    """The bits of the key that lie inside a page of that level."""
    return Cat(Value.cast(level) > bit for bit in range(MASK_BITS))


def chain(m: Module, name: str, value: Value, clocks: int) -> list[Value]:
    """``value`` as it was 1, 2, ... ``clocks`` clocks ago."""
    stages = [value]
    for clock in range(clocks):
        stages.append(delayed(m, f"{name}_{clock}", stages[-1], 1))
    return stages[1:]


class CamWriter(wiring.Component):
    """Write port of a ``Cam`` of ``entries`` entries, which has one row more than that.

    A page goes into a free row, which no look-up sees; then one clock makes that row valid and the entry's old row
    free. The steps of a write:

    * SCAN reads a copy of each row: is there an overlap, which is the entry's old row, which row is free?
    * STORE decides; the page goes to the free row's copy and payload.
    * FILL works out, for each value of a chunk of the key, which of the four rows of the free row's group match, and
      writes that to the match array: 16 values x 4 rows.
    * COMMIT.

    A write takes ``entries + 76`` clocks, a refused one or an invalidation ``entries + 8``, from the clock in which it
    is taken to the first in which another can be. A reset drops the write under way and makes every entry invalid.

    Ports besides ``write`` and ``written`` (valid in the clock of the commit), all of them to the look-up:

    * ``valid``: rows in use.
    * ``free``: the row being written, one bit set; ``row``: its number.
    * ``store``: ``entry`` and ``level`` (log2 of its page size above the smallest) go to that row.
    * ``fill``, ``fill_value``, ``fill_bits``: groups whose match array is written, at which value of the chunks.
    """

    def __init__(self, entries: int, payload: data.Layout) -> None:
        self.entries = entries
        self.rows = entries + 1
        self.groups = -(-self.rows // GROUP)
        self.has_base = "base" in dict(payload)
        super().__init__(
            {
                "write": In(stream.Signature(write_layout(payload))),
                "written": Out(WRITTEN),
                "valid": Out(self.rows),
                "free": Out(self.rows),
                "row": Out(range(self.groups * GROUP)),
                "store": Out(1),
                "entry": Out(write_layout(payload)),
                "level": Out(LEVEL_BITS),
                "fill": Out(self.groups),
                "fill_value": Out(CHUNK),
                "fill_bits": Out(FILL),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A counter reads the rows' copies; what is read flows through the stages of scan or fill."""
        m = Module()
        step = Signal(range(max(self.rows, GROUP << CHUNK)))
        begin, in_scan, in_fill = Signal(), Signal(), Signal()
        new, seen = self._copies(m, Mux(in_fill, Cat(step[:2], self.row[2:]), step))
        step_1, step_2 = chain(m, "step", step, 2)
        scan_1, scan_2, scan_3 = chain(m, "in_scan", in_scan, 3)
        fill_1, fill_2, fill_3 = chain(m, "in_fill", in_fill, 3)
        valid_1, _, valid_3 = chain(m, "row_valid", self.valid.bit_select(step, 1), 3)
        self._find_free(m, begin, scan_1 & ~valid_1, scan_1, step_1)
        overlap, old = self._compare(m, begin, valid_3, scan_3, new, seen)
        self._fill(m, fill_2, step_2, seen)
        is_drained = ~(scan_1 | scan_2 | scan_3 | fill_1 | fill_2 | fill_3)
        self._control(m, (begin, in_scan, in_fill), step, is_drained, self._judge(m, overlap))
        with m.If(self.written.valid & (self.written.error == CamError.OK)):
            m.d.sync += self.valid.eq(self.valid & ~old | self.free & self.entry.valid.replicate(self.rows))
        return m

    def _control(
        self, m: Module, steps: tuple[Signal, Signal, Signal], step: Signal, is_drained: Value, verdict: Value
    ) -> None:
        """The sequence of the steps."""
        begin, in_scan, in_fill = steps
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [self.write.ready.eq(1), begin.eq(1)]
                m.d.sync += [self.entry.eq(self.write.payload), step.eq(0)]
                with m.If(self.write.valid):
                    m.next = "SCAN"
            with m.State("SCAN"):
                m.d.comb += in_scan.eq(1)
                m.d.sync += step.eq(step + 1)
                with m.If(step == self.rows - 1):
                    m.d.sync += step.eq(0)
                    m.next = "SETTLE"
            with m.State("SETTLE"), m.If(is_drained):
                m.next = "STORE"
            with m.State("STORE"):
                m.d.comb += self.store.eq(1)  # harmless if the page is refused: the row stays free
                m.next = "COMMIT"
                with m.If(self.entry.valid & (verdict == CamError.OK)):
                    m.next = "FILL"
            with m.State("FILL"):
                m.d.comb += in_fill.eq(1)
                m.d.sync += step.eq(step + 1)
                with m.If(step == (GROUP << CHUNK) - 1):
                    m.next = "FINISH"
            with m.State("FINISH"), m.If(is_drained):
                m.next = "COMMIT"
            with m.State("COMMIT"):
                m.d.comb += self.written.valid.eq(1)
                m.next = "IDLE"

    def _copies(self, m: Module, address: Value) -> tuple[data.View, data.View]:
        """The new page, and two clocks later the copy of the row at ``address``; ``store`` writes the copy."""
        memory = Memory(shape=_COPY, depth=self.groups * GROUP, init=[], attrs=NO_COLLISION)
        m.submodules.copies = copies = memory
        read, write = copies.read_port(), copies.write_port()
        new, seen = Signal(_COPY), Signal(_COPY)
        m.d.sync += [self.level.eq(self.entry.size_log2 - PAGE_LOG2_MIN), seen.eq(read.data)]
        m.d.comb += [
            new.key.eq(page_key(self.entry.space, self.entry.address)),
            new.mask.eq(page_mask(self.level)),
            new.index.eq(self.entry.index),
            read.addr.eq(address),
            write.addr.eq(self.row),
            write.data.eq(new),
            write.en.eq(self.store),
        ]
        return new, seen

    def _find_free(self, m: Module, begin: Value, is_free: Value, is_scan: Value, row: Value) -> None:
        """Mark the first free row. There always is one, for there are more rows than entries."""
        is_found = Signal()
        take = is_free & ~is_found
        with m.If(begin):
            m.d.sync += is_found.eq(0)
        with m.If(is_scan):
            m.d.sync += self.free.eq(Cat(self.free[1:], take))
        with m.If(take):
            m.d.sync += [is_found.eq(1), self.row.eq(row)]

    def _compare(
        self, m: Module, begin: Value, is_valid: Value, is_scan: Value, new: data.View, seen: data.View
    ) -> tuple[Signal, Signal]:
        """Whether another entry overlaps the new one, and its old row: one bit set, or none."""
        overlap, old = Signal(), Signal(self.rows)
        same_low, same_high, same_entry = Signal(), Signal(), Signal()
        m.d.sync += [
            same_low.eq(((new.key ^ seen.key)[:MASK_BITS] & ~(new.mask | seen.mask)) == 0),
            same_high.eq(new.key[MASK_BITS:] == seen.key[MASK_BITS:]),
            same_entry.eq(new.index == seen.index),
        ]
        with m.If(begin):
            m.d.sync += overlap.eq(0)
        with m.If(is_scan):
            m.d.sync += old.eq(Cat(old[1:], is_valid & same_entry))
            with m.If(is_valid & same_low & same_high & ~same_entry):
                m.d.sync += overlap.eq(1)
        return overlap, old

    def _judge(self, m: Module, overlap: Value) -> Signal:
        """The write's outcome, settled by the time of STORE."""
        inside = Cat(Value.cast((1 << PAGE_LOG2_MIN) - 1), page_mask(self.level))
        has_size, is_aligned = Signal(), Signal()
        lowest = self.entry.address | self.entry.payload.base if self.has_base else self.entry.address
        m.d.sync += [
            has_size.eq((self.entry.size_log2 >= PAGE_LOG2_MIN) & (self.entry.size_log2 <= PAGE_LOG2_MAX)),
            is_aligned.eq((lowest & inside) == 0),
        ]
        verdict = Signal(CamError)
        with m.If(self.entry.index >= self.entries):
            m.d.comb += verdict.eq(CamError.BAD_INDEX)
        with m.Elif(self.entry.valid & ~has_size):
            m.d.comb += verdict.eq(CamError.BAD_SIZE)
        with m.Elif(self.entry.valid & ~is_aligned):
            m.d.comb += verdict.eq(CamError.MISALIGNED)
        with m.Elif(self.entry.valid & overlap):
            m.d.comb += verdict.eq(CamError.OVERLAP)
        m.d.sync += self.written.error.eq(verdict)
        return verdict

    def _fill(self, m: Module, is_fill: Value, step: Value, seen: data.View) -> None:
        """Gather which rows of the group match a value of the chunks, a row a clock, then write that."""
        value, mask = step[2 : 2 + CHUNK], Signal(KEY_BITS)
        m.d.comb += mask.eq(seen.mask)
        for chunk in range(CHUNKS):
            differs = (seen.key.word_select(chunk, CHUNK) ^ value) & ~mask.word_select(chunk, CHUNK)
            m.d.sync += self.fill_bits[chunk].eq(Cat(self.fill_bits[chunk][1:], differs == 0))
        is_last = is_fill & (step[:2] == GROUP - 1)
        m.d.sync += [
            self.fill_value.eq(value),
            self.fill.eq(Cat(is_last & (self.row[2:] == group) for group in range(self.groups))),
        ]
