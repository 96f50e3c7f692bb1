"""The masked CAM: fully associative, a page size of its own for each entry. Model: ``xoe.cam``."""

from __future__ import annotations

from functools import reduce
from operator import and_

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.cam import ENTRIES_MAX, PAGE_LOG2_MIN
from xoe.config import check_range

from .cam_writer import (
    CHUNK,
    CHUNKS,
    GROUP,
    INDEX_BITS,
    LEVEL_BITS,
    MASK_BITS,
    WRITTEN,
    CamWriter,
    page_key,
    page_mask,
    write_layout,
)
from .delay import delayed
from .layouts import ADDRESS_SPACE_BITS, LENGTH_BITS
from .memories import NO_COLLISION

LOOKUP = data.StructLayout({"valid": 1, "address": 64, "space": ADDRESS_SPACE_BITS, "length": LENGTH_BITS})
"""A look-up of ``length`` bytes at ``address`` of ``space``."""


def result_layout(payload: data.Layout) -> data.StructLayout:
    """What a look-up found, see ``xoe.cam.Result``; without ``hit``, the members after it mean nothing."""
    found = {"hit": 1, "crosses": 1, "index": INDEX_BITS, "address": 64, "payload": payload}
    return data.StructLayout({"valid": 1, **found})


class Cam(wiring.Component):
    """A CAM of ``entries`` pages, 1..256, all invalid after reset.

    The match array is made of small memories: each takes four bits of the key as its address and tells, for each row,
    whether the row's page agrees with them. So a row costs a fraction of a comparator, and page sizes cost nothing.
    What this makes slow is writing, see ``CamWriter``.

    Ports:

    * ``lookup``, ``result``: one look-up a clock, without back-pressure; the result comes ``latency`` (4) clocks later.
    * ``write``: one write at a time; ready is low while it is worked on.
    * ``written``: the outcome of each write taken, in order. Look-ups given in the clock of ``written`` or later see
      the new entry, all earlier ones the old, whole in both cases. A refused write changes nothing.

    Args:
        entries: how many pages.
        payload: what is kept for each; ``base``, if it has one, is the 64-bit address that the page is mapped to.

    Raises:
        ConfigError: ``entries`` out of bounds.
    """

    latency = 4

    def __init__(self, entries: int, payload: data.StructLayout) -> None:
        check_range("entries", entries, 1, ENTRIES_MAX)
        self.entries = entries
        self.payload = payload
        super().__init__(
            {
                "lookup": In(LOOKUP),
                "result": Out(result_layout(payload)),
                "write": In(stream.Signature(write_layout(payload))),
                "written": Out(WRITTEN),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Key, match, row and payload, result: each a clock."""
        m = Module()
        m.submodules.writer = writer = CamWriter(self.entries, self.payload)
        connect(m, flipped(self.write), writer.write)
        m.d.comb += self.written.eq(writer.written)

        key, match = Signal(LOOKUP), Signal(writer.rows)
        m.d.sync += [key.eq(self.lookup), match.eq(self._match(m, writer, key))]
        at_match, at_row = delayed(m, "match_key", key, 1), delayed(m, "row_key", key, 2)
        ends = self._ends(m, key, at_match.address)
        hit, level, index, payload = self._read(m, writer, match)

        offset_mask = Cat(Value.cast((1 << PAGE_LOG2_MIN) - 1), page_mask(level))
        has_base = "base" in dict(self.payload)
        m.d.sync += [
            self.result.valid.eq(at_row.valid),
            self.result.hit.eq(hit),
            self.result.crosses.eq(ends.bit_select(level, 1)),
            self.result.index.eq(index),
            self.result.address.eq(payload.base | at_row.address & offset_mask if has_base else at_row.address),
            self.result.payload.eq(payload),
        ]
        return m

    def _match(self, m: Module, writer: CamWriter, key: data.View) -> Value:
        """Which rows match, one at the most. The one place where a look-up meets a commit."""
        bits = page_key(key.space, key.address)
        agreed = []
        for chunk in range(CHUNKS):
            shape = GROUP * writer.groups
            m.submodules[f"match_{chunk}"] = memory = Memory(shape=shape, depth=1 << CHUNK, init=[])
            read, write = memory.read_port(domain="comb"), memory.write_port(granularity=GROUP)
            m.d.comb += [
                read.addr.eq(bits.word_select(chunk, CHUNK)),
                write.addr.eq(writer.fill_value),
                write.data.eq(writer.fill_bits[chunk].replicate(writer.groups)),
                write.en.eq(writer.fill),
            ]
            agreed.append(read.data)
        return writer.valid & reduce(and_, agreed)

    def _ends(self, m: Module, key: data.View, address: Value) -> Signal:
        """Whether the access passes the end of a page of each level, two clocks after ``key``."""
        passes, ends = Signal(), Signal(MASK_BITS + 1)
        m.d.sync += passes.eq(key.address[:PAGE_LOG2_MIN] + key.length > 1 << PAGE_LOG2_MIN)
        above = address[PAGE_LOG2_MIN:]
        m.d.sync += ends.eq(Cat(passes & above[:level].all() for level in range(MASK_BITS + 1)))
        return ends

    def _read(self, m: Module, writer: CamWriter, match: Signal) -> tuple[Value, Value, Value, data.View]:
        """Hit, page level, entry and payload of the row that matches, a clock after ``match``."""
        kept = data.StructLayout({"index": INDEX_BITS, "payload": self.payload})
        # No collision: a row is written only while no look-up can match it.
        memory = Memory(shape=kept, depth=GROUP * writer.groups, init=[], attrs=NO_COLLISION)
        m.submodules.payloads = memory
        read, write = memory.read_port(), memory.write_port()
        m.d.comb += [
            write.addr.eq(writer.row),
            write.data.index.eq(writer.entry.index),
            write.data.payload.eq(writer.entry.payload),
            write.en.eq(writer.store),
        ]
        for bit in range(len(read.addr)):
            m.d.comb += read.addr[bit].eq(Cat(match[row] for row in range(writer.rows) if row >> bit & 1).any())

        # The page's level doesn't wait for the memory: the result takes more logic from it than a slow memory leaves.
        hit, level, chosen = Signal(), Signal(LEVEL_BITS), []
        for row in range(writer.rows):
            row_level = Signal(LEVEL_BITS, name=f"level_{row}")
            with m.If(writer.store & writer.free[row]):
                m.d.sync += row_level.eq(writer.level)
            chosen.append(row_level & match[row].replicate(LEVEL_BITS))
        m.d.sync += hit.eq(match.any())
        for bit in range(LEVEL_BITS):
            m.d.sync += level[bit].eq(Cat(value[bit] for value in chosen).any())
        return hit, level, read.data.index, read.data.payload
