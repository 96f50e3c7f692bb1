"""The sender between a gatherer and a peer that loses frames, held against its model event for event."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import cocotb

from sender_environment import (
    LAG,
    LARGEST,
    LATE,
    MTU,
    OPTIONS,
    PAGE_SIZE,
    PAGES,
    QUEUE_PAIRS,
    WINDOW,
    Reference,
    SenderPorts,
    check_counters,
)
from xoe.config import credits_needed
from xoe.cyclic import CREDIT_BITS, SEQ_BITS, after
from xoe.receiver import Receiver, Verdict
from xoe.transport import TransportSettings
from xoe_hdl.transport.sender.layouts import CLASSES

HALF_TRIP = 40  # clocks
COMMIT_CLOCKS, ACK_CLOCKS, STALE_CLOCKS = 6, 15, 6  # that an event takes while others wait
COMMIT_CLOCKS, ACK_CLOCKS, KNOWN_CLOCKS = 6, 15, 4  # of a frame; of an acknowledgement with and without news
FAST = {"resend_timeout": 600, "probe_timeout": 300, "retries": 5}


class Peer:
    """The other end of a connection: what came, and what it frees."""

    def __init__(self, given: dict, settings: TransportSettings) -> None:
        self.given = given
        self.receiver: Receiver[int] = Receiver(given["window"], given["first_seq"], settings.go_back_n)
        self.freed = [given["first_credit"]] * CLASSES


class SenderBench:
    """Gatherer, wire and peers."""

    def __init__(self, dut: Any, **settings: Any) -> None:
        self.dut = dut
        self.settings = TransportSettings(**(FAST | settings))
        self.ports, self.reference = SenderPorts(dut), Reference(self.settings)
        self.rng = self.ports.rng
        self.peers: dict[int, Peer] = {}
        self.free_pages = list(range(PAGES))
        self.held: dict[tuple, list[int]] = {}  # pages, by their segment
        self.begun: dict[int, list[int]] = {}
        self.shutting: set[int] = set()
        self.wire: list[tuple[int, int, str, Any]] = []
        self.loss = self.ack_loss = self.restarts = 0.0
        self.jitter = 1
        self.epoch = 250
        self._sent = 0
        self.committed = 0

    async def start(self) -> None:
        await self.ports.start(self.settings)

    def open(self, qp: int, **changes: Any) -> None:
        """Begin an incarnation; PSNs and credits begin anywhere, often just before they wrap."""
        rng, shift = self.rng, self.rng.randint(2, 8)
        self.epoch = (self.epoch + 1) % 256
        most = credits_needed(MTU - 26, 8 << shift)
        given = {
            "qp": qp,
            "epoch": self.epoch,
            "peer_epoch": rng.randrange(256),
            "first_seq": rng.choice((0, rng.getrandbits(24), (1 << 24) - 3)),
            "first_credit": rng.choice((0, rng.getrandbits(20), (1 << 20) - 3)),
            "window": rng.choice((WINDOW, rng.randint(4, WINDOW))),
            "credit_shift": shift,
            "limits": [min(4095, most * rng.randint(1, 9)) for _ in range(CLASSES)],
            "most": [most] * CLASSES,
        } | changes
        self.peers[qp], self.begun[qp] = Peer(given, self.settings), [0] * CLASSES
        self.ports.queues["opens"].append(given)

    def shut(self, qp: int) -> None:
        if qp not in self.shutting:
            self.shutting.add(qp)
            self.ports.queues["shuts"].append(qp)

    def may_begin(self, qp: int, number: int) -> bool:
        line = self.reference.lines.get(qp)
        is_there = line is not None and line.is_alive and line.given is self.peers[qp].given
        return is_there and qp not in self.shutting and line.granted[number] != self.begun[qp][number]

    def begin(self, qp: int, number: int, words: int = 0, epoch: int | None = None) -> bool:
        """Gather a frame, if there is room for it."""
        words = words or self.rng.choice((2, LARGEST, self.rng.randint(2, LARGEST)))
        count = credits_needed(8 * words, PAGE_SIZE)
        if len(self.free_pages) < count:
            return False
        pages = [self.free_pages.pop(self.rng.randrange(len(self.free_pages))) for _ in range(count)]
        segment = {"first": pages[0], "last": pages[-1], "pages": count}
        self.held[tuple(segment.values())] = pages
        frame = {
            "qp": qp,
            "epoch": self.peers[qp].given["epoch"] if epoch is None else epoch,
            "traffic_class": number,
            "words": words,
            "crc": self.rng.getrandbits(32),
            "atomics": self.rng.randrange(8),
            "segment": segment,
        }
        if epoch is None:
            self.begun[qp][number] = (self.begun[qp][number] + 1) % 4
        self.ports.queues["commits"].append(frame)
        self.committed += 1
        return True

    def tell(self, qp: int, nack: bool = False, **changes: Any) -> None:
        """Have the peer send an acknowledgement."""
        peer = self.peers[qp]
        ack = {
            "qp": qp,
            "epoch": peer.given["epoch"],
            "ack": peer.receiver.expected,
            "sack": peer.receiver.sack & (1 << WINDOW) - 1,
            "nack": int(nack),
            "tells": self.rng.choice((7, 7, 0, 1, 2, 4)),
            "freed": list(peer.freed),
        } | changes
        if self.rng.random() >= self.ack_loss:
            self._later("ack", ack)

    def tell_at_once(self, qp: int, ack: int, sack: int = 0) -> None:
        """An acknowledgement that frees all credits and comes as soon as the sender takes it."""
        line = self.reference.lines[qp]
        freed = [credit.consumed for credit in line.credits]
        said = {"qp": qp, "epoch": line.given["epoch"], "ack": ack, "sack": sack, "nack": 0, "tells": 7}
        self.ports.queues["acks"].append(said | {"freed": freed})

    def gossip(self, qp: int) -> None:
        """An acknowledgement that is old, of the future, or of another epoch, or a count of credits that cannot be."""
        rng, peer = self.rng, self.peers[qp]
        ack = after(peer.receiver.expected, rng.choice((-1, -9, peer.given["window"] + 1, 1 << 23)), SEQ_BITS)
        sack = rng.getrandbits(WINDOW)
        if rng.random() < 0.5:
            self.tell(qp, ack=ack, sack=sack, epoch=(self.epoch + 100) % 256)
        else:
            wrong = [after(freed, rng.choice((-1, 1 << 19)), CREDIT_BITS) for freed in peer.freed]
            self.tell(qp, ack=peer.given["first_seq"], sack=0, tells=7, freed=wrong)

    def _later(self, what: str, of: Any) -> None:
        when = self.ports.now + HALF_TRIP + self.rng.randrange(self.jitter)
        self._sent += 1
        self.wire.append((when, self._sent, what, of))

    def _arrive(self, job: dict) -> None:
        """A frame comes to the peer, which acknowledges it and frees its credits."""
        qp = job["qp"]
        peer = self.peers[qp]
        if job["epoch"] != peer.given["peer_epoch"]:
            return
        verdict = peer.receiver.receive(job["seq"], job["words"])
        assert verdict is not Verdict.OUTSIDE
        if verdict is Verdict.NEW:
            needed = credits_needed(8 * job["words"], 8 << peer.given["credit_shift"])
            number = job["traffic_class"]
            peer.freed[number] = after(peer.freed[number], needed, CREDIT_BITS)
        peer.receiver.deliver()
        nack, peer.receiver.owes_nack = peer.receiver.owes_nack, False
        self.tell(qp, nack)

    async def clock(self, clocks: int = 1) -> None:
        for _ in range(clocks):
            await self.ports.clock()
            for when, name, of in self.ports.take_log():
                self.reference.take(when, name, of)
                if name == "shuts":
                    self.shutting.discard(of)
            self._carry()

    def _carry(self) -> None:
        reference = self.reference
        while reference.sent:
            job = reference.sent.popleft()
            if self.rng.random() >= self.loss:
                self._later("frame", job)
        while reference.freed:
            self.free_pages += self.held.pop(tuple(reference.freed.popleft().values()))
        while reference.failed:
            self.shut(reference.failed.popleft())
        if self.wire and min(self.wire)[0] <= self.ports.now:
            due = sorted(entry for entry in self.wire if entry[0] <= self.ports.now)
            self.wire = [entry for entry in self.wire if entry[0] > self.ports.now]
            for _, _, what, of in due:
                if what == "ack":
                    self.ports.queues["acks"].append(of)
                else:
                    self._arrive(of)

    def restart(self, qp: int) -> None:
        """Open a connection that failed or was shut; a frame that was gathered too late comes in between."""
        line = self.reference.lines.get(qp)
        if line is not None and not line.is_alive and qp not in self.shutting and line.given is self.peers[qp].given:
            self.begin(qp, 0, epoch=line.given["epoch"])
            self.open(qp)

    async def work(self, frames: int, words: int = 0, busy: float = 0.3, gossip: float = 0.0) -> None:
        """Let so many frames go out on any connections that are open."""
        rng, until, quiet = self.rng, self.committed + frames, 0
        while self.committed < until:
            qp, number = rng.randrange(QUEUE_PAIRS), rng.randrange(CLASSES)
            quiet += 1
            if (
                rng.random() < busy
                and qp in self.peers
                and self.may_begin(qp, number)
                and self.begin(qp, number, words)
            ):
                quiet = 0
            if rng.random() < self.restarts:
                self.restart(rng.randrange(QUEUE_PAIRS))
            if rng.random() < gossip and qp in self.peers:
                self.gossip(qp)
            await self.clock()
            assert quiet < 100_000, "nothing can be sent any more"

    async def settle(self) -> None:
        """Until everything is acknowledged, then compare what is left."""
        self.loss = self.ack_loss = 0.0
        calm = 0  # clocks: what was taken is given to the models some clocks later
        for _ in range(200_000):
            await self.clock()
            models = [line.model for line in self.reference.lines.values() if line.is_alive]
            is_quiet = not self.wire and not self.ports.is_busy() and not self.shutting
            is_done = is_quiet and not any(model.outstanding or model.is_failed for model in models)
            calm = calm + 1 if is_done else 0
            if calm > 2 * LAG:
                break
        else:
            raise AssertionError("something stays outstanding")
        await self.clock(10 * WINDOW + 200)  # for the frees of one acknowledgement
        self.reference.finish()
        assert sorted(self.free_pages) == list(range(PAGES))
        check_counters(self.dut, self.reference.counts, OPTIONS["counter_width"])


async def make(dut: Any, opened: int = QUEUE_PAIRS, **settings: Any) -> SenderBench:
    bench = SenderBench(dut, **settings)
    await bench.start()
    for qp in range(opened):
        bench.open(qp)
    return bench


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def events_take_few_clocks(dut):
    """Frames one after the other, then acknowledgements: of one, of all others, and of nothing that is new."""
    bench = await make(dut, opened=0, probe_timeout=0, resend_timeout=1 << 20)
    bench.open(0, limits=[4095] * CLASSES, window=WINDOW)
    ports, bench.loss, rounds = bench.ports, 1.0, 2 if WINDOW > 8 else 1
    gaps = []
    for _ in range(8):  # a timer is looked at now and then, so the shortest time is what counts
        for taken in ports.taken.values():
            taken.clear()
        for _ in range(rounds):
            await bench.clock(100)
            assert all([bench.may_begin(0, number) and bench.begin(0, number, 2) for number in range(CLASSES)])
        await bench.clock(100)
        line = bench.reference.lines[0]
        first, count = line.model.first_outstanding, line.outstanding
        for step in (1, count, count, count):
            bench.tell_at_once(0, after(first, step, SEQ_BITS))
        await bench.clock(200)
        commits, acks = ports.taken["commits"], ports.taken["acks"]
        gaps.append([commits[1] - commits[0], *(then - before for before, then in pairwise(acks))])
    commit, ack, further, known = (min(found) for found in zip(*gaps, strict=True))
    assert commit <= COMMIT_CLOCKS
    assert ack <= ACK_CLOCKS
    assert further <= ACK_CLOCKS + count - 2
    assert known <= KNOWN_CLOCKS
    await bench.settle()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def timers_and_frames_get_their_turn(dut):
    """A frame is lost while acknowledgements come without a gap: its timer ends, and it is sent again."""
    bench = await make(dut, opened=0, resend_timeout=1 << 20)
    bench.open(0, limits=[4095] * CLASSES, window=WINDOW)
    await bench.clock(100)
    bench.loss = 1.0
    assert bench.begin(0, 0)
    await bench.clock(50)
    model, first = bench.reference.lines[0].model, bench.peers[0].given["first_seq"]
    for _ in range(FAST["probe_timeout"] + LATE):
        while len(bench.ports.queues["acks"]) < 4:
            bench.tell_at_once(0, first)
        await bench.clock()
    assert (model.probes, model.resent) == (1, 1)
    bench.tell_at_once(0, after(first, 1, SEQ_BITS))
    await bench.settle()


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def a_probe_makes_its_first_copy_void(dut):
    """Two frames are sent after the first copy of another, and one after its second: only that copy may be lost."""
    bench = await make(dut, opened=0, resend_timeout=1 << 20, reorder=1)
    bench.open(0, limits=[4095] * CLASSES, window=WINDOW)
    await bench.clock(100)
    bench.loss = 1.0
    assert bench.begin(0, 0)
    await bench.clock(FAST["probe_timeout"] + LATE)
    model, first = bench.reference.lines[0].model, bench.peers[0].given["first_seq"]
    assert model.resent == 1
    for number, resent in ((1, 1), (2, 2)):
        assert bench.begin(0, number)
        await bench.clock(100)
        bench.tell_at_once(0, first, sack=(1 << number) - 1)
        await bench.clock(100)
        assert model.resent == resent
    bench.tell_at_once(0, after(first, 3, SEQ_BITS))
    await bench.settle()


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(pattern=["never", "always_other", "bursts", "random"], go_back_n=[False, True])
async def nothing_is_lost(dut, pattern, go_back_n):
    bench = await make(dut, go_back_n=go_back_n, retries=15)
    bench.ports.pause(pattern)
    await bench.work(OPTIONS["frames"])
    await bench.settle()
    assert not bench.reference.counts["timeouts"]


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(loss=[0.01, 0.1], jitter=[1, 200], go_back_n=[False, True])
async def frames_are_lost_and_late(dut, loss, jitter, go_back_n):
    """Acknowledgements too; false ones come now and then."""
    bench = await make(dut, go_back_n=go_back_n, retries=15)
    bench.ports.pause("random")
    bench.loss = bench.ack_loss = loss
    bench.jitter = jitter
    await bench.work(OPTIONS["frames"], gossip=0.01)
    while bench.ports.is_busy():  # the last frames may be lost too
        await bench.clock()
    await bench.settle()
    assert bench.reference.counts["resent"] or loss < 0.1


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(loss=[0.0, 0.05])
async def acknowledgements_are_rare(dut, loss):
    """Each tells of many frames of one connection, which came in any order."""
    bench = await make(dut, opened=0, retries=15, probe_timeout=0, resend_timeout=4000)
    bench.open(0, limits=[4095] * CLASSES, window=WINDOW)
    bench.loss, bench.ack_loss, bench.jitter = loss, 1 - 4 / WINDOW, 60
    await bench.work(6 * OPTIONS["frames"], words=2, busy=1.0)
    await bench.settle()
    assert WINDOW == 8 or bench.reference.most_done > 16


@cocotb.test(timeout_time=40, timeout_unit="ms")
@cocotb.parametrize(reorder=[0, 1, 63], retries=[0, 1, 15], probe_timeout=[0, 100])
async def connections_fail_and_come_back(dut, reorder, retries, probe_timeout):
    """What is outstanding is freed, whatever it waits for; the others go on."""
    bench = await make(dut, reorder=reorder, retries=retries, probe_timeout=probe_timeout, resend_timeout=200)
    bench.loss, bench.jitter = 0.3, 30
    bench.restarts = 0.01
    for _ in range(6):
        await bench.work(OPTIONS["frames"] // 12 + 8)
        for qp in range(QUEUE_PAIRS):
            if bench.rng.random() < 0.3:
                bench.shut(qp)
    bench.restarts = 0
    await bench.settle()
