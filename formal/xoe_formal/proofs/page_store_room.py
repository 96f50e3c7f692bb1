"""The page store's ``room``: whoever begins no more pages than it allows finds one at hand for every row."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value

from ..harness import Harness
from ..proof import Change, Proof

PAGES = 4
ROWS = 2  # of a page, as in ``page_store``


class Room(Harness):
    """The store, a writer that begins its margin of pages after it last saw room, and anything at all given back.

    All that is taken from the proof of ``page_store`` is that no more pages are in the queue than there are.
    """

    def __init__(self, store: Any) -> None:
        super().__init__()
        store.rows, store._row_bits = ROWS, ROWS.bit_length() - 1
        self.store, self.module = store, store.elaborate(None)
        store.elaborate = lambda platform: self.module
        self.queue = self.module.submodules.queue

    def build(self, m: Module) -> None:
        """Count the pages that are in the queue, besides the one that is being written."""
        m.submodules.store = store = self.store
        given = Value.cast(store.give_back.payload)
        m.d.comb += [
            store.give_back.valid.eq(self.anything("gives", store.give_back.valid)),
            given.eq(self.anything("given", given)),
        ]
        begins, is_fresh = self._write(m)
        i, inside, quiet = self.queue.i, Signal(range(PAGES + 2)), Signal(2)
        m.d.sync += inside.eq(inside + i.valid - begins)
        m.d.sync += quiet.eq(Mux(i.valid, 0, quiet + (quiet != 2)))
        self.assume(inside + ~is_fresh + i.valid <= PAGES)
        self.check("at_hand", ~store.write_valid | self.queue.o.valid)
        self.check("queue_is_ready", ~i.valid | i.ready)
        self.check("room", store.room == (store.free >= store.margin))
        self.check("free", store.free <= inside)
        self.check("counted_in_time", (quiet != 2) | i.valid | (store.free == inside))

    def _write(self, m: Module) -> tuple[Value, Value]:
        """Rows in any clock; says whether a page is begun, and whether none is under way."""
        store, is_fresh, is_valid = self.store, Signal(init=1), Signal()
        begins, credit, now = Signal(), Signal(range(store.margin + 1)), Signal(range(store.margin + 1))
        m.d.comb += [
            now.eq(Mux(store.room, store.margin, credit)),
            is_valid.eq(self.anything("writes", is_valid) & (~is_fresh | (now != 0))),
            store.write_valid.eq(is_valid),
            store.write_last.eq(self.anything("is_last", is_valid)),
            begins.eq(is_valid & is_fresh),
        ]
        m.d.sync += credit.eq(now - begins)
        with m.If(is_valid):
            m.d.sync += is_fresh.eq(~is_fresh | store.write_last)
        return begins, is_fresh


def _proof(margin: int, *broken: Change) -> Proof:
    return Proof(
        f"page_store_room_{margin}",
        f"pages that may be begun once room is seen ({margin}) are at hand; what comes back is counted in time",
        "xoe_hdl.transport.page_store:PageStore",
        lambda block: Room(block(1, 4, PAGES, margin)),
        broken,
    )


PAGE_STORE_ROOM = (
    _proof(
        1,
        ("QUEUE_CLOCKS = 2", "QUEUE_CLOCKS = 1"),
        ("QUEUE_CLOCKS = 2", "QUEUE_CLOCKS = 3"),
        ("with m.Elif(begins & ~comes):", "with m.Elif(begins):"),
    ),
    _proof(3, ("self.free == self.margin):", "self.free == self.margin - 1):")),
)
