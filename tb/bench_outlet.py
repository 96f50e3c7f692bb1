"""Headers of frames to send: what is looked up, when, and whose turn it is; gathered frames go where they belong."""

from __future__ import annotations

from collections import deque
from typing import Any

import cocotb

from block_environment import BlockEnvironment, Lookup
from xoe.cyclic import CREDIT_BITS, SEQ_BITS
from xoe.wire import Kind
from xoe_hdl.framer.collector import collected
from xoe_hdl.framer.emitter import job as emitter_job
from xoe_hdl.transport import connection_layouts as layouts
from xoe_hdl.transport.layouts import CLASSES, qp_bits
from xoe_hdl.transport.notes import NOTE
from xoe_hdl.transport.receive_layouts import paid_layout
from xoe_hdl.transport.sender.layouts import commit
from xoe_hdl.transport.sender.layouts import job as sender_job
from xoe_tb import PAUSES, params, unpack

QUEUE_PAIRS, PAGES, EVENTS = (params()[name] for name in ("queue_pairs", "pages", "events"))
BITS = qp_bits(QUEUE_PAIRS)
INPUTS = {"frames": collected(PAGES), "headers": NOTE, "jobs": sender_job(QUEUE_PAIRS, PAGES)}
OUTPUTS = {"commits": commit(QUEUE_PAIRS, PAGES), "paid": paid_layout(BITS), "o": emitter_job(PAGES)}
EACH = 9  # clocks that a data frame takes at the most, if nothing is held back

Fields = dict[str, Any]


