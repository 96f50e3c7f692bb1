"""What stands around the block that admits frames: the table of connections, and what is to become of each frame."""

from __future__ import annotations

from collections import Counter
from typing import Any

from block_environment import BlockEnvironment, Lookup
from xoe.config import NicConfig
from xoe.wire import GRID, AckBody, ControlBody, Kind
from xoe_hdl.parser.parser import parsed
from xoe_hdl.transport import connection_layouts as layouts
from xoe_hdl.transport.admission import CONTROLS, COUNTERS
from xoe_hdl.transport.connection_layouts import BODY, PEER
from xoe_hdl.transport.layouts import CLASSES, qp_bits
from xoe_hdl.transport.page_store import segment
from xoe_hdl.transport.receive_layouts import arrival_layout, reconcile_layout
from xoe_hdl.transport.sender.layouts import acknowledgement
from xoe_tb import params, unpack

CONFIG = NicConfig(**params()["config"])
PAGES = params()["pages"]
BITS = qp_bits(CONFIG.queue_pairs)
INPUTS = {"frames": parsed(PAGES)}
OUTPUTS = {
    "acks": acknowledgement(CONFIG.queue_pairs, CONFIG.window),
    "arrivals": arrival_layout(BITS, PAGES),
    "reconcile": reconcile_layout(BITS),
    "controls": layouts.control_layout(BITS),
    "unaccepted": layouts.epoch_layout(BITS),
    "free": segment(PAGES),
}
AT_ONCE = ("arrivals", "reconcile", "free")  # taken before their frame is
FREED = ("freed_request", "freed_response", "freed_atomic")

Fields = dict[str, Any]


