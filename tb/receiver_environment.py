"""What stands around the receiving end: its models, a buffer of pages, and what is expected at every port."""

from __future__ import annotations

from collections import Counter, deque
from random import Random
from typing import Any

import cocotb
from amaranth.lib import data
from cocotb.triggers import RisingEdge

from receiver_reference import CLASSES, Frame, Reference
from xoe.cyclic import CREDIT_BITS, SEQ_BITS, after
from xoe_hdl.transport import receive_layouts as layouts
from xoe_hdl.transport.layouts import qp_bits
from xoe_hdl.transport.page_store import segment
from xoe_tb import Beat, StreamSink, StreamSource, never, pack, reset, start, unpack

SHOWN_CLOCKS = 3  # from the clock in which a port is driven to that in which the answer is read
INPUTS = ("arrivals", "reconcile", "report", "shut", "open", "freed")


class Sink(StreamSink):
    """Gives each payload to a function, in the clock in which it is taken."""

    def __init__(self, dut: Any, name: str, layout: data.Layout, take: Any) -> None:
        super().__init__(dut, name)
        self._layout, self._take = layout, take

    def _on_beat(self, beat: Beat) -> None:
        self._take(unpack(self._layout, beat.data))


class Environment(Reference):
    """Drives the ports and checks them; each event is given to the models in the clock in which it is taken."""

    def __init__(self, dut: Any, parameters: dict[str, Any]) -> None:
        self.dut, self.rng = dut, Random(cocotb.RANDOM_SEED)
        super().__init__(parameters)
        self.edge = RisingEdge(dut.clk)
        bits = qp_bits(self.queue_pairs)
        self.layouts = {
            "arrivals": layouts.arrival_layout(bits, self.pages),
            "reconcile": layouts.reconcile_layout(bits),
            "report": layouts.qp_layout(bits),
            "shut": layouts.qp_layout(bits),
            "open": layouts.open_layout(bits),
            "freed": layouts.freed_layout(bits),
        }
        self.sources = {name: StreamSource(dut, name) for name in INPUTS}
        delivery = layouts.delivery_layout(bits, self.pages)
        self.sinks = {
            "requests": Sink(dut, "requests", delivery, lambda found: self._on_delivery(found, self.requests)),
            "responses": Sink(dut, "responses", delivery, lambda found: self._on_delivery(found, self.responses)),
            "free": Sink(dut, "free", segment(self.pages), self._on_free),
            "reported": Sink(dut, "reported", layouts.reported_layout(bits, self.window), self._on_reported),
            "owe": Sink(dut, "owe", layouts.owe_layout(bits), self._on_owe),
        }
        self.asks_at_random = True
        self.frees_late = never()  # says in which clocks no frame leaves the buffer
        self.counts: Counter[str] = Counter()
        self.dut.cfg_go_back_n.value = 0
        for port in ("shown_qp", "shown_class", "drained_qp"):
            getattr(dut, port).value = 0

    def forget(self) -> None:
        super().forget()
        self.offered: dict[str, deque[Any]] = {name: deque() for name in INPUTS}
        self._shown: deque[tuple[int, int] | None] = deque([None] * SHOWN_CLOCKS)

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._run())
        cocotb.start_soon(self._let_leave())

    async def reset(self) -> None:
        self.dut.rst.value = 1
        await self.edge
        self.forget()
        await reset(self.dut)

    # ------------------------------------------------------------------ what goes in

    def send(self, port: str, fields: dict[str, int], item: Any = None) -> None:
        self.offered[port].append((fields, item))
        self.sources[port].send(pack(self.layouts[port], fields))

    def open(self, qp: int, **fields: int) -> None:
        rng, link = self.rng, self.links[qp]
        values = {
            "epoch": after(link.epoch, 1, 8),
            "seq": rng.choice(((1 << SEQ_BITS) - 3, 0, rng.getrandbits(SEQ_BITS))),
            "credits": rng.choice(((1 << CREDIT_BITS) - 3, 0, rng.getrandbits(CREDIT_BITS))),
            "window": rng.choice((self.window, rng.randint(1, self.window))),
        }
        self.send("open", {"qp": qp, **values, **fields})

    def shut(self, qp: int) -> None:
        self.shutting.add(qp)
        self.send("shut", {"qp": qp})

    def arrive(self, qp: int, seq: int, traffic_class: int = 0, words: int = 4, **fields: int) -> Frame | None:
        """Store a frame, if there are pages, and offer it."""
        count = min(self.rng.randint(1, 3), len(self.free_pages))
        if not count:
            return None
        pages = [self.free_pages.pop(self.rng.randrange(len(self.free_pages))) for _ in range(count)]
        frame = Frame(qp, fields.get("epoch", self.links[qp].epoch), traffic_class, words, pages)
        common = frame.fields("qp", "epoch", "traffic_class", "words", "segment")
        self.send("arrivals", {**common, "seq": seq % (1 << SEQ_BITS)}, frame)
        return frame

    async def taken(self, *ports: str) -> None:
        """Wait until all that was offered to some ports is taken."""
        while any(self.offered[port] for port in ports):
            await self.edge

    async def _let_leave(self) -> None:
        while True:
            await self.edge
            if self.to_leave and not next(self.frees_late) and len(self.offered["freed"]) < 2:
                frame = self.to_leave.popleft()
                self.send("freed", frame.fields("qp", "epoch", "traffic_class", "words"), frame)

    # ------------------------------------------------------------------ what the models say

    async def _run(self) -> None:
        """Give the models each event, in the clock in which it is taken."""
        dut = self.dut
        ports = [(name, getattr(dut, f"{name}_tvalid"), getattr(dut, f"{name}_tready")) for name in INPUTS]
        while True:
            await self.edge
            if dut.rst.value == 1:
                continue
            if dut.reported_tvalid.value == 1 and not self._is_told:
                self._tell()
            elif dut.reported_tvalid.value == 0:
                self._is_told = False
            self._check_shown()
            for name, valid, ready in ports:
                if valid.value == 1 and ready.value == 1:
                    self.counts[name] += 1
                    getattr(self, f"_on_{name}")(*self.offered[name].popleft())

    def _check_shown(self) -> None:
        """What is shown was so once; whether it is so now is looked at when all is quiet."""
        if not self.asks_at_random:
            return
        asked = self._shown.popleft()
        if asked is not None and (link := self.links[asked[0]]).is_open:
            expected, freed = (getattr(self.dut, port).value.to_unsigned() for port in ("expected", "shown"))
            assert expected in link.seen or asked[0] in self.shutting
            assert freed in link.seen_credits
        asked = self.rng.randrange(self.queue_pairs), self.rng.randrange(CLASSES)
        self.dut.shown_qp.value, self.dut.shown_class.value = asked
        self._shown.append(asked)
        if self.offered["open"]:  # neither the old nor the new
            self._shown = deque([None] * SHOWN_CLOCKS)

    # ------------------------------------------------------------------ when all is quiet

    @property
    def is_quiet(self) -> bool:
        waits = (*self.offered.values(), self.requests, self.responses, self.to_free, self.to_leave, self.reports)
        return not any(waits) and not any(self.owes.values())

    async def settle(self) -> None:
        """Wait until nothing is under way, and compare all that can be seen then."""
        while not self.is_quiet:
            await self.edge
        for _ in range(30):
            await self.edge
        assert self.is_quiet
        for name in ("new", "duplicate", "outside", "out_of_order", "stale", "reconciled"):
            value = getattr(self.dut, f"counters_{name}").value.to_unsigned()
            assert value == self.counters[name] % (1 << self.counter_width), name
        for qp in range(self.queue_pairs):
            await self._compare(qp)

    async def _compare(self, qp: int) -> None:
        dut, link = self.dut, self.links[qp]
        self.asks_at_random = False
        dut.drained_qp.value = dut.shown_qp.value = qp
        for traffic_class in range(CLASSES):
            dut.shown_class.value = traffic_class
            for _ in range(SHOWN_CLOCKS):
                await self.edge
            if link.is_open:
                assert dut.expected.value.to_unsigned() == link.receiver.expected
                assert dut.shown.value.to_unsigned() == link.credits[traffic_class].freed
        assert dut.is_drained.value == (link.delivered == 0)
        self._shown = deque([None] * SHOWN_CLOCKS)
        self.asks_at_random = True
