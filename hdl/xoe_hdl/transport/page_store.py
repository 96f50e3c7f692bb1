"""A memory for frames of any length, which are read and freed in any order."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.config import check_choice, check_range

from ..delay import delayed
from ..memories import NO_COLLISION
from ..queues import Queue

WIDTH_MAX = 1024
POWERS = tuple(1 << bits for bits in range(2, 13))  # 4..4096
ROWS = POWERS[:7]
QUEUE_CLOCKS = 2  # fewer by one than a page needs through the queue: the level is a register, which adds one


def segment(pages: int) -> data.StructLayout:
    """Where a frame lies in a store of ``pages`` pages: its first page, its last one, and how many it has."""
    page = range(pages)
    return data.StructLayout({"first": page, "last": page, "pages": range(pages + 1)})


class PageStore(wiring.Component):
    """Holds frames in pages of block RAM; each frame has pages of its own, chained in any order.

    **Write.** ``write_valid`` brings a row, in any clock; ``write_last`` with it ends a frame, and the next row begins
    another. One clock after a frame's last row ``written_valid`` says in ``written`` where the frame lies. From that
    clock on it may be fetched and freed.

    Nothing is refused: ``room`` says that ``margin`` pages or more are free, and ``free`` how many are. Both count all
    that was written up to the clock before, so with ``room`` in a clock, ``margin`` pages may be begun from that clock
    on. A row that begins a page while none is free spoils the store until it is reset.

    **Read.** ``fetch`` with ``fetch_first`` fetches the first row of page ``fetch_page``; without, the row after the
    one fetched last, across the ends of pages. ``row`` has it one clock later, for that clock only, straight from
    block RAM. A fetch is possible in every clock. There is no row after a frame's last one: the next fetch must be a
    first one. A frame may be fetched any number of times.

    **Free.** ``give_back`` takes the segments of frames, of which it reads ``first`` and ``last``: a frame of n pages
    in 2n - 1 clocks, at one clock for a page. A page counts as free four clocks after it was given back. The last row
    of a frame must be fetched in the clock in which its segment is taken, or earlier.

    For ``pages`` clocks after a reset, during which no page is given back, ``free`` rises by one a clock.

    Args:
        width: bits of a row, 1..1024.
        rows: of a page, a power of two from 4 to 256.
        pages: a power of two from 4 to 4096.
        margin: pages that may be begun while ``room`` is seen, 1..pages.

    Raises:
        ConfigError: a parameter out of bounds.
    """

    def __init__(self, width: int, rows: int, pages: int, margin: int) -> None:
        check_range("width", width, 1, WIDTH_MAX)
        check_choice("rows", rows, ROWS)
        check_choice("pages", pages, POWERS)
        check_range("margin", margin, 1, pages)
        self.width, self.rows, self.pages, self.margin = width, rows, pages, margin
        self._row_bits, self._page_bits = exact_log2(rows), exact_log2(pages)
        super().__init__(
            {
                "write_valid": In(1),
                "write_data": In(width),
                "write_last": In(1),
                "written_valid": Out(1),
                "written": Out(segment(pages)),
                "room": Out(1),
                "free": Out(range(pages + 1)),
                "fetch": In(1),
                "fetch_first": In(1),
                "fetch_page": In(range(pages)),
                "row": Out(width),
                "give_back": In(stream.Signature(segment(pages))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The rows; the chain, which has for each page the one behind it; the queue of free pages."""
        m = Module()
        page = self._page_bits
        depth = self.rows * self.pages
        m.submodules.store = store = memory.Memory(shape=self.width, depth=depth, init=[], attrs=NO_COLLISION)
        m.submodules.chain = chain = memory.Memory(shape=page, depth=self.pages, init=[], attrs=NO_COLLISION)
        m.submodules.queue = queue = Queue(page, self.pages)
        begins = self._write(m, store.write_port(), chain.write_port(), queue)
        self._read(m, store.read_port(), chain.read_port())
        self._collect(m, chain.read_port(), queue)
        self._count(m, begins, queue)
        return m

    def _write(self, m: Module, store: memory.WritePort, chain: memory.WritePort, queue: Queue) -> Value:
        """Write rows to the page at the head of the queue, and take it when it is done; whether one is begun.

        Each page is chained to the one before. Behind a frame's last page that is one of another frame, but nobody goes
        on from there.
        """
        page, offset, ends = queue.o.payload, Signal(self._row_bits), Signal()
        is_fresh, is_first = Signal(init=1), Signal(init=1)  # the next row begins a page, is of a frame's first page
        first, before, count = Signal(self._page_bits), Signal(self._page_bits), Signal(range(self.pages + 1), init=1)
        m.d.comb += [
            store.addr.eq(Cat(offset, page)),
            store.data.eq(self.write_data),
            store.en.eq(self.write_valid),
            chain.addr.eq(before),
            chain.data.eq(page),
            chain.en.eq(self.write_valid & is_fresh),
            ends.eq(self.write_last | (offset == self.rows - 1)),
            queue.o.ready.eq(self.write_valid & ends),
        ]
        m.d.sync += [
            self.written_valid.eq(self.write_valid & self.write_last),
            self.written.first.eq(Mux(is_first, page, first)),
            self.written.last.eq(page),
            self.written.pages.eq(count),
        ]
        with m.If(self.write_valid):
            m.d.sync += [offset.eq(Mux(ends, 0, offset + 1)), is_fresh.eq(ends), before.eq(page)]
            with m.If(is_first):
                m.d.sync += first.eq(page)
            with m.If(self.write_last):
                m.d.sync += [is_first.eq(1), count.eq(1)]
            with m.Elif(ends):
                m.d.sync += [is_first.eq(0), count.eq(count + 1)]
        return self.write_valid & is_fresh

    def _read(self, m: Module, store: memory.ReadPort, chain: memory.ReadPort) -> None:
        """Fetch rows.

        The chain is read all the time at the page of the next row. What it gives is in a register two clocks after a
        page's first row was fetched, and is needed when the fourth row is, or a later one.
        """
        page, offset, behind = Signal(self._page_bits), Signal(self._row_bits), Signal(self._page_bits)
        m.d.comb += [
            store.en.eq(1),
            store.addr.eq(Mux(self.fetch_first, Cat(Const(0, self._row_bits), self.fetch_page), Cat(offset, page))),
            self.row.eq(store.data),
            chain.en.eq(1),
            chain.addr.eq(page),
        ]
        m.d.sync += behind.eq(chain.data)
        with m.If(self.fetch & self.fetch_first):
            m.d.sync += [page.eq(self.fetch_page), offset.eq(1)]
        with m.Elif(self.fetch):
            m.d.sync += offset.eq(offset + 1)
            with m.If(offset == self.rows - 1):
                m.d.sync += page.eq(behind)

    def _collect(self, m: Module, chain: memory.ReadPort, queue: Queue) -> None:
        """Queue the pages of segments, and after a reset all pages, whenever there is nothing else to queue."""
        i = self.give_back
        page, last, walks, is_read = Signal(self._page_bits), Signal(self._page_bits), Signal(), Signal()
        is_freed, freed, made = Signal(), Signal(self._page_bits), Signal(range(self.pages + 1))
        is_made = made[-1]
        m.d.comb += [
            i.ready.eq(~walks),
            chain.en.eq(1),
            chain.addr.eq(Mux(walks, page, i.payload.first)),
            queue.i.valid.eq(is_freed | ~is_made),
            queue.i.payload.eq(Mux(is_freed, freed, made)),
        ]
        m.d.sync += [
            is_freed.eq(Mux(walks, ~is_read, i.valid)),
            freed.eq(Mux(walks, page, i.payload.first)),
            is_read.eq(~walks | ~is_read),
            made.eq(made + (~is_freed & ~is_made)),
        ]
        with m.If(~walks):
            m.d.sync += [walks.eq(i.valid & (i.payload.first != i.payload.last)), last.eq(i.payload.last)]
        with m.Elif(is_read):
            m.d.sync += page.eq(chain.data)
        with m.Else():
            m.d.sync += walks.eq(page != last)

    def _count(self, m: Module, begins: Value, queue: Queue) -> None:
        """Count the pages that are at hand: those that have had the time to come through the queue."""
        comes = delayed(m, "comes", queue.i.valid, QUEUE_CLOCKS)
        with m.If(comes & ~begins):
            m.d.sync += self.free.eq(self.free + 1)
            with m.If(self.free == self.margin - 1):
                m.d.sync += self.room.eq(1)
        with m.Elif(begins & ~comes):
            m.d.sync += self.free.eq(self.free - 1)
            with m.If(self.free == self.margin):
                m.d.sync += self.room.eq(0)