class Bench(BlockEnvironment):
    """What the receiver has grows with every clock, so that a header tells when it was looked up."""

    def __init__(self, dut: Any) -> None:
        self.entries = Lookup(dut, "qp", "entry", layouts.entry_layout())
        self.changes = 0.0  # how likely an incarnation ends after a frame
        self.turns: dict[int, int] = {}  # the class that each connection told last; a reset changes nothing there
        super().__init__(dut, INPUTS, OUTPUTS)

    def forget(self) -> None:
        super().forget()
        self.entries.forget()
        self.table = [{**self.any(layouts.entry_layout()), "is_open": 1} for _ in range(1 << BITS)]
        self.now = 0
        self.receiver: deque[tuple[int, int, int]] = deque([(0, 0, 0)])
        self.note_frames: deque[Fields] = deque()
        self.notes: deque[Fields] = deque()
        self.data: deque[tuple[Fields, int | None]] = deque()  # jobs, and since when what they tell is as it is told
        self.paid: list[tuple[Fields, int]] = []  # since the last job was taken, and when
        self.kinds: list[str] = []  # what came out
        self.current = 0

    def any(self, layout: Any) -> Fields:
        return unpack(layout, self.rng.getrandbits(layout.size))

    # ------------------------------------------------------------------ what goes in

    def data_frame(self) -> None:
        frame, qp, traffic_class = (
            self.any(INPUTS["frames"]),
            self.rng.randrange(QUEUE_PAIRS),
            self.rng.randrange(CLASSES),
        )
        gathered = frame["gathered"]
        gathered["is_note"] = 0
        gathered["route"] |= {"local_qp": qp, "traffic_class": traffic_class}
        self.send("frames", frame)
        names = {"qp": qp, "epoch": gathered["route"]["epoch"], "traffic_class": traffic_class}
        rest = {"words": gathered["words"], "crc": frame["crc"], "atomics": 0, "segment": frame["segment"]}
        self.expected["commits"].append({**names, **rest})

    def note(self) -> None:
        frame = self.any(INPUTS["frames"])
        frame["gathered"]["is_note"] = 1
        self.send("frames", frame)
        self.send("headers", self.any(NOTE))

    def job(self, qp: int | None = None, is_late: bool = False) -> None:
        qp = self.rng.randrange(QUEUE_PAIRS) if qp is None else qp
        epoch = (self.table[qp]["peer_epoch"] - is_late) % 256
        self.send("jobs", self.any(INPUTS["jobs"]) | {"qp": qp, "epoch": epoch})

    # ------------------------------------------------------------------ what comes out

    def on_clock(self) -> None:
        dut = self.dut
        self.now += 1
        self.entries.on_clock(self.table)
        qp, traffic_class, when = self.receiver.popleft()
        dut.expected.value = self._expected(qp, when)
        dut.shown.value = self._freed(qp, traffic_class, when)
        self.receiver.append((int(dut.shown_qp.value), int(dut.shown_class.value), self.now))
        if dut.paid_tvalid.value == 1 and dut.paid_tready.value == 1:
            self.paid.append((unpack(OUTPUTS["paid"], int(dut.paid_tdata.value)), self.now))

    @staticmethod
    def _expected(qp: int, when: int) -> int:
        return (0x123456 * qp + when - 40) % (1 << SEQ_BITS)

    @staticmethod
    def _freed(qp: int, traffic_class: int, when: int) -> int:
        return (0x3217 * qp + 0x22222 * traffic_class + when - 40) % (1 << CREDIT_BITS)

    def take_paid(self, fields: Fields) -> None:
        """It is kept by ``on_clock``, with the time."""

    def on_frames(self, frame: Fields) -> None:
        if frame["gathered"]["is_note"]:
            self.note_frames.append(frame)

    def on_headers(self, note: Fields) -> None:
        frame = self.note_frames.popleft()
        words = frame["gathered"]["words"]
        self.notes.append({**note, "words": words, "crc": frame["crc"], "segment": frame["segment"], "is_kept": 0})

    def on_jobs(self, job: Fields) -> None:
        entry, paid = self.table[job["qp"]], self.paid
        is_current = entry["is_open"] and entry["peer_epoch"] == job["epoch"]
        header = {
            **{name: job[name] for name in ("traffic_class", "epoch", "seq")},
            "kind": int(Kind.DATA),
            "nack": 0,
            "dst_node": entry["node"],
            "dst_qp": entry["remote_qp"],
            "src_qp": job["qp"],
            "src_epoch": entry["epoch"],
            **dict.fromkeys(("ack_valid", "credit_valid"), int(is_current)),
        }
        expected = {"mac": entry["mac"], "header": header, "words": job["words"], "crc": job["crc"], "is_kept": 1}
        expected["segment"] = job["page"]
        when = None
        if is_current:
            self.current += 1
            assert len(paid) == 1, "a data frame pays for what it tells, once"
            told, when = paid[0]
            turn = told["traffic_class"]
            assert told["qp"] == job["qp"]
            assert turn == (self.turns.get(job["qp"], turn - 1) + 1) % CLASSES, "in turn"
            self.turns[job["qp"]] = header["credit_class"] = turn
        self.data.append((expected, when))
        self.paid = []
        if self.rng.random() < self.changes:
            changed = self.table[self.rng.randrange(QUEUE_PAIRS)]
            changed["is_open"] = int(self.rng.random() < 0.8)
            changed["epoch"], changed["peer_epoch"] = (changed["epoch"] + 1) % 256, (changed["peer_epoch"] + 1) % 256

    def take_o(self, found: Fields) -> None:
        if not found["is_kept"]:
            self.kinds.append("note")
            assert found == self.notes.popleft()
            return
        self.kinds.append("data")
        expected, when = self.data.popleft()
        found["segment"], header = found["segment"]["first"], found["header"]
        credit_class, credit, ack = (header.pop(name) for name in ("credit_class", "credit", "ack"))
        if when is not None:
            assert credit_class == expected["header"].pop("credit_class")
            qp = header["src_qp"]
            told = [(self._expected(qp, at), self._freed(qp, credit_class, at)) for at in range(when + 1, self.now + 2)]
            assert (ack, credit) in told, "looked up before it was paid"
        assert found == expected

    @property
    def is_quiet(self) -> bool:
        return super().is_quiet and not self.notes and not self.data


async def any_events(bench: Bench, count: int) -> None:
    rng = bench.rng
    for _ in range(count):
        draw = rng.random()
        if draw < 0.5:
            bench.job(is_late=rng.random() < 0.15)
        else:
            (bench.note if draw < 0.75 else bench.data_frame)()
        while sum(map(len, bench.waiting.values())) > rng.randrange(8):
            await bench.edge


