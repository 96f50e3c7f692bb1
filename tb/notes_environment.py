"""What stands around the maker of notes: connections, their sending ends, and what each note is to say."""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Any

from block_environment import BlockEnvironment, Lookup
from xoe.config import NicConfig
from xoe.offer import make_offer
from xoe.wire import GRID, AckBody, Kind, TrafficClass
from xoe_hdl.framer.emitter import HEADER
from xoe_hdl.layouts import operation_beat
from xoe_hdl.transport import connection_layouts as layouts
from xoe_hdl.transport.connection_layouts import SAID
from xoe_hdl.transport.layouts import CLASSES, qp_bits
from xoe_hdl.transport.notes import NOTE
from xoe_hdl.transport.receive_layouts import reported_layout
from xoe_hdl.transport.sender.layouts import PROGRESS
from xoe_tb import params, unpack

CONFIG = NicConfig(**params()["config"])
FIRST_SEQ, FIRST_CREDIT = params()["first_seq"], params()["first_credit"]
BITS = qp_bits(CONFIG.queue_pairs)
INPUTS = {"answers": layouts.answer_layout(BITS), "reported": reported_layout(BITS, CONFIG.window)}
OPERATION = operation_beat(CONFIG.data_width)["data"].shape
FREED = ("freed_request", "freed_response", "freed_atomic")

Fields = dict[str, Any]


def random_fields(rng: Any, layout: Any) -> Fields:
    """Any value in every field."""
    return unpack(layout, rng.getrandbits(layout.size))


