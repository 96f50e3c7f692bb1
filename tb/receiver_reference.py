"""What the receiving end has to do, by its models, for each event in the clock in which it is taken."""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from typing import Any

from xoe.config import credits_needed
from xoe.credit import CreditReceiver
from xoe.cyclic import CREDIT_BITS, SEQ_BITS, after, distance
from xoe.receiver import Receiver, Verdict

CLASSES = 3


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
    """A connection, as its models know it.

    ``present`` are the frames in the buffer, of all incarnations, ``delivered`` those that are kept no more.
    """

    def __init__(self) -> None:
        self.is_open = False
        self.epoch = 0
        self.present = self.delivered = 0
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


class Reference:
    """The models of all connections, and what is expected at every output."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self.queue_pairs, self.window, self.pages = (parameters[name] for name in ("queue_pairs", "window", "pages"))
        self.granted, self.credit_words = parameters["granted"], parameters["credit_words"]
        self.counter_width = parameters["counter_width"]
        self.go_back_n = False
        self.forget()

    def forget(self) -> None:
        """A reset came."""
        self.links = [Link() for _ in range(self.queue_pairs)]
        self.requests: deque[Frame] = deque()
        self.responses: deque[Frame] = deque()
        self.to_free: set[Frame] = set()
        self.to_leave: deque[Frame] = deque()  # delivered
        self.owes: Counter[tuple[int, int, int, int]] = Counter()  # connection, whether it is urgent, or credit, class
        self.reports: deque[dict[str, Any]] = deque()
        self.free_pages = list(range(self.pages))
        self.shutting: set[int] = set()
        self.counters = Counter[str]()
        self.reported: list[dict[str, Any]] = []
        self._is_told = False

    def _tell(self) -> None:
        """The counts of credit in a report are those of the clock before it is offered."""
        self._is_told = True
        report = self.reports[0]
        link = self.links[report["qp"]]
        report["freed"] = [credit.freed for credit in link.credits]
        link.told = list(report["freed"])

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
            link.delivered += 1
            link.seen.add(after(before, steps, SEQ_BITS))
        urgent = verdict is not Verdict.NEW or not was_expected or bool(receiver.held)
        self.owes[frame.qp, int(urgent), 0, 0] += 1

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
                self._owe_credit(fields["qp"], traffic_class, True)

    def _on_freed(self, fields: dict[str, int], frame: Frame) -> None:
        link = self.links[frame.qp]
        link.present -= 1
        link.delivered -= 1
        self.free_pages += frame.pages
        if link.is_open and frame.epoch == link.epoch and frame.traffic_class < CLASSES:
            link.credits[frame.traffic_class].free(self.needed(frame))
            self._owe_credit(frame.qp, frame.traffic_class)

    def _owe_credit(self, qp: int, traffic_class: int, urgent: bool = False) -> None:
        link = self.links[qp]
        freed = link.credits[traffic_class].freed
        link.seen_credits.add(freed)
        untold = distance(freed, link.told[traffic_class], CREDIT_BITS)
        urgent |= untold >= max(1, self.granted[traffic_class] / 4)
        self.owes[qp, int(urgent), 1, traffic_class] += 1

    def _on_report(self, fields: dict[str, int], _: None) -> None:
        link = self.links[fields["qp"]]
        receiver = link.receiver
        self.reports.append(
            {
                "qp": fields["qp"],
                "is_open": None if fields["qp"] in self.shutting else int(link.is_open),
                "epoch": link.epoch,
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
        key = found["qp"], found["urgent"], found["is_credit"], found["traffic_class"] * found["is_credit"]
        assert self.owes[key] > 0, (found, self.owes)
        self.owes[key] -= 1
