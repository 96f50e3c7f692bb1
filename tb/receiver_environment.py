"""What stands around the receiving end: its models, a buffer of pages, and what is expected at every port."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from random import Random
from typing import Any

import cocotb
from amaranth.lib import data
from cocotb.triggers import RisingEdge

from xoe.credit import CreditReceiver, credits_needed
from xoe.cyclic import CREDIT_BITS, SEQ_BITS, after, distance
from xoe.receiver import Receiver, Verdict
from xoe_hdl.transport import receive_layouts as layouts
from xoe_tb import Beat, StreamSink, StreamSource, never, pack, reset, start, unpack

CLASSES = 3
SHOWN_CLOCKS = 3  # from the clock in which a port is driven to that in which the answer is read
INPUTS = ("arrivals", "reconcile", "report", "shut", "open", "freed")


@dataclasses.dataclass(eq=False)
class Frame:
    """A data frame in the buffer."""

    qp: int
    epoch: int
    traffic_class: int
    words: int
    pages: list[int]

    @property
    def segment(self) -> dict[str, int]:
        return {"first": self.pages[0], "last": self.pages[-1], "pages": len(self.pages)}

    def fields(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}


class Link:
    """A connection, as its models know it; ``present`` are the frames in the buffer, of all incarnations."""

    def __init__(self) -> None:
        self.is_open = False
        self.epoch = 0
        self.present = 0
        self.receiver: Receiver[Frame] = Receiver(1)
        self.credits = [CreditReceiver() for _ in range(CLASSES)]
        self.told = [0] * CLASSES
        self.seen: set[int] = set()  # every PSN that was expected, and
        self.seen_credits: set[int] = set()  # every count of credits freed
        self.dropped: set[Frame] = set()  # while it is being shut

    def open(self, fields: dict[str, int], go_back_n: bool) -> None:
        self.is_open, self.epoch = True, fields["epoch"]
        self.receiver = Receiver(fields["window"], fields["seq"], go_back_n)
        self.credits = [CreditReceiver(fields["credits"]) for _ in range(CLASSES)]
        self.told = [fields["credits"]] * CLASSES
        self.seen, self.seen_credits, self.dropped = {fields["seq"]}, {fields["credits"]}, set()


class Sink(StreamSink):
    """Gives each payload to a function, in the clock in which it is taken."""

    def __init__(self, dut: Any, name: str, layout: data.Layout, take: Any) -> None:
        super().__init__(dut, name)
        self._layout, self._take = layout, take

    def _on_beat(self, beat: Beat) -> None:
        self._take(unpack(self._layout, beat.data))


class Environment:
    """Drives the ports and checks them; each event is given to the models in the clock in which it is taken."""

    def __init__(self, dut: Any, parameters: dict[str, Any]) -> None:
        self.dut, self.rng = dut, Random(cocotb.RANDOM_SEED)
        self.queue_pairs, self.window, self.pages = (parameters[name] for name in ("queue_pairs", "window", "pages"))
        self.granted, self.credit_words = parameters["granted"], parameters["credit_words"]
        self.counter_width = parameters["counter_width"]
        self.edge = RisingEdge(dut.clk)
        bits = layouts.qp_bits(self.queue_pairs)
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
            "free": Sink(dut, "free", layouts.segment_layout(self.pages), self._on_free),
            "reported": Sink(dut, "reported", layouts.reported_layout(bits, self.window), self._on_reported),
            "owe": Sink(dut, "owe", layouts.owe_layout(bits), self._on_owe),
        }
        self.go_back_n = False
        self.asks_at_random = True
        self.frees_late = never()  # says in which clocks no frame leaves the buffer
        self.counts: Counter[str] = Counter()
        self.dut.cfg_go_back_n.value = 0
        for port in ("shown_qp", "shown_class", "drained_qp"):
            getattr(dut, port).value = 0
        self._forget()

    def _forget(self) -> None:
        self.links = [Link() for _ in range(self.queue_pairs)]
        self.requests: deque[Frame] = deque()
        self.responses: deque[Frame] = deque()
        self.to_free: set[Frame] = set()
        self.to_leave: deque[Frame] = deque()  # delivered
        self.owes: Counter[tuple[int, int]] = Counter()
        self.reports: deque[dict[str, Any]] = deque()
        self.offered: dict[str, deque[Any]] = {name: deque() for name in INPUTS}
        self.free_pages = list(range(self.pages))
        self.shutting: set[int] = set()
        self.counters = Counter[str]()
        self._is_told = False
        self._shown: deque[tuple[int, int] | None] = deque([None] * SHOWN_CLOCKS)
        self.reported: list[dict[str, Any]] = []

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._run())
        cocotb.start_soon(self._let_leave())

    async def reset(self) -> None:
        self.dut.rst.value = 1
        await self.edge
        self._forget()
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

    def _tell(self) -> None:
        """The counts of credit in a report are those of the clock before it is offered."""
        self._is_told = True
        report = self.reports[0]
        link = self.links[report["qp"]]
        report["freed"] = [credit.freed for credit in link.credits]
        link.told = list(report["freed"])

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

    def _on_arrivals(self, fields: dict[str, int], frame: Frame) -> None:
        link = self.links[frame.qp]
        if not link.is_open or frame.epoch != link.epoch:
            self.counters["stale"] += 1
            self.to_free.add(frame)
            return
        receiver = link.receiver
        was_expected = fields["seq"] == receiver.expected
        verdict = receiver.receive(fields["seq"], frame)
        self.counters[verdict.name.lower()] += 1
        if verdict is not Verdict.NEW:
            self.to_free.add(frame)
        else:
            link.present += 1
            if frame.traffic_class < CLASSES:
                link.credits[frame.traffic_class].accept(self.needed(frame))
        before = receiver.expected
        for steps, each in enumerate(receiver.deliver(), 1):
            (self.responses if each.traffic_class == 1 else self.requests).append(each)
            link.seen.add(after(before, steps, SEQ_BITS))
        urgent = verdict is not Verdict.NEW or not was_expected or bool(receiver.held)
        self.owes[frame.qp, int(urgent)] += 1

    def needed(self, frame: Frame) -> int:
        return credits_needed(frame.words * 8, self.credit_words * 8)

    def _on_reconcile(self, fields: dict[str, int], _: None) -> None:
        link, traffic_class = self.links[fields["qp"]], fields["traffic_class"]
        if not link.is_open or fields["epoch"] != link.epoch or traffic_class >= CLASSES:
            return
        if fields["seq"] == link.receiver.expected and not link.receiver.held:
            credit = link.credits[traffic_class]
            if credit.reconcile(fields["credits"]):
                self.counters["reconciled"] += 1
                self._owe_credit(fields["qp"], traffic_class)

    def _on_freed(self, fields: dict[str, int], frame: Frame) -> None:
        link = self.links[frame.qp]
        link.present -= 1
        self.free_pages += frame.pages
        if link.is_open and frame.epoch == link.epoch and frame.traffic_class < CLASSES:
            link.credits[frame.traffic_class].free(self.needed(frame))
            self._owe_credit(frame.qp, frame.traffic_class)

    def _owe_credit(self, qp: int, traffic_class: int) -> None:
        link = self.links[qp]
        freed = link.credits[traffic_class].freed
        link.seen_credits.add(freed)
        untold = distance(freed, link.told[traffic_class], CREDIT_BITS)
        self.owes[qp, int(untold >= max(1, self.granted[traffic_class] / 4))] += 1

    def _on_report(self, fields: dict[str, int], _: None) -> None:
        link = self.links[fields["qp"]]
        receiver = link.receiver
        self.reports.append(
            {
                "qp": fields["qp"],
                "is_open": None if fields["qp"] in self.shutting else int(link.is_open),
                "nack": int(receiver.owes_nack),
                "ack": receiver.expected,
                "sack": receiver.sack,
            }
        )
        receiver.owes_nack = False

    def _on_open(self, fields: dict[str, int], _: None) -> None:
        self.links[fields["qp"]].open(fields, self.go_back_n)

    def _on_shut(self, fields: dict[str, int], _: None) -> None:
        link = self.links[fields["qp"]]
        left = set(link.receiver.held) - link.dropped if link.is_open else set()
        assert not left, "taken before all that is kept was freed"
        link.is_open = False
        self.shutting.discard(fields["qp"])

    # ------------------------------------------------------------------ what comes out

    def _on_delivery(self, found: dict[str, Any], expected: deque[Frame]) -> None:
        frame = expected.popleft()
        assert found == frame.fields("qp", "epoch", "traffic_class", "words", "segment")
        self.to_leave.append(frame)

    def _on_free(self, segment: dict[str, int]) -> None:
        for frame in self.to_free:
            if frame.segment == segment:
                self.to_free.discard(frame)
                break
        else:
            links = [self.links[qp] for qp in self.shutting]
            link, frame = next((each, kept) for each in links for kept in each.receiver.held if kept.segment == segment)
            assert frame not in link.dropped
            link.dropped.add(frame)
            link.present -= 1
        self.free_pages += frame.pages

    def _on_reported(self, found: dict[str, Any]) -> None:
        if not self._is_told:
            self._tell()
        expected = self.reports.popleft()
        self.reported.append(found)
        if expected["is_open"]:
            assert found == expected
        elif expected["is_open"] is not None:
            assert (found["qp"], found["is_open"]) == (expected["qp"], 0)

    def _on_owe(self, found: dict[str, int]) -> None:
        key = found["qp"], found["urgent"]
        assert self.owes[key] > 0, (found, self.owes)
        self.owes[key] -= 1

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
        assert dut.is_drained.value == (link.present == 0)
        self._shown = deque([None] * SHOWN_CLOCKS)
        self.asks_at_random = True
