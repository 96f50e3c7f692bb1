"""What stands around the table of connections: its models, and what is expected at every output."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from xoe.connection import Connection, Control, Notice, State
from xoe.transport import TransportSettings
from xoe.wire import ControlBody, Message
from xoe_hdl.transport import connection_layouts as layouts
from xoe_hdl.transport.connection_layouts import BODY, CONNECTION_CFG, PEER, SAID, Action
from xoe_hdl.transport.connection_memories import VIEWS
from xoe_hdl.transport.layouts import qp_bits
from xoe_tb import Beat, StreamSink, StreamSource, drive_struct, pack, params, read_struct, reset, start, unpack

QUEUE_PAIRS, EVENTS, COUNTER_WIDTH = (params()[name] for name in ("queue_pairs", "events", "counter_width"))
LARGEST = tuple(params()["largest"])  # bytes of operations, by class
BITS = qp_bits(QUEUE_PAIRS)
INPUTS = {
    "s_axis_connect": layouts.connect_layout(BITS),
    "control": layouts.control_layout(BITS),
    "failed": layouts.epoch_layout(BITS),
    "unaccepted": layouts.epoch_layout(BITS),
}
PARTS = ("receiver", "sender", "acknowledger")
BEGINS = layouts.begin_layouts(BITS)
WINDOW = 64
LOOKS = 20 * (1 << BITS) + 40  # clocks by which a time-out may be late, if nothing is held back
EVENT = 150  # the longest that it takes to see that all is quiet after an event
EPOCHS = [0] * QUEUE_PAIRS  # one for all tests: they outlive a reset
QUIET = {"open_timeout": 1 << 22, "silence_timeout": 1 << 22}  # clocks, beyond the end of a test
_benches: list[Bench] = []


class Model(Connection):
    """Does not begin anew if frames were delivered while the last incarnation ended: it listens, and is asked again."""

    drains = True

    def _establish(self, peer: ControlBody) -> None:
        if self.state is State.OPEN and not self.drains:
            self.notices.append(Notice.PEER_RESET)
            self._void(State.LISTENING)
            self.peer_epoch = peer.epoch
            return
        super()._establish(peer)

    def _receive_open(self, control: Control) -> None:
        said = len(self.outbox)
        super()._receive_open(control)
        if self.state is State.LISTENING and control.echo == self.proposal and len(self.outbox) > said:
            self.outbox.pop()  # it did not open after all


class End:
    """A connection's end: its model, and where it leads."""

    def __init__(self, qp: int, settings: TransportSettings) -> None:
        self.settings = settings
        self.model = Model(ControlBody(), settings, EPOCHS[qp], LARGEST)
        self.peer = dict.fromkeys(PEER, 0)