@cocotb.test(timeout_time=500, timeout_unit="us")
@cocotb.parametrize(pause=list(PAUSES))
async def jobs_notes_and_frames(dut, pause):
    bench = await Bench.started(dut, pause)
    bench.changes = 0.05
    await any_events(bench, EVENTS)
    await bench.settle()
    assert min(bench.kinds.count("data") - bench.current, bench.current, bench.kinds.count("note")) > EVENTS // 30


@cocotb.test(timeout_time=500, timeout_unit="us")
async def credits_are_told_class_after_class(dut):
    """Of each connection, however many take turns; as fast as frames go."""
    bench = await Bench.started(dut)
    for users in range(1, min(4, QUEUE_PAIRS) + 1):
        for _ in range(2 * CLASSES):
            for qp in range(users):
                bench.job(qp)
        await bench.clocks(EACH * 2 * CLASSES * users + EACH)
        assert not bench.waiting["jobs"]
        await bench.settle()


@cocotb.test(timeout_time=500, timeout_unit="us")
async def notes_go_first(dut):
    bench = await Bench.started(dut)
    for _ in range(4):
        bench.job()
        bench.note()
    await bench.settle()
    assert bench.kinds == ["note"] * 4 + ["data"] * 4
    bench.sinks["o"].pause = lambda: True
    for _ in range(4):
        bench.job()
    await bench.clocks(2 * EACH)
    for _ in range(4):
        bench.note()
    await bench.clocks(EACH)
    bench.sinks["o"].pause = lambda: False
    await bench.settle()
    assert bench.kinds[8:] == ["data"] * 2 + ["note"] * 4 + ["data"] * 2


@cocotb.test(timeout_time=500, timeout_unit="us")
async def a_note_waits_for_its_header(dut):
    """Jobs pass it meanwhile; frames behind it wait."""
    bench = await Bench.started(dut)
    frame = bench.any(INPUTS["frames"])
    frame["gathered"]["is_note"] = 1
    bench.send("frames", frame)
    bench.data_frame()
    bench.job()
    await bench.clocks(3 * EACH)
    assert bench.kinds == ["data"]
    assert len(bench.waiting["frames"]) == 2
    bench.send("headers", bench.any(NOTE))
    await bench.settle()
    assert bench.kinds == ["data", "note"]


@cocotb.test(timeout_time=500, timeout_unit="us")
async def commits_are_not_taken(dut):
    """Jobs go on; a note behind the frame waits."""
    bench = await Bench.started(dut)
    bench.sinks["commits"].pause = lambda: True
    bench.data_frame()
    bench.note()
    for _ in range(3):
        bench.job()
    await bench.clocks(4 * EACH)
    assert bench.kinds == ["data"] * 3
    bench.sinks["commits"].pause = lambda: False
    await bench.settle()


@cocotb.test(timeout_time=500, timeout_unit="us")
async def an_incarnation_ends_while_a_frame_is_about_to_pay(dut):
    """It pays all the same, as that is offered already, but tells nothing."""
    bench = await Bench.started(dut)
    for _ in range(5):
        bench.sinks["paid"].pause = lambda: True
        qp = bench.rng.randrange(QUEUE_PAIRS)
        bench.job(qp)
        await bench.clocks(2 * EACH)
        assert dut.paid_tvalid.value == 1
        bench.table[qp] = {**bench.table[qp], "is_open": 0}
        await bench.clocks(EACH)
        bench.sinks["paid"].pause = lambda: False
        await bench.settle()
        bench.table[qp]["is_open"] = 1
        bench.turns = {}


@cocotb.test(timeout_time=500, timeout_unit="us")
async def resets_in_the_middle(dut):
    bench = await Bench.started(dut)
    for clocks in range(40):
        bench.hold_back(bench.rng.choice(list(PAUSES)))
        await any_events(bench, 5)
        await bench.clocks(clocks % 12)
        await bench.reset()
        bench.turns = {}
    await any_events(bench, 10)
    await bench.settle()
