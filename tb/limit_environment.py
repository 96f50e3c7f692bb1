"""What stands around the limit of atomics: who sends them, who answers, and how many are without an answer."""

from __future__ import annotations

from collections import Counter, deque
from random import Random
from typing import Any, NamedTuple

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from xoe_hdl.requester.atomics_limit import owner
from xoe_tb import drive_struct, params, reset, start

QUEUE_PAIRS = params()["queue_pairs"]
OWNER = owner(QUEUE_PAIRS)
LATE = 10  # clocks by which a permit may be late, after an answer or a new head
OVER_CLOCKS = 3  # until it is known that the head's incarnation is over
SETTLE = 8  # clocks from the begin of an incarnation to its first atomic at the head
EPOCHS = 256


class Owner(NamedTuple):
    """The incarnation that an atomic belongs to."""

    qp: int
    epoch: int


class Link:
    """A connection: its present incarnation, the atomics of it without an answer, and how many there may be."""

    def __init__(self, epoch: int = 0, slots: int = 1) -> None:
        self.epoch, self.slots = epoch, slots
        self.owed = 0
        self.settles = SETTLE  # clocks until it may have an atomic at the head


class LimitBench:
    """A clock at a time: inputs change after the rising edge, and in its middle it is seen who may go.

    ``head`` stays until it is issued. ``permitted`` says whether it might have gone in the last clock.
    """

    def __init__(self, dut: Any) -> None:
        self.dut, self.rng = dut, Random(cocotb.RANDOM_SEED)
        self._rise, self._fall = RisingEdge(dut.clk), FallingEdge(dut.clk)
        self.links = [Link() for _ in range(QUEUE_PAIRS)]
        self.permitted = False
        self.counts: Counter[str] = Counter()
        self._forget()
        dut.issued.value = dut.is_over.value = dut.slots.value = 0
        self._shown: dict[str, Owner] = {}
        self._drive("head", Owner(0, 0))
        dut.head_valid.value = 0
        self._drive("answered", Owner(0, 0))
        dut.answered_valid.value = 0
        self._begin(None)

    def _forget(self) -> None:
        self.head: Owner | None = None
        self.waits = 0  # clocks for which the head might have gone, and was not let
        self._over = deque([0] * OVER_CLOCKS)

    async def start(self) -> None:
        await start(self.dut)
        await self.idle(2)

    async def reset(self) -> None:
        """Whatever was sent before, nobody waits for it; epochs go on."""
        self.dut.head_valid.value = self.dut.issued.value = 0
        self.dut.answered_valid.value = 0
        await reset(self.dut, self.rng.randint(1, 3))
        self._forget()
        for qp in range(QUEUE_PAIRS):
            await self.begin(qp)

    async def begin(self, qp: int, epoch: int | None = None, slots: int | None = None) -> None:
        """An incarnation begins; returns a clock later."""
        before = self.links[qp]
        epoch = (before.epoch + 1) % EPOCHS if epoch is None else epoch
        self.links[qp] = Link(epoch, before.slots if slots is None else slots)
        self._begin(qp)
        await self.clock()
        self._begin(None)

    def _begin(self, qp: int | None) -> None:
        self.dut.begins_valid.value, self.dut.begins_qp.value = int(qp is not None), qp or 0

    def _drive(self, name: str, who: Owner | None) -> None:
        """Without anybody the port shows anybody, or still the last one."""
        getattr(self.dut, f"{name}_valid").value = int(who is not None)
        if who is None and self.rng.random() < 0.3:
            who = self.present(self.rng.randrange(QUEUE_PAIRS))
        if who is not None and who != self._shown.get(name):
            self._shown[name] = who
            drive_struct(self.dut, f"{name}_owner", OWNER, who._asdict())

    def present(self, qp: int) -> Owner:
        return Owner(qp, self.links[qp].epoch)

    def shown(self, name: str) -> Owner:
        """Who is at a port, valid or not."""
        return self._shown[name]

    async def idle(self, clocks: int) -> None:
        for _ in range(clocks):
            await self.clock()

    async def clock(self, answer: Owner | None = None, takes: bool = False) -> bool:
        """A clock, in which an answer comes, and the head goes if it may and is taken; whether it went."""
        dut, head = self.dut, self.head
        self._drive("head", head)
        self._drive("answered", answer)
        dut.slots.value = self.links[head.qp].slots if head else 0
        self._over.append(int(head is not None and head.epoch != self.links[head.qp].epoch))
        dut.is_over.value = self._over.popleft()
        await self._fall
        self.permitted = dut.permit.value == 1
        self._compare(head)
        issues = self.permitted and takes
        dut.issued.value = int(issues)
        await self._rise
        dut.issued.value = 0
        self._follow(answer, issues)
        return issues

    def _may_go(self, head: Owner) -> bool:
        link = self.links[head.qp]
        return head.epoch != link.epoch or link.owed < link.slots

    def _compare(self, head: Owner | None) -> None:
        """It never goes when it may not, and waits for nothing when it may."""
        assert not self.permitted or (head is not None and self._may_go(head)), f"{head} may not go"
        self.waits = self.waits + 1 if head and not self.permitted and self._may_go(head) else 0
        assert self.waits < LATE, f"{head} waits for nothing"

    def _follow(self, answer: Owner | None, issues: bool) -> None:
        for link in self.links:
            link.settles = max(0, link.settles - 1)
        if answer is not None:
            link = self.links[answer.qp]
            counts = answer.epoch == link.epoch and link.owed > 0
            link.owed -= counts
            self.counts["answered" if counts else "ignored"] += 1
        if issues:
            link = self.links[self.head.qp]
            is_over = self.head.epoch != link.epoch
            link.owed += not is_over
            self.counts["over" if is_over else "issued"] += 1
            self.head, self.waits = None, 0

    # ------------------------------------------------------------------ several clocks

    async def go(self, qp: int, atomics: int) -> int:
        """Let so many atomics follow each other, and see how many may go before they have to wait for an answer."""
        gone = clocks = 0
        while gone < atomics and clocks < LATE + 2:
            self.head = self.head or self.present(qp)
            went = await self.clock(takes=True)
            gone, clocks = gone + went, 0 if went else clocks + 1
        return gone

    async def answer(self, qp: int, answers: int, epoch: int | None = None) -> None:
        """So many answers, one in every clock."""
        for _ in range(answers):
            who = self.present(qp) if epoch is None else Owner(qp, epoch)
            await self.clock(answer=who)

    async def use_all(self, qp: int) -> None:
        """See that as many atomics may go as there are slots, and no more; then answer them."""
        slots = self.links[qp].slots
        await self.idle(SETTLE)
        assert await self.go(qp, slots + 2) == slots
        self.head = None
        await self.answer(qp, slots)
        await self.idle(SETTLE)
