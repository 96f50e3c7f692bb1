"""The page store: no page has two owners, and none is lost.

Most checks are lemmas: together they describe every state that can be reached, which the solver would not find out by
itself. They speak about a model of the store beside it, and compare it with the store at the ports of its parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth.hdl import Array, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..harness import Harness
from ..proof import Proof

PAGES = 4
ROWS = 2  # of a page: too few for the store's reader, which has no part in this; frames of many pages take less time
NEW, FREE, HELD, RETURNING = range(4)  # not queued since the reset, in the queue, a frame's, on the way to the queue
PAGE = range(PAGES)


class AnyQueue(wiring.Component):
    """Stands for the queue of free pages: it says whatever ``says_valid`` and ``says`` say."""

    def __init__(self, shape: ShapeLike, depth: int) -> None:
        ports = {"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))}
        super().__init__(ports | {"says_valid": In(1), "says": In(shape)})

    def elaborate(self, platform: object) -> Module:
        """Take everything."""
        m = Module()
        m.d.comb += [self.i.ready.eq(1), self.o.valid.eq(self.says_valid), self.o.payload.eq(self.says)]
        return m


class Ownership(Harness):
    """The store among those who use it, and what is known of every page.

    The queue may offer any page that was put in and not taken out, and keeps it until it is taken; the proof of
    ``Queue`` shows more than that.
    """

    def __init__(self, store: Any) -> None:
        super().__init__()
        store.rows, store._row_bits = ROWS, ROWS.bit_length() - 1
        self.store, self.module = store, store.elaborate(None)
        store.elaborate = lambda platform: self.module
        self.queue = self.module.submodules.queue
        self.page = self.queue.o.payload
        # The frame that is being written: whether there is one, its first page, the one written to last.
        self.is_fresh, self.is_inside = Signal(init=1), Signal()
        self.first, self.before = Signal(PAGE), Signal(PAGE)
        # For each page: where it is; whether it is in the queue, or at its head; its frame's first page, its place in
        # the frame, whether and which page follows. For a frame's first page: whether it is stored, its last page.
        self.state, self.is_queued = each_page("state", 4), each_page("is_queued", 2)
        self.owner, self.place = each_page("owner"), each_page("place")
        self.goes_on, self.behind = each_page("goes_on", 2), each_page("behind", reset_less=True)
        self.is_stored, self.last = each_page("is_stored", 2), each_page("last")
        # The walk along a frame that is given back: the page to be queued next, the last one, the frame.
        self.walks, self.is_read, self.clocks = Signal(), Signal(), Signal(3)
        self.next, self.walk_last, self.walk_first = Signal(PAGE), Signal(PAGE), Signal(PAGE)
        self.made = Signal(range(PAGES + 1))  # pages queued since the reset, each for the first time
        self.begins, self.ends, self.returns = Signal(), Signal(), Signal()  # ends: a frame did, a clock ago

    def build(self, m: Module) -> None:
        """The store, its surroundings, the model, the property and the lemmas."""
        m.submodules.store = self.store
        self._offer_pages(m)
        self._write(m)
        self._give_back(m)
        for page in PAGE:
            self._follow(m, page)
        queued = self.queue.i.payload
        is_due = (self.state[queued] == NEW) | (self.state[queued] == RETURNING)
        self.check("begun_only_when_free", ~self.begins | (self.state[self.page] == FREE))
        self.check("queued_only_when_due", ~self.queue.i.valid | (is_due & ~self.is_queued[queued]))
        self._describe_writer()
        self._describe_walk()
        for page in PAGE:
            self._describe_page(page)

    def _offer_pages(self, m: Module) -> None:
        queue, kept, waits = self.queue, Signal(PAGE), Signal()
        m.d.comb += queue.says_valid.eq(self.anything("says_valid", waits))
        m.d.comb += queue.says.eq(self.anything("says", kept))
        m.d.sync += [waits.eq(queue.o.valid & ~queue.o.ready), kept.eq(queue.o.payload)]
        self.assume(~queue.o.valid | self.is_queued[queue.o.payload])
        self.assume(~waits | (queue.o.valid & (queue.o.payload == kept)))

    def _write(self, m: Module) -> None:
        """Rows in any clock, but for pages that are not at hand."""
        store, is_valid, is_last, is_second = self.store, Signal(), self.anything("is_last", 0), Signal()
        ends, first = Signal(), Signal(PAGE)
        m.d.comb += [
            is_valid.eq(self.anything("writes", is_valid) & self.queue.o.valid),
            store.write_valid.eq(is_valid),
            store.write_last.eq(is_last),
            self.begins.eq(is_valid & self.is_fresh),
            ends.eq(is_last | is_second),
            first.eq(Mux(self.is_inside, self.first, self.page)),
        ]
        m.d.sync += self.ends.eq(is_valid & is_last)
        with m.If(is_valid):
            m.d.sync += [self.is_fresh.eq(ends), is_second.eq(~ends), self.is_inside.eq(~is_last)]
            m.d.sync += [self.first.eq(first), self.before.eq(self.page)]
            with m.If(is_last):
                m.d.sync += [self.is_stored[first].eq(1), self.last[first].eq(self.page)]
        with m.If(self.begins):
            m.d.sync += self.behind[self.before].eq(self.page)

    def _give_back(self, m: Module) -> None:
        """Any frame that is stored, and the walk along it."""
        given, first = self.store.give_back, self.anything("given", self.page)
        m.d.comb += [
            given.valid.eq(self.anything("gives", given.valid) & self.is_stored[first]),
            given.payload.first.eq(first),
            given.payload.last.eq(self.last[first]),
            self.returns.eq(given.valid & given.ready),
        ]
        with m.If(self.returns):
            m.d.sync += [self.is_stored[first].eq(0), self.walks.eq(first != self.last[first]), self.is_read.eq(1)]
            m.d.sync += [self.next.eq(self.behind[first]), self.walk_last.eq(self.last[first])]
            m.d.sync += [self.walk_first.eq(first), self.clocks.eq(0)]
        with m.Elif(self.walks):
            m.d.sync += [self.is_read.eq(~self.is_read), self.clocks.eq(self.clocks + 1)]
            with m.If(~self.is_read):
                m.d.sync += [self.walks.eq(self.next != self.walk_last), self.next.eq(self.behind[self.next])]

    def _follow(self, m: Module, page: int) -> None:
        """What becomes of one page."""
        state, queue = self.state[page], self.queue
        given = self.store.give_back.payload.first
        is_queued = queue.i.valid & (queue.i.payload == page)
        with m.If(is_queued):
            m.d.sync += [state.eq(FREE), self.is_queued[page].eq(1), self.made.eq(self.made + (state == NEW))]
        with m.Elif(queue.o.valid & queue.o.ready & (self.page == page)):
            m.d.sync += self.is_queued[page].eq(0)
        with m.If(self.begins & (self.page == page)):
            m.d.sync += [state.eq(HELD), self.owner[page].eq(Mux(self.is_inside, self.first, page))]
            m.d.sync += self.place[page].eq(Mux(self.is_inside, self.place[self.before] + 1, 0))
            m.d.sync += self.goes_on[page].eq(0)
        with m.Elif(self.returns & (state == HELD) & (self.owner[page] == given)):
            m.d.sync += state.eq(RETURNING)
        with m.If(self.begins & self.is_inside & (self.before == page)):
            m.d.sync += self.goes_on[page].eq(1)

    def _describe_writer(self) -> None:
        first, before, page, written = self.first, self.before, self.page, self.store.written
        is_right = (written.first == self.owner[before]) & (written.last == before)
        is_right &= written.pages == self.place[before] + 1
        self.check("reported", (self.store.written_valid == self.ends) & (~self.ends | is_right))
        frame = (self.state[first] == HELD) & (self.owner[first] == first) & ~self.is_stored[first]
        end = (self.state[before] == HELD) & (self.owner[before] == first) & ~self.goes_on[before]
        self.check("frame_in_the_making", ~self.is_inside | (frame & end))
        at_hand = self.queue.o.valid & self.is_queued[page] & (before == page)
        self.check("page_in_the_making", self.is_fresh | (self.is_inside & at_hand))

    def _describe_walk(self) -> None:
        """It gets on by a page in two clocks, which bounds the time that a page is on its way."""
        at, last, chain = self.next, self.walk_last, self.module.submodules.chain.read_ports[1]
        frame = (self.owner[at] == self.walk_first) & (self.owner[last] == self.walk_first) & ~self.goes_on[last]
        way = (self.state[at] == RETURNING) & (self.state[last] == RETURNING)
        places = (self.place[at] > 0) & (self.place[last] >= self.place[at])
        time = self.clocks + self.is_read == 2 * self.place[at] - 1
        self.check("walk", self.walks != self.store.give_back.ready)
        self.check("walk_frame", ~self.walks | (frame & way & places & time))
        self.check("walk_reads", ~(self.walks & self.is_read) | (chain.data == at))
        self.check("walk_is_at", ~(self.walks & ~self.is_read) | (chain.addr == at))

    def _describe_page(self, page: int) -> None:
        """No page is lost: a new one is queued next or later, a returning one now or by the walk."""
        state, owner, place, goes_on = (part[page] for part in (self.state, self.owner, self.place, self.goes_on))
        is_live, is_returning = (state == HELD) | (state == RETURNING), state == RETURNING
        is_now = self.queue.i.valid & (self.queue.i.payload == page)
        self.check(f"new_{page}", (state == NEW) == (page >= self.made))
        self.check(f"handed_out_{page}", (state != NEW) | self.queue.i.valid)
        is_walked = self.walks & (owner == self.walk_first) & (place >= self.place[self.next])
        self.check(f"returns_{page}", ~is_returning | is_now | is_walked)
        is_written_to = ~self.is_fresh & (self.page == page)
        self.check(f"queued_{page}", self.is_queued[page] == ((state == FREE) | is_written_to))
        for name, condition in self._frame(page):
            self.check(f"{name}_{page}", ~is_live | condition)
        is_end = (self.is_stored[owner] & (self.last[owner] == page)) | (self.is_inside & (self.before == page))
        is_walk_end = is_now | (self.walks & (self.walk_last == page) & (self.walk_first == owner))
        self.check(f"end_{page}", ~is_live | goes_on | Mux(is_returning, is_walk_end, is_end))

    def _frame(self, page: int) -> Iterator[tuple[str, Value]]:
        """How the pages of a frame hang together."""
        state, owner, place, behind = self.state, self.owner, self.place, self.behind[page]
        first, last = owner[page], self.last[page]
        is_next = (state[behind] == state[page]) & (owner[behind] == first) & (place[behind] == place[page] + 1)
        yield "next", ~self.goes_on[page] | is_next
        is_known = self.is_stored[first] | (self.is_inside & (self.first == first))
        yield "first", (state[page] == RETURNING) | ((state[first] == HELD) & (owner[first] == first) & is_known)
        yield "place", (place[page] == 0) == (first == page)
        is_last = (state[last] == HELD) & (owner[last] == page) & ~self.goes_on[last]
        yield "stored", ~self.is_stored[page] | ((state[page] == HELD) & (first == page) & is_last)
        for other in range(page):
            is_live = (state[other] == HELD) | (state[other] == RETURNING)
            yield f"apart_{other}", ~is_live | (owner[other] != first) | (place[other] != place[page])


def each_page(name: str, values: int = PAGES, reset_less: bool = False) -> Array:
    """A register for each page."""
    return Array(Signal(range(values), name=f"{name}_{page}", reset_less=reset_less) for page in PAGE)


PAGE_STORE = (
    Proof(
        "page_store",
        "no page has two owners, none is lost: begun only when free, queued only when given back, and then in time",
        "xoe_hdl.transport.page_store:PageStore",
        lambda block: Ownership(block(1, 4, PAGES, margin=1)),
        (
            ("walks.eq(page != last)", "walks.eq(0)"),
            ("is_freed.eq(Mux(walks, ~is_read, i.valid))", "is_freed.eq(Mux(walks, 1, i.valid))"),
            ("made.eq(made + (~is_freed & ~is_made))", "made.eq(made + ~is_made)"),
            ("chain.data.eq(page)", "chain.data.eq(before)"),
            ("ends.eq(self.write_last | (offset == self.rows - 1))", "ends.eq(offset == self.rows - 1)"),
            ("[is_first.eq(1), count.eq(1)]", "[is_first.eq(1)]"),
        ),
        stand_ins={"Queue": AnyQueue},
    ),
)