class NotesBench(BlockEnvironment):
    """Compares each note when it has left: which of the two inputs it was made of is known by what is taken then."""

    def __init__(self, dut: Any) -> None:
        self.entries = Lookup(dut, "qp", "entry", layouts.entry_layout())
        self.progress = Lookup(dut, "qp", "progress", PROGRESS, 3)
        self.stays = 0  # the longest that a note is with the gatherer
        self.changes = 0.0  # how likely an incarnation ends after a note
        super().__init__(dut, INPUTS, {"o": OPERATION, "headers": NOTE})
        dut.leaves.value = 0

    def forget(self) -> None:
        super().forget()
        self.entries.forget()
        self.progress.forget()
        self.table = [{**random_fields(self.rng, layouts.entry_layout()), "is_open": 1} for _ in range(1 << BITS)]
        self.sending = [{**random_fields(self.rng, PROGRESS), "alive": 1} for _ in range(1 << BITS)]
        for entry, progress in zip(self.table, self.sending, strict=True):
            progress["epoch"] = entry["epoch"]
        self.left: deque[int] = deque()  # what is taken by the gatherer, and in how many clocks it leaves
        self.offered: Fields | None = None
        self.made: list[str] = []  # what became of the inputs, in order
        self.headers: list[Fields] = []
        self.found_headers: list[Fields] = []

    # ------------------------------------------------------------------ what goes in

    def answer(self) -> None:
        self.send("answers", random_fields(self.rng, INPUTS["answers"]) | {"qp": self._qp()})

    def report(self, flaw: str | None = None, qp: int | None = None) -> None:
        """An acknowledgement of the present incarnation, but for its ``flaw``."""
        qp = self._qp() if qp is None else qp
        fields = {"qp": qp, "is_open": int(flaw != "is_open"), "epoch": self.table[qp]["epoch"]}
        if flaw == "epoch":
            fields["epoch"] ^= 1 << self.rng.randrange(8)
        self.send("reported", random_fields(self.rng, INPUTS["reported"]) | fields)

    def _qp(self) -> int:
        return self.rng.randrange(CONFIG.queue_pairs)

    # ------------------------------------------------------------------ what comes out

    def on_clock(self) -> None:
        self.entries.on_clock(self.table)
        self.progress.on_clock(self.sending)
        if self.left:
            self.left[0] -= 1
        self.dut.leaves.value = int(bool(self.left) and self.left[0] == 0)
        if self.left and self.left[0] < 0:
            self.left.popleft()

    def take_o(self, found: Fields) -> None:
        assert not self.left, "one note at a time"
        self.left.append(self.rng.randint(1, self.stays + 1))
        self.offered = found

    def take_headers(self, found: Fields) -> None:
        self.found_headers.append(found)

    def on_answers(self, answer: Fields) -> None:
        """It has left: its body was there until now."""
        said = {name: answer[name] for name in SAID}
        body = dataclasses.replace(make_offer(CONFIG, FIRST_SEQ, FIRST_CREDIT), **said)
        self._compare("control", body.pack(), None)
        names = {"dst_node": answer["node"], "dst_qp": answer["remote_qp"], "src_qp": answer["qp"]}
        epoch = answer["echo"] if answer["echo_valid"] else 0
        self._expect_header(answer["mac"], kind=Kind.CONTROL, epoch=epoch, **names)

    def on_reported(self, report: Fields) -> None:
        """An acknowledgement has left, or it was nothing to be sent."""
        qp = report["qp"]
        entry, progress = self.table[qp], self.sending[qp]
        is_current = report["is_open"] and entry["is_open"] and progress["alive"]
        if not is_current or not entry["epoch"] == progress["epoch"] == report["epoch"]:
            assert self.offered is None, "it is not to be sent"
            self.made.append("dropped")
            self._change()
            return
        further = report["sack"] >> 64 if CONFIG.window > 64 else None
        freed = dict(zip(FREED, report["freed"], strict=True))
        self._compare("acknowledgement", AckBody(report["sack"] % (1 << 64), **freed).pack(), further)
        self._expect_header(
            entry["mac"],
            kind=Kind.ACK,
            dst_node=entry["node"],
            dst_qp=entry["remote_qp"],
            src_qp=qp,
            epoch=entry["peer_epoch"],
            src_epoch=entry["epoch"],
            seq=progress["next_seq"],
            ack_valid=1,
            ack=report["ack"],
            nack=report["nack"],
            credit_valid=1,
        )
        self.headers[-1]["consumed"] = list(progress["consumed"])
        self._change()

    def _change(self) -> None:
        """An incarnation ends at one of the two places first, or begins at both."""
        if self.rng.random() < self.changes:
            qp = self._qp()
            self.table[qp]["is_open"], self.sending[qp]["alive"] = self.rng.choice(
                ((0, 1), (1, 0), (1, 1), (1, 1), (1, 1))
            )
            self.table[qp]["epoch"] = (self.table[qp]["epoch"] + 1) % 256
            if self.rng.random() < 0.9:
                self.sending[qp]["epoch"] = self.table[qp]["epoch"]

    def _compare(self, kind: str, body: bytes, further: int | None) -> None:
        assert self.offered is not None
        assert self.dut.leaves.value == 1
        assert int(self.dut.body.value).to_bytes(2 * GRID, "little") == body
        assert self.offered["operation"]["words"] == (further is not None)
        if further is not None:
            said = self.offered["data"] % (1 << 64)
            assert said.to_bytes(GRID, "little") == further.to_bytes(GRID, "big")
        self.offered = None
        self.made.append(kind)

    def _expect_header(self, mac: int, **fields: int) -> None:
        unset = dict.fromkeys(HEADER.members, 0) | {"traffic_class": int(TrafficClass.RESPONSE)}
        self.headers.append({"mac": mac, "header": unset | {name: int(value) for name, value in fields.items()}})

    @property
    def is_quiet(self) -> bool:
        return super().is_quiet and len(self.found_headers) == len(self.headers)

    async def settle(self, clocks: int = 40) -> None:
        await super().settle(clocks)
        last: dict[int, int] = {}
        for found, expected in zip(self.found_headers, self.headers, strict=True):
            if (consumed := expected.pop("consumed", None)) is not None:
                header = expected["header"]
                qp, header["credit_class"] = header["src_qp"], found["header"]["credit_class"]
                assert header["credit_class"] == (last.get(qp, header["credit_class"] - 1) + 1) % CLASSES, "in turn"
                last[qp] = header["credit_class"]
                header["credit"] = consumed[last[qp]]
            assert found == expected
        self.found_headers, self.headers = [], []
