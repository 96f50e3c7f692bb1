"""Puts the frames of each connection in order: which are new, and which can be delivered. Model: ``xoe.receiver``."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from . import receive_layouts as layouts
from .intake import Intake
from .layouts import CLASSES
from .order_memories import OrderMemories
from .page_store import segment
from .sorter import Sorter

COUNTERS = ("new", "duplicate", "outside", "out_of_order", "stale", "reconciled")

_COMMANDS = {"reconcile": "reconciles", "report": "reports", "shut": "shuts", "open": "opens"}
_SLICE = 3  # dropping kept frames pauses where so many low bits of the PSN turn over


class Order(wiring.Component):
    """Works on one event at a time: fetches the connection's state, changes it, writes it back.

    Seven clocks for a data frame, and three more for each kept one that is delivered behind it. ``shut`` drops one kept
    frame at a time, in about eight clocks, and other events come between; it is taken when all are dropped, as ``open``
    is when the state stands. The memory is cleared after a reset: a connection a clock, in which nothing is taken.

    Ports and parameters are those of ``Receiver``, but for these:

    * ``delivered``: for one clock, a frame whose turn it is. There is no back-pressure.
    * ``commands``: what the engine that returns credit has to do; done when it is taken.
    * ``snapshot``: of a report, from its command until the next. ``report`` must not come before it was used.
    * ``happened``: a bit for each counter, for one clock. ``memories`` can be asked what it shows.
    """

    def __init__(self, bits: int, window: int, pages: int, credit_words: int) -> None:
        event, state = layouts.event_layout(bits, pages), layouts.state_layout(window, pages)
        self.sorter = Sorter(event, state, window, credit_words)
        self.memories = OrderMemories(bits, window, pages)
        self.inputs = layouts.order_inputs(bits, pages)
        super().__init__(
            {
                **{name: In(stream.Signature(shape)) for name, shape in self.inputs.items()},
                "delivered": Out(data.StructLayout({"valid": 1, "frame": layouts.delivery_layout(bits, pages)})),
                "free": Out(stream.Signature(segment(pages))),
                "owe": Out(stream.Signature(layouts.owe_layout(bits))),
                "commands": Out(stream.Signature(layouts.command_layout(bits))),
                "snapshot": Out(layouts.snapshot_layout(window)),
                "go_back_n": In(1),
                "happened": Out(len(COUNTERS)),
            }
        )
        self._event, self._state = Signal(event), Signal(state)
        self._kind = Signal(data.StructLayout(dict.fromkeys(self.inputs, 1)))
        self._owes, self._is_urgent, self._is_done, self._opens = Signal(), Signal(), Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        """The memories, what sorts a frame, and the sequence of steps."""
        m = Module()
        m.submodules.sorter = self.sorter
        m.submodules.memories = self.memories
        m.submodules.intake = intake = Intake(self.inputs, self._event.shape(), ("shut", "open"))
        for name in self.inputs:
            connect(m, flipped(getattr(self, name)), getattr(intake, name))
        m.d.comb += self._kind.as_value().eq(intake.served)
        self._join(m, intake)
        for sent in (self.free, self.owe):
            with m.If(sent.ready):
                m.d.sync += sent.valid.eq(0)
        m.d.sync += self.delivered.valid.eq(0)
        self._act(m)
        with m.FSM(name="step"):
            self._begin(m, intake)
            self._judge(m)
            self._report(m)
            self._open(m)
            self._shut(m)
            self._finish(m, intake)
        return m

    def _join(self, m: Module, intake: Intake) -> None:
        """Show the event and the state to the memories and to what sorts."""
        event, memories, sorter = self._event, self.memories, self.sorter
        m.d.comb += [port.event.eq(event) for port in (sorter, memories)]
        m.d.comb += [port.state.eq(self._state) for port in (sorter, memories)]
        m.d.comb += [
            sorter.consumed.eq(memories.consumed),
            sorter.go_back_n.eq(self.go_back_n),
            memories.count.eq(sorter.verdict.has_credit | sorter.verdict.differs | self._opens),
            memories.credits.eq(Mux(self._kind.arrivals, sorter.total, event.credits)),
            memories.fetch_qp.eq(intake.event.qp),
        ]
        command = self.commands.payload
        m.d.comb += [command[name].eq(event[name]) for name in ("qp", "epoch", "traffic_class", "credits")]
        m.d.comb += [command[bit].eq(self._kind[name]) for name, bit in _COMMANDS.items()]

    def _begin(self, m: Module, intake: Intake) -> None:
        """Clear the states; take an event and its connection's state; see what it is."""
        event, kind = self._event, self._kind
        intake.add_steps(m, event, self.memories.store)
        with m.State("LOAD"):
            m.d.comb += intake.choose.eq(~kind.shut & ~kind.open)
            m.d.sync += self._state.eq(self.memories.fetched)
            m.next = "MEASURE"
        with m.State("MEASURE"):
            m.next = "SELECT"
            for name in ("report", "open", "shut"):
                with m.If(kind[name]):
                    m.next = name.upper()
        for step, following in (("SELECT", "JUDGE"), ("FETCH", "FOLLOW"), ("FIND", "DROP")):  # for what takes a clock
            with m.State(step):
                m.next = following

    def _judge(self, m: Module) -> None:
        """Wait for room to tell of the event; then do what the verdict demands, in the clock of ACT."""
        sorter, is_free = self.sorter, Signal()
        m.d.sync += is_free.eq(~self.free.valid & ~self.owe.valid)  # nobody else fills them
        with m.State("JUDGE"):
            m.d.comb += [
                sorter.judge_frame.eq(is_free & self._kind.arrivals),
                sorter.judge_credit.eq(is_free & self._kind.reconcile),
            ]
            with m.If(is_free):
                m.next = "ACT"
        with m.State("ACT"):
            m.next = "FINISH"
            with m.If(sorter.verdict.differs):
                m.next = "COMMAND"

    def _act(self, m: Module) -> None:
        """What follows from a verdict. It has a clock of its own, and needs no look at the step."""
        event, state, memories, verdict = self._event, self._state, self.memories, self.sorter.verdict
        is_new = verdict.in_order | verdict.early
        drops = verdict.duplicate | verdict.outside | verdict.out_of_order
        m.d.comb += memories.keep.eq(verdict.early)
        m.d.sync += self.happened.eq(
            Cat(is_new, (verdict[name] for name in ("duplicate", "outside", "out_of_order", "stale", "differs")))
        )
        with m.If(verdict.differs):
            m.d.sync += event.credits.eq(self.sorter.missed)
        with m.If(is_new | drops):
            m.d.sync += [self._owes.eq(1), self._is_urgent.eq(~verdict.in_order)]
        with m.If(drops | verdict.stale):
            m.d.sync += [self.free.valid.eq(1), self.free.payload.eq(event.segment)]
        with m.If(verdict.in_order):
            m.d.sync += state.is_nacked.eq(0)
            self._deliver(m, event)
        with m.If(verdict.early):
            m.d.sync += [state.present.eq(state.present | self.sorter.place), state.kept.eq(state.kept + 1)]
        with m.If(verdict.out_of_order):
            m.d.sync += [state.is_nacked.eq(1), state.owes_nack.eq(state.owes_nack | ~state.is_nacked)]

    def _deliver(self, m: Module, frame: data.View) -> None:
        """Send a frame on that was the one expected."""
        delivered, state = self.delivered.frame, self._state
        m.d.sync += state.delivered.eq(state.delivered + 1)
        m.d.sync += [self.delivered.valid.eq(1), delivered.qp.eq(self._event.qp)]
        m.d.sync += delivered.epoch.eq(state.epoch)
        m.d.sync += [delivered[name].eq(frame[name]) for name in self.memories.kept.shape().members]
        self._advance(m)

    def _advance(self, m: Module) -> None:
        m.d.sync += self._state.expected.eq(self._state.expected + 1)
        m.d.sync += self._state.present.eq(self._state.present[1:])

    def _report(self, m: Module) -> None:
        """Say how things stand. The other engine then says its part; it has one in all events but frames."""
        state = self._state
        with m.State("REPORT"):
            m.d.sync += [
                self.snapshot.is_open.eq(state.is_alive),
                self.snapshot.epoch.eq(state.epoch),
                self.snapshot.nack.eq(state.owes_nack),
                self.snapshot.ack.eq(state.expected),
                self.snapshot.sack.eq(state.present[1:]),
                state.owes_nack.eq(0),
            ]
            m.next = "COMMAND"
        with m.State("COMMAND"):
            m.d.comb += self.commands.valid.eq(1)
            with m.If(self.commands.ready):
                m.d.sync += self._is_done.eq(1)
                m.next = "FINISH"

    def _open(self, m: Module) -> None:
        """Begin an incarnation: the counts of a class each clock."""
        event, state = self._event, self._state
        with m.State("OPEN"):
            m.d.comb += self._opens.eq(1)
            m.d.sync += [
                event.traffic_class.eq(event.traffic_class + 1),
                state.is_alive.eq(1),
                state.is_nacked.eq(0),
                state.owes_nack.eq(0),
                state.epoch.eq(event.epoch),
                state.window.eq(event.window),
                state.expected.eq(event.seq),
            ]
            with m.If(event.traffic_class == CLASSES - 1):
                m.d.sync += event.traffic_class.eq(0)
                m.next = "COMMAND"

    def _shut(self, m: Module) -> None:
        """End an incarnation: drop the next kept frame. ``present`` is empty afterwards."""
        state = self._state
        with m.State("SHUT"):
            m.d.sync += state.is_alive.eq(0)
            with m.If(self.free.valid):
                pass  # what was dropped has not left yet
            with m.Elif(state.kept == 0):
                m.next = "COMMAND"
            with m.Else():
                self._advance(m)
                with m.If(state.present[0]):
                    m.d.sync += state.kept.eq(state.kept - 1)
                    m.next = "FIND"
                with m.Elif(state.expected[:_SLICE].all()):
                    m.next = "FINISH"
        with m.State("DROP"):
            m.d.sync += [self.free.valid.eq(1), self.free.payload.eq(self.memories.kept.segment)]
            m.next = "FINISH"

    def _finish(self, m: Module, intake: Intake) -> None:
        """Deliver the frames whose turn it is now; write the state back."""
        state, memories = self._state, self.memories
        with m.State("FINISH"):
            with m.If(state.present[0] & self._kind.arrivals):
                m.next = "FETCH"
            with m.Else():
                m.d.comb += [memories.store.eq(1), intake.done.eq(self._is_done)]
                m.d.sync += [self._is_done.eq(0), self._owes.eq(0)]
                with m.If(self._owes):  # else there may be one that waits
                    m.d.sync += [self.owe.valid.eq(1), self.owe.payload.qp.eq(self._event.qp)]
                    m.d.sync += self.owe.payload.urgent.eq(self._is_urgent | (state.kept != 0))
                m.next = "TAKE"
        with m.State("FOLLOW"):
            m.d.sync += state.kept.eq(state.kept - 1)
            self._deliver(m, memories.kept)
            m.next = "FINISH"
