"""Opens and closes connections, and says who is at their other ends. Model: ``xoe.connection``."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import check_range
from xoe.connection import Notice, State
from xoe.offer import LARGEST

from ..layouts import counters
from . import connection_layouts as layouts
from .connection_layouts import CONNECTION_CFG, PEER
from .connection_memories import VIEWS, ConnectionMemories
from .connection_rules import PLAN, Rules
from .intake import Intake
from .layouts import qp_bits
from .receive_layouts import qp_layout
from .soundness import check_largest

PARTS = ("receiver", "sender", "acknowledger")

_DRAIN_CLOCKS = 4  # until an answer about the buffer is that of the connection asked for


class Connections(wiring.Component):
    """Works on one event at a time, about twelve clocks each, and between them looks at the time of one connection.

    An incarnation begins in this order: what was open is closed in the table, all parts are told that it ends, and when
    no frame of it is left, that the next one begins; then the table says so, the other end is answered, and the user
    told. None begins, and none ends for it, while delivered frames are in the buffer: the other end is there, and asks
    again, or its data frames do. If some are delivered after that was looked at, the end waits in ``LISTENING``.

    Ports, streams unless said otherwise:

    * ``s_axis_connect``: what the user wants; what makes no sense now is ignored. ``m_axis_notice``: what came of it.
    * ``control``: control frames that came; those not from the connection's other end are dropped and counted.
      ``answers``: control frames to send, but for what this end offers, which is the same in all.
    * ``failed``: the sending end has given up; ``epoch`` is that of the frames it sent. ``unaccepted``: a data frame or
      acknowledgement came with an epoch that is not open.
    * ``heard`` (no stream): a data frame or an acknowledgement of the present incarnation came. If none does for
      ``cfg.silence_timeout`` clocks, the connection ends as if it had failed.
    * ``open_x``, ``shut_x``: for the receiver, sender and acknowledger; each must be done when it is taken. No ``open``
      comes before the last ``shut`` was taken by all.
    * ``drained_qp`` (no stream), and up to three clocks later ``is_drained``: as the ``Receiver`` has it.
    * ``x_qp``, and two clocks later ``x`` (no streams): the table, for each of ``VIEWS``.
    * ``cfg``: no stream. ``counters``: control frames of others (``stranger``), and those from a connection's other end
      that offer what cannot be used (``bad_offer``).

    Everything is closed after a reset, but the epochs go on. While an output is not taken, all waits.

    Args:
        queue_pairs: a power of two, 1..256.
        counter_width: bits of a counter; counters wrap.
        largest: bytes of operations in the largest frame that this end sends in each of the classes 0, 1 and 2; an
            OPEN that does not grant that is not followed.

    Raises:
        ConfigError: a parameter out of bounds.
    """

    def __init__(self, queue_pairs: int, counter_width: int = 32, largest: Sequence[int] = LARGEST) -> None:
        self.bits = bits = qp_bits(queue_pairs)
        check_range("counter_width", counter_width, 2, 64)
        check_largest(largest)
        self.largest = tuple(largest)
        self.inputs = {
            "s_axis_connect": layouts.connect_layout(bits),
            "control": layouts.control_layout(bits),
            "failed": layouts.epoch_layout(bits),
            "unaccepted": layouts.epoch_layout(bits),
        }
        self.begins = layouts.begin_layouts(bits)
        views = {f"{name}_qp": In(bits) for name in VIEWS} | {name: Out(layouts.entry_layout()) for name in VIEWS}
        super().__init__(
            {
                **{name: In(stream.Signature(shape)) for name, shape in self.inputs.items()},
                **{f"open_{part}": Out(stream.Signature(self.begins[part])) for part in PARTS},
                **{f"shut_{part}": Out(stream.Signature(qp_layout(bits))) for part in PARTS},
                "m_axis_notice": Out(stream.Signature(layouts.notice_layout(bits))),
                "answers": Out(stream.Signature(layouts.answer_layout(bits))),
                "drained_qp": Out(bits),
                "is_drained": In(1),
                **views,
                "heard": In(layouts.heard_layout(bits)),
                "cfg": In(CONNECTION_CFG),
                "counters": Out(counters("stranger", "bad_offer", width=counter_width)),
            }
        )
        self._event, self._plan = Signal(layouts.event_layout(bits)), Signal(PLAN)
        self._heard = Signal(layouts.heard_layout(bits))
        self._told = Signal(len(PARTS))  # which parts have taken what they are told

    def elaborate(self, platform: object) -> Module:
        """Fetch, look, decide, and carry out."""
        m = Module()
        m.submodules.memories = memories = ConnectionMemories(self.bits)
        m.submodules.rules = rules = Rules(self.bits, self.largest)
        look = {"look": qp_layout(self.bits)}
        m.submodules.intake = intake = Intake({**self.inputs, **look}, self._event.shape())
        for name in self.inputs:
            connect(m, flipped(getattr(self, name)), getattr(intake, name))
        m.d.comb += intake.look.valid.eq(1)
        with m.If(intake.look.ready):
            m.d.sync += intake.look.payload.qp.eq(intake.look.payload.qp + 1)
        m.d.sync += self._heard.eq(self.heard)
        self._join(m, intake, memories, rules)
        self._say(m, memories.state)
        with m.FSM(name="step"):
            self._begin(m, intake, memories, rules)
            self._end_incarnation(m, memories)
            self._begin_incarnation(m, memories)
            self._tell(m)
        return m

    def _join(self, m: Module, intake: Intake, memories: ConnectionMemories, rules: Rules) -> None:
        m.d.comb += [
            memories.fetch_qp.eq(intake.event.qp),
            memories.qp.eq(self._event.qp),
            self.drained_qp.eq(self._event.qp),
            rules.event.eq(self._event),
            rules.state.eq(memories.state),
            rules.kind.eq(intake.served),
            rules.is_drained.eq(self.is_drained),
            rules.cfg.eq(self.cfg),
            rules.heard_at.eq(memories.heard_at),
            memories.now.eq(rules.now),
            memories.heard.eq(self._heard),
        ]
        for name in VIEWS:
            m.d.comb += getattr(memories, f"{name}_qp").eq(getattr(self, f"{name}_qp"))
            m.d.comb += getattr(self, name).eq(getattr(memories, name))

    def _say(self, m: Module, state: data.View) -> None:
        """What goes out is in the registers of event, state and plan."""
        event, plan, answer = self._event, self._plan, self.answers.payload
        m.d.comb += [answer[name].eq(state[name]) for name in PEER]
        m.d.comb += [answer[name].eq(plan[name]) for name in ("message", "echo_valid", "is_open", "epoch", "echo")]
        m.d.comb += [answer.qp.eq(event.qp), self.m_axis_notice.payload.qp.eq(event.qp)]
        for part in PARTS:
            begin = getattr(self, f"open_{part}").payload
            m.d.comb += getattr(self, f"shut_{part}").payload.qp.eq(event.qp)
            values = {
                "seq": event.first_seq,
                "credits": event.first_credit,
                "epoch": plan.epoch,
                "peer_epoch": event.epoch,
                "window": event.window if part == "sender" else self.cfg.window,
            }
            m.d.comb += [
                begin[name].eq(values[name] if name in values else event[name]) for name in self.begins[part].members
            ]

    def _begin(self, m: Module, intake: Intake, memories: ConnectionMemories, rules: Rules) -> None:
        """Clear the states; take an event, and wait for what the rules say of it."""
        event = self._event
        intake.add_steps(m, event, memories.store)
        with m.State("LOAD"):
            m.d.comb += [intake.choose.eq(1), memories.load.eq(1)]
            m.next = "COMPARE"
        for step, following in (("COMPARE", "MATCH"), ("MATCH", "WAIT"), ("WAIT", "SETTLE"), ("SETTLE", "DECIDE")):
            with m.State(step):
                m.next = following
        with m.State("DECIDE"):
            m.d.sync += self._plan.eq(rules.plan)
            m.d.comb += [memories.change.eq(1), memories.changed.eq(rules.changed)]
            for name in ("stranger", "bad_offer"):
                with m.If(getattr(rules, f"is_{name}")):
                    m.d.sync += self.counters[name].eq(self.counters[name] + 1)
            m.d.sync += self._told.eq(0)
            m.next = "STORE"
            with m.If(rules.plan.opens):
                m.next = "OPEN"
            with m.If(rules.plan.shuts):
                m.next = "SHUT"

    def _tell_parts(self, m: Module, prefix: str) -> Value:
        """Offer to each part until it has taken; whether all have."""
        taken = []
        for index, part in enumerate(PARTS):
            port = getattr(self, f"{prefix}_{part}")
            m.d.comb += port.valid.eq(~self._told[index])
            with m.If(port.ready):
                m.d.sync += self._told[index].eq(1)
            taken.append(self._told[index])
        return Cat(taken).all()

    def _end_incarnation(self, m: Module, memories: ConnectionMemories) -> None:
        """Close the table, then the parts. What is to be opened instead waits for the buffer to be drained.

        It was when that was decided, but frames may have been delivered until the receiver had shut.
        """
        plan, state, clocks = self._plan, memories.state, Signal(range(_DRAIN_CLOCKS + 1))
        with m.State("SHUT"):
            m.d.comb += memories.close.eq(1)
            m.d.sync += clocks.eq(0)
            with m.If(self._tell_parts(m, "shut")):
                m.d.sync += self._told.eq(0)
                m.next = "STORE"
                with m.If(plan.opens):
                    m.next = "DRAIN"
        with m.State("DRAIN"):
            m.d.sync += clocks.eq(clocks + 1)
            with m.If(clocks == _DRAIN_CLOCKS):
                m.next = "OPEN"
                with m.If(~self.is_drained):
                    m.d.sync += [plan.opens.eq(0), plan.says.eq(0)]
                    m.d.comb += [memories.change.eq(1), memories.changed.eq(state)]
                    m.d.comb += memories.changed.phase.eq(State.LISTENING)
                    m.d.comb += memories.changed.epoch.eq(state.epoch - 1)  # as it was: it is proposed again
                    m.next = "STORE"

    def _begin_incarnation(self, m: Module, memories: ConnectionMemories) -> None:
        """Open the parts, then the table. The other end counts as heard; whom else was heard right now goes first."""
        with m.State("OPEN"), m.If(self._tell_parts(m, "open")):
            m.next = "STORE"
        with m.State("STORE"):
            m.d.comb += [memories.store.eq(1), memories.begin.eq(self._plan.opens)]
            with m.If(~self._plan.opens | ~self._heard.valid):
                m.next = "SAY"

    def _tell(self, m: Module) -> None:
        """Answer the other end, then tell the user: at first what ended, then what began."""
        plan, notice = self._plan, self.m_axis_notice
        with m.State("SAY"):
            m.d.comb += self.answers.valid.eq(plan.says)
            with m.If(self.answers.ready | ~plan.says):
                m.next = "NOTIFY"
        with m.State("NOTIFY"):
            m.d.comb += notice.valid.eq(plan.notifies | plan.opens)
            m.d.comb += notice.payload.notice.eq(Mux(plan.notifies, plan.notice, Notice.OPENED))
            with m.If(plan.notifies & notice.ready):
                m.d.sync += plan.notifies.eq(0)
            with m.If(~plan.notifies & (notice.ready | ~plan.opens)):
                m.next = "TAKE"