class Bench:
    """Gives one event at a time to hardware and model, and compares all that comes of it."""

    def __init__(self, dut: Any, **settings: int) -> None:
        self.dut, self.rng, self.edge = dut, Random(cocotb.RANDOM_SEED), RisingEdge(dut.clk)
        self.settings = TransportSettings(**{**QUIET, "retries": 2, **settings})
        values = {name: getattr(self.settings, name) for name in ("open_timeout", "silence_timeout", "retries")}
        drive_struct(dut, "cfg", CONNECTION_CFG, {**values, "window": WINDOW})
        self.sources = {name: StreamSource(dut, name) for name in INPUTS}
        self.out: dict[str, deque[dict[str, int]]] = {name: deque() for name, _ in self.outputs()}
        self.sinks = {name: Sink(dut, name, layout, self) for name, layout in self.outputs()}
        self.strangers = self.bad_offers = 0
        dut.is_drained.value = 1
        self.drains = True
        drive_struct(dut, "heard", layouts.heard_layout(BITS), {})
        self.clock = self.noticed = 0  # clocks, and when the user was told something
        for name in VIEWS:
            getattr(dut, f"{name}_qp").value = 0
        if _benches:  # the test before this one
            _benches.pop().keep_epochs()
        _benches.append(self)
        self.ends = [End(qp, self.settings) for qp in range(QUEUE_PAIRS)]

    def outputs(self) -> Iterator[tuple[str, Any]]:
        for part in PARTS:
            yield f"open_{part}", BEGINS[part]
            yield f"shut_{part}", layouts.qp_layout(BITS)
        yield "answers", layouts.answer_layout(BITS)
        yield "m_axis_notice", layouts.notice_layout(BITS)

    async def start(self) -> None:
        await start(self.dut)
        cocotb.start_soon(self._count())

    async def _count(self) -> None:
        while True:
            await self.edge
            self.clock += 1

    async def reset(self) -> None:
        self.keep_epochs()
        await reset(self.dut)
        self.ends = [End(qp, self.settings) for qp in range(QUEUE_PAIRS)]
        self.strangers = self.bad_offers = 0
        for queue in self.out.values():
            queue.clear()

    def keep_epochs(self) -> None:
        for qp, end in enumerate(self.ends):
            EPOCHS[qp] = end.model.epoch

    async def send(self, port: str, fields: dict[str, int]) -> None:
        """Wait until it is taken, and everything is done."""
        self.sources[port].send(pack(INPUTS[port], fields))
        await self.sources[port].drain()
        quiet = 0
        while quiet < 60:
            await self.edge
            busy = any(getattr(self.dut, f"{name}_tvalid").value == 1 for name in self.out)
            quiet = 0 if busy else quiet + 1

    # ------------------------------------------------------------------ events, to both

    def drain(self, is_drained: bool, drains: bool) -> None:
        """Whether no delivered frames are in the buffer now, and whether none will be when an incarnation has ended."""
        self.dut.is_drained.value, self.drains = int(is_drained), drains
        for end in self.ends:
            end.model.is_drained, end.model.drains = is_drained, drains

    async def connect(self, qp: int, action: Action, **peer: int) -> None:
        end, model = self.ends[qp], self.ends[qp].model
        values = {name: self.rng.getrandbits(layout) for name, layout in PEER.items()} | peer
        if (action == Action.LISTEN and model.state is State.CLOSED) or (
            action == Action.OPEN and model.state in (State.CLOSED, State.LISTENING)
        ):
            end.peer = values
        await self.send("s_axis_connect", {"qp": qp, "action": action, **values})
        {Action.LISTEN: model.listen, Action.OPEN: lambda: model.open(0), Action.CLOSE: lambda: model.close(0)}[
            action
        ]()
        await self.check(qp)

    async def control(self, qp: int, body: ControlBody, echo: int | None, stranger: bool = False) -> None:
        end = self.ends[qp]
        peer = dict(end.peer)
        if stranger:
            name = self.rng.choice(list(PEER))
            peer[name] ^= 1 << self.rng.randrange(PEER[name])
        values = {name: getattr(body, name) for name in BODY} | {"echo_valid": int(echo is not None)}
        before = end.model.incarnation
        await self.send("control", {"qp": qp, **peer, "echo": echo or 0, **values})
        if stranger:
            self.strangers += end.model.state is not State.CLOSED
        else:
            refused = end.model.offers_refused
            end.model.receive(Control(body, echo))
            self.bad_offers += end.model.offers_refused - refused
        await self.check(qp, body if end.model.incarnation > before else None)

    async def lose(self, qp: int, epoch: int) -> None:
        model = self.ends[qp].model
        await self.send("failed", {"qp": qp, "epoch": epoch})
        if model.state is State.OPEN and epoch == model.peer_epoch:
            model.lose()
        await self.check(qp)

    async def meet(self, qp: int, epoch: int) -> None:
        """A data frame of an epoch that is not open."""
        model = self.ends[qp].model
        if model.state is State.OPEN and epoch == model.epoch:
            return
        await self.send("unaccepted", {"qp": qp, "epoch": epoch})
        model.accepts(epoch, model.peer_epoch)
        await self.check(qp)

    async def hear(self, qp: int) -> int:
        """Something came, for one clock; which that was."""
        drive_struct(self.dut, "heard", layouts.heard_layout(BITS), {"valid": 1, "qp": qp})
        await self.edge
        self.dut.heard_valid.value = 0
        return self.clock

    async def late(self, qp: int) -> None:
        """Wait until a time-out has passed; it began when the last event was checked, or a little before."""
        model = self.ends[qp].model
        if model.deadline is None:
            return
        clocks = 0
        while not any(self.out.values()):
            await self.edge
            clocks += 1
        await ClockCycles(self.dut.clk, 20)
        assert -EVENT <= clocks - self.settings.open_timeout <= LOOKS
        model.tick(model.deadline)
        await self.check(qp)

    # ------------------------------------------------------------------ what came of them

    async def check(self, qp: int, body: ControlBody | None = None) -> None:
        end = self.ends[qp]
        model = end.model
        said = list(self.out["answers"])
        expected = [self._answer(qp, each) for each in model.outbox]
        assert said == expected
        notices = [(each["qp"], each["notice"]) for each in self.out["m_axis_notice"]]
        assert notices == [(qp, int(notice)) for notice in model.notices]
        self._check_parts(qp, body, Notice.OPENED in model.notices)
        for queue in (*self.out.values(), model.outbox, model.notices):
            queue.clear()
        for name, count in (("stranger", self.strangers), ("bad_offer", self.bad_offers)):
            found = getattr(self.dut, f"counters_{name}").value.to_unsigned()
            assert found == count % (1 << COUNTER_WIDTH), name
        for name in VIEWS:
            await self.check_view(name, qp)

    def _answer(self, qp: int, control: Control) -> dict[str, int]:
        said = {name: int(getattr(control.body, name)) for name in SAID}
        found = {"qp": qp, **self.ends[qp].peer, **said}
        mine = next((each for each in self.out["answers"]), {})
        return {**found, "echo": mine.get("echo", 0) if control.echo is None else control.echo}

    def _check_parts(self, qp: int, body: ControlBody | None, opened: bool) -> None:
        model = self.ends[qp].model
        for part in PARTS:
            begun = list(self.out[f"open_{part}"])
            if not opened:
                assert not begun
                continue
            assert body is not None
            values = {name: getattr(body, name) for name in BODY}
            own = {"qp": qp, "seq": body.first_seq, "credits": body.first_credit}
            values |= own | {"epoch": model.epoch, "peer_epoch": model.peer_epoch}
            if part == "receiver":
                values["window"] = WINDOW
            assert begun == [{name: values[name] for name in BEGINS[part].members}]
        shuts = [len(self.out[f"shut_{part}"]) for part in PARTS]
        assert len(set(shuts)) == 1
        ended = {Notice.PEER_RESET, Notice.PEER_CLOSED, Notice.LOST} & set(model.notices)
        closing = model.state is State.CLOSING and any(each.body.message == Message.CLOSE for each in model.outbox)
        assert shuts[0] <= 1
        assert shuts[0] == 1 or not ended
        assert shuts[0] == 0 or ended or closing

    async def check_view(self, name: str, qp: int) -> None:
        getattr(self.dut, f"{name}_qp").value = qp
        for _ in range(3):
            await self.edge
        end = self.ends[qp]
        found = read_struct(self.dut, name, layouts.entry_layout())
        assert found["is_open"] == (end.model.state is State.OPEN)
        if found["is_open"]:
            model = end.model
            epochs = {"epoch": model.epoch, "peer_epoch": model.peer_epoch}
            assert found == {"is_open": 1, **epochs, **end.peer, "atomic_slots": model.peer.atomic_slots}


class Sink(StreamSink):
    """Notes what is taken, and that the table is closed while parts are told, and that they are told in order."""

    def __init__(self, dut: Any, name: str, layout: Any, bench: Bench) -> None:
        super().__init__(dut, name)
        self._layout, self._bench, self._port = layout, bench, name

    def _on_beat(self, beat: Beat) -> None:
        bench, found = self._bench, unpack(self._layout, beat.data)
        bench.out[self._port].append(found)
        if self._port == "m_axis_notice":
            bench.noticed = bench.clock
        if self._port == "shut_receiver" and not bench.drains:
            bench.dut.is_drained.value = 0
        if self._port.startswith("open_"):
            shuts = [len(bench.out[f"shut_{part}"]) for part in PARTS]
            assert len(set(shuts)) == 1, "opened before all had shut"
        if self._port in ("answers", "m_axis_notice"):
            assert len({len(bench.out[f"open_{part}"]) for part in PARTS}) == 1, "told before all had opened"
