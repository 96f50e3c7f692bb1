"""The page store's rows: what is fetched is what was written, and never while it is written."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.utils import exact_log2

from ..harness import Harness
from ..proof import Proof
from .page_store import PAGE, PAGES, AnyQueue, each_page

ROWS = 4
OFFSET = range(ROWS)


class Rows(Harness):
    """The store, and beside it where the rows of each frame are, and what was written there.

    All that is taken from the proof of ``page_store`` is that a page is begun only when no frame has it. So the queue
    offers any such page, and one that is given back may be begun again at once.
    """

    def __init__(self, store: Any) -> None:
        super().__init__()
        self.store, self.module = store, store.elaborate(None)
        store.elaborate = lambda platform: self.module
        self.queue = self.module.submodules.queue
        self.page = self.queue.o.payload
        # The frame that is being written, its first page, the one written to last, the next row's place in its page.
        self.is_inside, self.first, self.before = Signal(), Signal(PAGE), Signal(PAGE)
        self.offset = Signal(OFFSET)
        # For each page: whether a frame has it, which is whole; its first page, whether and which page follows.
        self.is_held, self.is_whole, self.owner = each_page("is_held", 2), each_page("is_whole", 2), each_page("owner")
        self.goes_on, self.behind = each_page("goes_on", 2), each_page("behind", reset_less=True)
        # What is fetched next: whether it is known, and where it is.
        self.is_known, self.at_page, self.at_offset = Signal(), Signal(PAGE), Signal(OFFSET)
        self.begins, self.ends, self.returns = Signal(), Signal(), Signal()
        self.given = self.anything("given", self.page)

    def build(self, m: Module) -> None:
        """The store, its surroundings, the model, the property and the lemmas."""
        m.submodules.store = self.store
        self._offer_pages(m)
        self._write(m)
        for page in PAGE:
            self._follow(m, page)
        self._fetch(m)
        self._describe()

    def _offer_pages(self, m: Module) -> None:
        queue, kept, waits = self.queue, Signal(PAGE), Signal()
        m.d.comb += queue.says_valid.eq(self.anything("says_valid", waits))
        m.d.comb += queue.says.eq(self.anything("says", kept))
        m.d.sync += [waits.eq(queue.o.valid & ~queue.o.ready), kept.eq(queue.o.payload)]
        self.assume(~queue.o.valid | (self.offset != 0) | ~self.is_held[queue.o.payload])
        self.assume(~waits | (queue.o.valid & (queue.o.payload == kept)))

    def _write(self, m: Module) -> None:
        """Rows in any clock, but for pages that are not at hand; frames go back that are whole."""
        store, is_valid, first, given = self.store, Signal(), Signal(PAGE), self.given
        is_last, data = self.anything("is_last", is_valid), self.anything("data", self.store.write_data)
        m.d.comb += [
            is_valid.eq(self.anything("writes", is_valid) & self.queue.o.valid),
            store.write_valid.eq(is_valid),
            store.write_last.eq(is_last),
            store.write_data.eq(data),
            self.begins.eq(is_valid & (self.offset == 0)),
            self.ends.eq(is_valid & is_last),
            self.returns.eq(self.anything("gives", is_valid) & self.is_whole[given] & (self.owner[given] == given)),
            first.eq(Mux(self.is_inside, self.first, self.page)),
        ]
        with m.If(is_valid):
            m.d.sync += [self.offset.eq(Mux(is_last, 0, self.offset + 1)), self.is_inside.eq(~is_last)]
            m.d.sync += [self.first.eq(first), self.before.eq(self.page)]
        with m.If(self.begins):
            m.d.sync += [self.behind[self.before].eq(self.page), self.is_held[self.page].eq(1)]
            m.d.sync += [self.owner[self.page].eq(first), self.goes_on[self.page].eq(0)]
            with m.If(self.is_inside):
                m.d.sync += self.goes_on[self.before].eq(1)

    def _follow(self, m: Module, page: int) -> None:
        """When a page becomes part of a whole frame, and when it is given back with it."""
        is_of_frame = self.is_inside & self.is_held[page] & (self.owner[page] == self.first)
        with m.If(self.ends & (is_of_frame | (self.page == page))):
            m.d.sync += self.is_whole[page].eq(1)
        with m.If(self.returns & self.is_whole[page] & (self.owner[page] == self.given)):
            m.d.sync += [self.is_whole[page].eq(0), self.is_held[page].eq(0)]

    def _fetch(self, m: Module) -> None:
        """Anything in any clock; what is known is what begins in a whole frame and does not pass its end."""
        store, memory = self.store, self.module.submodules.store
        for name in ("fetch", "fetch_first", "fetch_page"):
            port = getattr(store, name)
            m.d.comb += port.eq(self.anything(name, port))
        page, offset, is_known, row = Signal(PAGE), Signal(OFFSET), Signal(), Signal(exact_log2(PAGES * ROWS))
        m.d.comb += [
            page.eq(Mux(store.fetch_first, store.fetch_page, self.at_page)),
            offset.eq(Mux(store.fetch_first, 0, self.at_offset)),
            is_known.eq(Mux(store.fetch_first, self.is_whole[page], self.is_known)),
            row.eq(Cat(offset, page)),
        ]
        is_end, is_returned = offset == ROWS - 1, self.returns & (self.owner[page] == self.given)
        with m.If(store.fetch):
            m.d.sync += self.is_known.eq(is_known & (~is_end | self.goes_on[page]) & ~is_returned)
            m.d.sync += [self.at_page.eq(Mux(is_end, self.behind[page], page)), self.at_offset.eq(offset + 1)]
        with m.Elif(self.returns & (self.owner[self.at_page] == self.given)):
            m.d.sync += self.is_known.eq(0)
        is_due, read, write = Signal(), memory.read_ports[0], memory.write_ports[0]
        m.d.comb += is_due.eq(store.fetch & is_known)
        self.check("fetched_from_its_place", ~is_due | (read.addr == row))
        self.check("not_while_written", ~(is_due & write.en) | (write.addr != row))
        self._describe_reader(m, read.addr)
        self._compare(m, is_due, row)

    def _compare(self, m: Module, is_due: Value, row: Value) -> None:
        """All rows, as they were written last."""
        written = Array(Signal(name=f"row_{number}", reset_less=True) for number in range(ROWS * PAGES))
        was_due, expected = Signal(), Signal()
        m.d.sync += [was_due.eq(is_due), expected.eq(written[row])]
        with m.If(self.store.write_valid):
            m.d.sync += written[Cat(self.offset, self.page)].eq(self.store.write_data)
        self.check("fetched_as_written", ~was_due | (self.store.row == expected))

    def _describe_reader(self, m: Module, address: Value) -> None:
        """It knows the page behind its own two clocks after it came there."""
        chain, store = self.module.submodules.chain.read_ports[0], self.store
        page, age, behind = self.at_page, Signal(range(3)), Signal(PAGE)
        turns = store.fetch & (store.fetch_first | (self.at_offset == ROWS - 1))
        m.d.sync += [behind.eq(chain.data), age.eq(Mux(turns, 0, Mux(age == 2, 2, age + 1)))]
        is_here = address == Cat(self.at_offset, page)
        self.check("reader_is_here", ~self.is_known | (chain.addr == page) & (store.fetch_first | is_here))
        self.check("reader_has_time", ~self.is_known | (age + 1 >= self.at_offset))
        goes_on = self.is_known & self.goes_on[page]
        self.check("reader_reads", ~(goes_on & (age > 0)) | (chain.data == self.behind[page]))
        self.check("reader_knows", ~(goes_on & (age > 1)) | (behind == self.behind[page]))

    def _describe(self) -> None:
        first, before, page = self.first, self.before, self.page
        frame = self.is_held[first] & ~self.is_whole[first] & (self.owner[first] == first)
        end = self.is_held[before] & ~self.is_whole[before] & (self.owner[before] == first) & ~self.goes_on[before]
        self.check("frame_in_the_making", ~self.is_inside | (frame & end))
        at_hand = self.is_inside & self.queue.o.valid & (before == page)
        self.check("page_in_the_making", (self.offset == 0) | at_hand)
        self.check("known_is_whole", ~self.is_known | self.is_whole[self.at_page])
        for each in PAGE:
            is_held, owner, behind = self.is_held[each], self.owner[each], self.behind[each]
            is_next = self.is_held[behind] & (self.owner[behind] == owner)
            is_next &= self.is_whole[behind] == self.is_whole[each]
            self.check(f"next_{each}", ~(is_held & self.goes_on[each]) | is_next)
            is_partial = ~is_held | (self.is_inside & (owner == first))
            self.check(f"whole_{each}", Mux(self.is_whole[each], is_held, is_partial))


PAGE_STORE_ROWS = Proof(
    "page_store_rows",
    "a row that is fetched is the one that was written, and is not fetched while any is written in its place",
    "xoe_hdl.transport.page_store:PageStore",
    lambda block: Rows(block(1, ROWS, PAGES, margin=1)),
    (
        ("page.eq(behind)", "page.eq(page)"),
        ("chain.data.eq(page)", "chain.data.eq(before)"),
        ("with m.If(self.fetch & self.fetch_first):", "with m.If(self.fetch_first):"),
        ("offset.eq(Mux(ends, 0, offset + 1))", "offset.eq(offset + 1)"),
    ),
    stand_ins={"Queue": AnyQueue},
)
