"""The sender's ports, and a reference that takes the same events at the same times.

The sender takes one event after the other. Its ports tell in which clock it took each, so the model of that connection
is given the same ones at the same times, and has to come to the same frames sent, pages freed and connections failed.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from xoe.config import credits_needed
from xoe.credit import CreditSender
from xoe.cyclic import SEQ_BITS, distance
from xoe.sender import Sender
from xoe.transport import TransportSettings
from xoe_hdl.transport.page_store import segment
from xoe_hdl.transport.sender.context import EVENTS
from xoe_hdl.transport.sender.layouts import (
    CFG,
    CLASSES,
    acknowledgement,
    commit,
    failure,
    grant_write,
    incident,
    job,
    opening,
    qp_bits,
)
from xoe_tb import drive_struct, params, read_struct, start
from xoe_tb.layout import pack, unpack
from xoe_tb.pause import PAUSES

FROM_COMMIT, FROM_RESEND, FROM_INCIDENT = 3, 8, 3  # clocks from an event to what is seen of it
LAG = 10  # clocks after which all that has to be known of an event is known
OPTIONS = params()
QUEUE_PAIRS, WINDOW, PAGES, MTU = (OPTIONS[name] for name in ("queue_pairs", "window", "pages", "mtu"))
PAGE_SIZE = 8 * OPTIONS["page_words"]
MOST_PAGES = PAGES // 2  # of a connection
FRAME_PAGES = credits_needed(MTU - 26, PAGE_SIZE)  # of the largest frame
PERMITS_MAX = 2
LARGEST = (MTU - 26) // 8  # words of operations
LATE = 50 * QUEUE_PAIRS + 200  # clocks that a timer may be late when there is much to do


@dataclasses.dataclass
class Line:
    """A connection's incarnation: its model, and what it was opened with."""

    given: dict[str, Any]
    model: Sender[dict]
    credits: list[CreditSender]
    granted: list[int] = dataclasses.field(default_factory=lambda: [0] * CLASSES)  # as the sender has said
    due: list[int] = dataclasses.field(default_factory=lambda: [0] * CLASSES)  # as it has to say
    permits: list[int] = dataclasses.field(default_factory=lambda: [0] * CLASSES)  # granted and not committed
    pages: int = 0  # of frames that are outstanding
    is_alive: bool = True

    @property
    def is_usable(self) -> bool:
        return self.is_alive and not self.model.is_failed

    @property
    def outstanding(self) -> int:
        """Frames from the oldest one that is outstanding to the next one."""
        return distance(self.model.next_seq, self.model.first_outstanding, SEQ_BITS)

    def permit(self) -> list[int]:
        """Permit each class one more of the largest frames if all that needs has room; which were permitted.

        A second one only if there is room for one of each class besides.
        """
        given = []
        for number, (credit, most) in enumerate(zip(self.credits, self.given["most"], strict=True)):
            frames = self.outstanding + sum(self.permits)
            pages = self.pages + sum(self.permits) * FRAME_PAGES
            more = CLASSES if self.permits[number] else 1
            has_room = frames + more <= self.given["window"] and pages + more * FRAME_PAGES <= MOST_PAGES
            has_credits = credit.available >= (self.permits[number] + 1) * most
            if has_room and has_credits and self.permits[number] < PERMITS_MAX:
                self.permits[number] += 1
                given.append(number)
        return given

    def needs(self, words: int) -> int:
        return credits_needed(8 * words, 8 << self.given["credit_shift"])