class AdmissionBench(BlockEnvironment):
    """Judges each frame when it comes to the input, by the table of connections as it is then.

    The table changes only when a frame is taken, so that it is the same while the next one is looked up.
    """

    def __init__(self, dut: Any) -> None:
        self.lookup = Lookup(dut, "qp", "entry", layouts.entry_layout())
        self.changes = 0.0  # how likely an entry changes after a frame
        self.counts: Counter[str] = Counter()  # over all resets: what became of frames
        super().__init__(dut, INPUTS, OUTPUTS)

    def forget(self) -> None:
        super().forget()
        self.lookup.forget()
        self.table = [self.entry() for _ in range(1 << BITS)]
        self.counters: Counter[str] = Counter()
        self.judged: Fields | None = None  # the frame at the input
        self.ended: Fields | None = None  # the one that was taken in the clock before
        self.heard: list[int] = []  # the connections that were, since the last frame was taken
        self._refusals = 0  # as the counter said in the clock before
        self._told = (0, 0)  # valid and ready of ``unaccepted`` then

    # ------------------------------------------------------------------ what goes in

    def entry(self) -> Fields:
        shape = layouts.entry_layout().members
        return {name: self.rng.getrandbits(width) for name, width in shape.items()} | {"is_open": 1}

    def frame(self, kind: Kind, qp: int | None = None, flaw: str | None = None, **fields: Any) -> Fields:
        """A frame, right but for its ``flaw``, as the connection is now.

        A flaw is "bad", "short", "class", "closed" (which changes the table: only while no frame is at the input), or
        a field of the header that is another.
        """
        rng = self.rng
        qp = rng.randrange(CONFIG.queue_pairs) if qp is None else qp
        entry = self.table[qp]
        found = {name: rng.getrandbits(width) for name, width in INPUTS["frames"]["found"].shape.members.items()}
        peer = {"mac": entry["mac"], "src_node": entry["node"], "src_qp": entry["remote_qp"]}
        epochs = {"epoch": entry["epoch"], "src_epoch": entry["peer_epoch"]}
        found |= {**peer, **epochs, "dst_qp": qp, "kind": int(kind), "traffic_class": rng.randrange(CLASSES)}
        if kind != Kind.DATA:
            found["words"] = rng.choice((2, 3, 3, rng.randint(4, 2047)))
        found |= fields
        if flaw in found:  # one bit of the name or epoch is another
            found[flaw] ^= 1 << rng.randrange(INPUTS["frames"]["found"].shape.members[flaw])
        elif flaw == "short":
            found["words"] = rng.randrange(2)
        elif flaw == "class":
            found["traffic_class"] = rng.randrange(CLASSES, 8)
        elif flaw == "closed":
            entry["is_open"] = 0
        place = {"first": rng.randrange(PAGES), "last": rng.randrange(PAGES), "pages": rng.randint(1, PAGES)}
        return {"is_good": int(flaw != "bad"), "found": found, "segment": place}

    def offer(self, kind: Kind, qp: int | None = None, flaw: str | None = None, **fields: Any) -> Fields:
        frame = self.frame(kind, qp, flaw, **fields)
        self.send("frames", frame)
        return frame

    async def pass_on(self, kind: Kind, qp: int | None = None, flaw: str | None = None, **fields: Any) -> None:
        """Offer a frame, and wait until it is taken and looked at."""
        self.offer(kind, qp, flaw, **fields)
        await self.gone()

    async def gone(self) -> None:
        while self.waiting["frames"] or self.ended:
            await self.edge

    # ------------------------------------------------------------------ what comes out

    def on_clock(self) -> None:
        self.lookup.on_clock(self.table)
        if self.ended is not None:
            self._end(self.ended)
        self._watch()
        if self.judged is None and self.dut.frames_tvalid.value == 1:
            self.judged = self.waiting["frames"][0]
            self._judge(self.judged["found"], self.judged)
        if self.dut.heard_valid.value == 1:
            self.heard.append(int(self.dut.heard_qp.value))

    def on_frames(self, frame: Fields) -> None:
        self.ended, self.judged = frame, None
        if self.rng.random() < self.changes:
            qp = self.rng.randrange(CONFIG.queue_pairs)
            entry = self.table[qp]
            epochs = {name: (entry[name] + 1) % 256 for name in ("epoch", "peer_epoch")}
            self.table[qp] = {**entry, **epochs, "is_open": int(self.rng.random() < 0.8)}

    def _judge(self, found: Fields, frame: Fields) -> None:
        """What is to become of a frame: why it is dropped, or what it says."""
        entry = self.table[found["dst_qp"]]
        is_peer = [found[name] for name in ("mac", "src_node", "src_qp")] == [entry[name] for name in PEER]
        is_current = entry["is_open"] and (found["epoch"], found["src_epoch"]) == (entry["epoch"], entry["peer_epoch"])
        is_whole, self._is_heard, outcome = found["words"] >= 2, False, "kept"
        if not frame["is_good"]:
            outcome = "bad"
        elif found["kind"] == Kind.CONTROL:
            outcome = "control" if is_whole else "bad_body"
        elif not is_peer:
            outcome = "stranger"
        elif not is_current:
            outcome = "other_epoch"
        elif found["kind"] == Kind.ACK and not is_whole:
            outcome = "bad_body"
        else:
            self._is_heard = True
            outcome = self._listen(found, frame)
        if outcome != "kept":
            self.expected["free"].append(frame["segment"])
        if outcome == "control":
            self.expected["controls"].append(self._control(found))
        self.counters[outcome] += 1
        self.counts[outcome] += 1

    def _listen(self, found: Fields, frame: Fields) -> str:
        """A frame that counts."""
        names = {name: found[name] for name in ("epoch", "seq", "traffic_class", "words")} | {"qp": found["dst_qp"]}
        if found["ack_valid"]:
            self.expected["acks"].append(self._ack(found))
        if found["kind"] == Kind.DATA:
            if found["traffic_class"] >= CLASSES:
                return "bad_class"
            self.expected["arrivals"].append({**names, "segment": frame["segment"]})
            return "kept"
        if found["credit_valid"]:
            consumed = {"traffic_class": found["credit_class"], "credits": found["credit"]}
            self.expected["reconcile"].append(
                {"qp": names["qp"], "epoch": names["epoch"], "seq": names["seq"]} | consumed
            )
        return "acknowledgement"

    def _ack(self, found: Fields) -> Fields:
        """What a frame says of those that were sent; credits of classes that it doesn't tell are None."""
        body = found["body"].to_bytes(3 * GRID, "little")
        said, sack = AckBody.unpack(body), 0
        freed: list[int | None] = [None] * CLASSES
        if found["kind"] == Kind.ACK:
            freed = [getattr(said, name) for name in FREED]
            sack = said.sack
            if found["words"] > 2:
                sack |= int.from_bytes(body[2 * GRID :], "big") << 64
        elif found["credit_valid"] and found["credit_class"] < CLASSES:
            freed[found["credit_class"]] = found["credit"]
        names = {"qp": found["dst_qp"], **{name: found[name] for name in ("epoch", "ack", "nack")}}
        return {**names, "sack": sack % (1 << CONFIG.window), "freed": freed}

    def take_acks(self, fields: Fields) -> None:
        tells = fields.pop("tells")
        fields["freed"] = [freed if tells >> at & 1 else None for at, freed in enumerate(fields["freed"])]
        assert fields == self.expected["acks"].popleft()

    def take_unaccepted(self, fields: Fields) -> None:
        """It was compared when it was offered, and the sink checks that it holds."""
        self.counts["told"] += 1

    @staticmethod
    def _control(found: Fields) -> Fields:
        said = ControlBody.unpack(found["body"].to_bytes(3 * GRID, "little"))
        peer = {"mac": found["mac"], "node": found["src_node"], "remote_qp": found["src_qp"]}
        return {"qp": found["dst_qp"], **peer, "echo": found["epoch"], **{name: getattr(said, name) for name in BODY}}

    def _end(self, frame: Fields) -> None:
        """A clock after a frame was taken: all that it says at once has come, once, and was counted."""
        for name in AT_ONCE:
            assert not self.expected[name], f"{name} had not come when the frame was taken"
        assert self.heard == [frame["found"]["dst_qp"]] * self._is_heard
        self.ended, self.heard = None, []
        waiting = self.expected["controls"]
        dropped = self.counter("control_dropped") != self.counters["control_dropped"] % (1 << CONFIG.counter_width)
        if dropped:
            assert frame["found"]["kind"] == Kind.CONTROL
            assert len(waiting) > CONTROLS, "there is room for it"
            self.counters["control_dropped"] += 1
            waiting.pop()
        assert len(waiting) <= CONTROLS + 1
        for name in COUNTERS:
            assert self.counter(name) == self.counters[name] % (1 << CONFIG.counter_width), name

    def counter(self, name: str) -> int:
        return int(getattr(self.dut, f"counters_{name}").value)

    def _watch(self) -> None:
        """A refused frame is told of in the clock in which it is counted, unless another one was being told of."""
        told, refusals = self.dut.unaccepted_tvalid.value == 1, self.counter("other_epoch")
        was_told, was_taken = self._told
        if was_told:
            assert told != was_taken, "told of while another one was, or not until it was taken"
        else:
            assert told == (refusals != self._refusals)
            if told:
                found = self.judged["found"]
                said = unpack(OUTPUTS["unaccepted"], int(self.dut.unaccepted_tdata.value))
                assert said == {"qp": found["dst_qp"], "epoch": found["epoch"]}
        self._refusals = refusals
        self._told = told, told and self.dut.unaccepted_tready.value == 1