class SenderPorts:
    """Drives and samples all ports in one loop; ``log`` has what was seen, by the clock in which the sender took it."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.layouts = {
            "commits": commit(QUEUE_PAIRS, PAGES),
            "acks": acknowledgement(QUEUE_PAIRS, WINDOW),
            "opens": opening(QUEUE_PAIRS),
            "shuts": qp_bits(QUEUE_PAIRS),
        }
        self.queues: dict[str, deque] = {name: deque() for name in self.layouts}
        self.offered: dict[str, Any] = dict.fromkeys(self.layouts)
        self.log: list[tuple[float, str, Any]] = []
        self.taken: dict[str, list[int]] = {name: [] for name in self.layouts}  # clocks in which each input was
        self.now = 0
        self.rng = Random(cocotb.RANDOM_SEED)
        self.pause("never")
        self._had_job = False
        self._edge = RisingEdge(dut.clk)
        self._outputs = {
            "free": (segment(PAGES), "free_payload"),
            "grants": (grant_write(QUEUE_PAIRS), "grants"),
            "incidents": (incident(QUEUE_PAIRS), "incidents"),
        }
        self._job = job(QUEUE_PAIRS, PAGES)

    def pause(self, pattern: str) -> None:
        self.pauses = {name: PAUSES[pattern](self.rng) for name in (*self.layouts, "jobs", "failures")}

    async def start(self, settings: TransportSettings) -> None:
        names = CFG.members
        drive_struct(self.dut, "cfg", CFG, {name: int(getattr(settings, name)) for name in names})
        for name in self.layouts:
            getattr(self.dut, f"{name}_tvalid").value = getattr(self.dut, f"{name}_tdata").value = 0
        self.dut.jobs_tready.value = self.dut.failures_tready.value = 0
        await start(self.dut)

    def is_busy(self) -> bool:
        """Whether something is still to be taken."""
        return any(self.queues.values()) or any(of is not None for of in self.offered.values())

    async def clock(self) -> None:
        self._drive()
        await self._edge
        self.now += 1
        for name in self.layouts:
            if self.offered[name] is not None and getattr(self.dut, f"{name}_tready").value == 1:
                self.log.append((self.now, name, self.offered[name]))
                self.taken[name].append(self.now)
                self.offered[name] = None
                getattr(self.dut, f"{name}_tvalid").value = 0
        self._sample()

    def _drive(self) -> None:
        for name, layout in self.layouts.items():
            if self.offered[name] is None and self.queues[name] and not next(self.pauses[name]):
                self.offered[name] = self.queues[name].popleft()
                getattr(self.dut, f"{name}_tdata").value = pack(layout, self.offered[name])
                getattr(self.dut, f"{name}_tvalid").value = 1
        self.dut.jobs_tready.value = not next(self.pauses["jobs"])
        self.dut.failures_tready.value = not next(self.pauses["failures"])

    def _sample(self) -> None:
        dut = self.dut
        has_job = dut.jobs_tvalid.value == 1
        if has_job and not self._had_job:
            self._log_job(unpack(self._job, int(dut.jobs_tdata.value)))
        self._had_job = has_job and dut.jobs_tready.value != 1
        for name, (layout, ports) in self._outputs.items():
            if getattr(dut, f"{name}_valid").value == 1:
                before = FROM_INCIDENT if name == "incidents" else 0
                self.log.append((self.now - before, name, read_struct(dut, ports, layout)))
        if dut.failures_tvalid.value == 1 and dut.failures_tready.value == 1:
            self.log.append((self.now, "failures", unpack(failure(QUEUE_PAIRS), int(dut.failures_tdata.value))))

    def _log_job(self, found: dict) -> None:
        committed = self.now - FROM_COMMIT
        if any(name == "commits" and when == committed for when, name, _ in self.log):
            self.log.append((committed + 0.1, "first", found))
        else:
            self.log.append((self.now - FROM_RESEND, "again", found))

    def take_log(self) -> list[tuple[float, str, Any]]:
        """All that happened up to ``LAG`` clocks ago, in order."""
        self.log.sort(key=lambda entry: entry[0])
        ripe = [entry for entry in self.log if entry[0] <= self.now - LAG]
        self.log = self.log[len(ripe) :]
        return ripe


class Reference:
    """The models of all connections, given what the sender took."""

    def __init__(self, settings: TransportSettings) -> None:
        self.settings = settings
        self.lines: dict[int, Line] = {}
        self.sent: deque[dict] = deque()  # jobs, each checked, for the wire
        self.freed: deque[dict] = deque()  # segments, each checked
        self.failed: deque[int] = deque()
        self.counts: Counter[str] = Counter()
        self.most_done = 0  # frames that one acknowledgement has told of
        self._expected: deque[dict] = deque()
        self._found: deque[dict] = deque()
        self._committed: tuple[int, dict] = (0, {})
        self._grants: deque[dict] = deque()  # that have to come
        self._ends: Counter[int] = Counter()  # classes for which nothing may be begun any more, by connection

    def take(self, when: float, name: str, of: Any) -> None:
        getattr(self, f"_on_{name}")(int(when), of)
        while self._expected and self._found:
            expected, found = self._expected.popleft(), self._found.popleft()
            assert found == expected, f"freed {found}, not {expected}"
            self.freed.append(found)

    def finish(self) -> None:
        """Nothing may be left over."""
        assert not self._expected
        assert not self._found
        assert not self._grants
        for qp, line in self.lines.items():
            assert not line.is_usable or line.model.resend(0) is None, f"queue pair {qp} was to send again"
        for name in ("resent", "probes", "timeouts", "acks_refused"):
            self.counts[name] += sum(getattr(line.model, name) for line in self.lines.values())

    def _line(self, of: dict) -> Line | None:
        line = self.lines.get(of["qp"])
        return line if line is not None and line.is_usable and line.given["epoch"] == of["epoch"] else None

    def _on_opens(self, now: int, given: dict) -> None:
        old = self.lines.get(given["qp"])
        if old is not None:
            assert not old.is_alive
            for name in ("resent", "probes", "timeouts", "acks_refused"):
                self.counts[name] += getattr(old.model, name)
        credits = [CreditSender(limit, given["first_credit"]) for limit in given["limits"]]
        line = Line(given, Sender(given["window"], self.settings, given["first_seq"]), credits)
        self.lines[given["qp"]] = line
        for number in range(CLASSES):
            self._expect_grant(line, number, is_reset=1)
        self._permit(line)
        self._ends[given["qp"]] = 0

    def _on_shuts(self, now: int, qp: int) -> None:
        ends = self._ends.pop(qp)
        assert ends == CLASSES or (qp not in self.lines and ends == 2 * CLASSES), f"{ends} grants ended"
        line = self.lines.get(qp)
        if line is not None and line.is_alive:
            self._expected += [frame["segment"] for frame in line.model.abandon()]
            line.is_alive = False

    def _permit(self, line: Line) -> None:
        for number in line.permit():
            line.due[number] = (line.due[number] + 1) % 4
            self._expect_grant(line, number)

    def _expect_grant(self, line: Line, number: int, is_reset: int = 0) -> None:
        given = line.given
        grant = {"alive": 1, "epoch": given["epoch"], "count": line.due[number]}
        whose = {"qp": given["qp"], "traffic_class": number, "is_reset": is_reset}
        self._grants.append({"valid": 1, **whose, "grant": grant})

    def _on_commits(self, now: int, frame: dict) -> None:
        line = self._line(frame)
        if line is None:
            self.counts["commits_stale"] += 1
            self._expected.append(frame["segment"])
            return
        number = frame["traffic_class"]
        needed = line.needs(frame["words"])
        assert line.permits[number] > 0
        assert line.model.room > 0
        assert line.credits[number].available >= needed
        line.permits[number] -= 1
        line.credits[number].consume(needed)
        line.pages += frame["segment"]["pages"]
        self._committed = line.model.send(frame, now), frame
        self._permit(line)

    def _on_first(self, now: int, found: dict) -> None:
        self._check_job(found, *self._committed)

    def _on_again(self, now: int, found: dict) -> None:
        line = self.lines[found["qp"]]
        again = line.model.resend(now)
        assert again is not None, f"sent again without need: {found}"
        self._check_job(found, *again)

    def _check_job(self, found: dict, seq: int, frame: dict) -> None:
        line = self.lines[frame["qp"]]
        names = ("qp", "traffic_class", "words", "crc")
        expected = {name: frame[name] for name in names}
        expected |= {"epoch": line.given["peer_epoch"], "seq": seq, "page": frame["segment"]["first"]}
        assert found == expected, f"sent {found}, not {expected}"
        self.sent.append(found)

    def _on_acks(self, now: int, ack: dict) -> None:
        line = self._line(ack)
        if line is None:
            self.counts["acks_stale"] += 1
            return
        freed = [credit.available for credit in line.credits]
        for number, credit in enumerate(line.credits):
            if ack["tells"] >> number & 1:
                credit.update(ack["freed"][number])
        refused, first = line.model.acks_refused, line.model.first_outstanding
        done = line.model.acknowledge(ack["ack"], ack["sack"], now, bool(ack["nack"]))
        self.most_done = max(self.most_done, len(done))
        self._expected += [frame["segment"] for frame in done]
        line.pages -= sum(frame["segment"]["pages"] for frame in done)
        says_nothing = line.model.acks_refused > refused or (
            ack["ack"] == first and not ack["sack"] and not ack["nack"]
        )
        if freed != [credit.available for credit in line.credits] or not says_nothing:
            self._permit(line)

    def _on_incidents(self, now: int, found: dict) -> None:
        model = self.lines[found["qp"]].model
        if found["is_probe"] or found["is_timeout"]:
            assert model.deadline is not None
            assert model.deadline <= now <= model.deadline + LATE, f"timer of {model.deadline} ended at {now}"
            before = model.probes, model.timeouts
            model.tick(now)
            if found["is_timeout"]:
                assert model.timeouts == before[1] + 1
            else:
                assert model.timeouts == before[1]
        if found["is_failed"]:
            self.counts["failed"] += 1

    def _on_failures(self, now: int, found: dict) -> None:
        line = self.lines[found["qp"]]
        assert line.model.is_failed
        assert found["epoch"] == line.given["peer_epoch"]
        self.failed.append(found["qp"])

    def _on_free(self, now: int, found: dict) -> None:
        self._found.append(found)

    def _on_grants(self, now: int, found: dict) -> None:
        if not found["grant"]["alive"]:
            assert found["is_reset"]
            assert found["traffic_class"] == self._ends[found["qp"]] % CLASSES
            self._ends[found["qp"]] += 1
            return
        expected = self._grants.popleft()
        assert found == expected, f"granted {found}, not {expected}"
        self.lines[found["qp"]].granted[found["traffic_class"]] = found["grant"]["count"]


def check_counters(dut: Any, counts: Counter[str], width: int) -> None:
    """Hold the counters against what was counted."""
    for name in EVENTS:
        found = int(getattr(dut, f"counters_{name}").value)
        assert found == counts[name] % (1 << width), f"{name} is {found}, not {counts[name]}"
