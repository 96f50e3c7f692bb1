"""What an event means for a connection: ``xoe.connection``, as a step of logic a clock."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from xoe.connection import Notice, State
from xoe.cyclic import EPOCH_BITS
from xoe.wire import Message

from . import connection_layouts as layouts
from .connection_layouts import BODY, CONNECTION_CFG, PEER, Action
from .connection_memories import STAMP_BITS, STATE
from .soundness import Soundness

KINDS = data.StructLayout(dict.fromkeys(("connect", "control", "failed", "unaccepted", "look"), 1))
"""Where an event comes from; one bit is set."""

PLAN = data.StructLayout(
    {
        "shuts": 1,  # what was open ends
        "opens": 1,
        "says": 1,  # a control frame, of which the next five are
        "message": BODY["message"],
        "echo_valid": 1,
        "is_open": 1,
        "epoch": EPOCH_BITS,
        "echo": EPOCH_BITS,
        "notifies": 1,
        "notice": 3,
    }
)
"""What has to be done; the user is told ``OPENED`` besides, if ``opens``."""


class Rules(wiring.Component):
    """A free-running pipeline, whose outputs are right from the fifth clock on in which the inputs stand still.

    ``is_drained`` may come two clocks after the other inputs; ``now`` is the clock, ``heard_at`` when the other end was
    heard. ``changed`` is the state afterwards; ``is_stranger``: it is a control frame of somebody else;
    ``is_bad_offer``: an OPEN that offers what cannot be used.

    Args:
        bits: of the number of a queue pair.
        largest: bytes of the largest operation that this end sends in each class.
    """

    def __init__(self, bits: int, largest: Sequence[int]) -> None:
        self.largest = tuple(largest)
        super().__init__(
            {
                "event": In(layouts.event_layout(bits)),
                "state": In(STATE),
                "kind": In(KINDS),
                "is_drained": In(1),
                "heard_at": In(STAMP_BITS),
                "cfg": In(CONNECTION_CFG),
                "now": Out(STAMP_BITS),
                "plan": Out(PLAN),
                "changed": Out(STATE),
                "is_stranger": Out(1),
                "is_bad_offer": Out(1),
            }
        )
        self._proposal = Signal(EPOCH_BITS)
        names = ("is_known", "knows_peer", "echoes_epoch", "echoes_proposal", "proposes", "is_overdue", "may_ask")
        self._is = Signal(
            data.StructLayout(dict.fromkeys((*names, "may_open", "offers", "offers_bad", "is_silent"), 1))
        )

    def elaborate(self, platform: object) -> Module:
        """Compare, then decide; what is not said stays."""
        m = Module()
        kind, phase = self.kind, self.state.phase
        m.d.sync += self.now.eq(self.now + 1)
        self._compare(m)
        m.d.sync += [
            self.plan.eq(0),
            self.plan.epoch.eq(self.state.epoch),
            self.plan.echo.eq(self.event.epoch),
            self.changed.eq(self.state),
            self.is_stranger.eq(kind.control & (phase != State.CLOSED) & ~self._is.is_known),
            self.is_bad_offer.eq(kind.control & self._is.is_known & self._is.offers_bad),
        ]
        with m.If(kind.connect):
            self._connect(m)
        with m.If(kind.look & self._is.is_overdue):
            self._time(m)
        with m.If(kind.look & self._is.is_silent):
            self._void(m, State.LISTENING, Notice.LOST)
        with m.If(kind.failed & (phase == State.OPEN) & self._is.knows_peer):
            self._void(m, State.LISTENING, Notice.LOST)
        with m.If(kind.unaccepted & self._is.proposes & self._may_answer() & self._is.may_open):
            self._say(m, Message.OPEN, self._proposal)
        with m.If(kind.control & self._is.is_known):
            with m.If(self._is.offers & self._may_answer()):
                self._on_open(m)
            with m.If(self._is.knows_peer & self._is.echoes_epoch):
                self._on_close(m)
        return m

    def _compare(self, m: Module) -> None:
        event, state, found = self.event, self.state, self._is
        m.submodules.soundness = soundness = Soundness(self.largest)
        m.d.comb += [soundness.offer[name].eq(event[name]) for name in soundness.offer.shape().members]
        age, silence, is_open_frame = Signal(STAMP_BITS), Signal(STAMP_BITS), event.message == Message.OPEN
        is_next = state.phase != State.OPENING
        m.d.sync += [
            self._proposal.eq(state.epoch + is_next),
            age.eq(self.now - state.started),
            silence.eq(self.now - self.heard_at),
            found.is_silent.eq((state.phase == State.OPEN) & (silence >= self.cfg.silence_timeout)),
            found.is_overdue.eq(state.is_timed & (age >= self.cfg.open_timeout)),
            found.may_ask.eq(state.asked <= self.cfg.retries),
            found.is_known.eq(sum((event[name] != state[name] for name in PEER), Value.cast(0)) == 0),
            found.knows_peer.eq(event.epoch == state.peer_epoch),
            found.echoes_epoch.eq(event.echo_valid & (event.echo == state.epoch)),
            found.echoes_proposal.eq(event.echo_valid & (event.echo == self._proposal)),
            found.proposes.eq(event.epoch == self._proposal),
            found.offers.eq(is_open_frame & soundness.is_sound),
            found.offers_bad.eq(is_open_frame & ~soundness.is_sound),
            found.may_open.eq(self.is_drained),
        ]

    def _may_answer(self) -> Value:
        phase = self.state.phase
        return (phase == State.LISTENING) | (phase == State.OPENING) | (phase == State.OPEN)

    def _connect(self, m: Module) -> None:
        """The user wants something."""
        event, changed, phase = self.event, self.changed, self.state.phase
        is_closed, is_listening = phase == State.CLOSED, phase == State.LISTENING
        with m.If((event.action == Action.LISTEN) & is_closed):
            m.d.sync += changed.phase.eq(State.LISTENING)
            m.d.sync += [changed[name].eq(event[name]) for name in PEER]
        with m.If((event.action == Action.OPEN) & (is_closed | is_listening)):
            m.d.sync += [changed.phase.eq(State.OPENING), changed.epoch.eq(self._proposal)]
            m.d.sync += [changed[name].eq(event[name]) for name in PEER]
            self._ask(m, Message.OPEN, self._proposal, is_first=True)
        with m.If(event.action == Action.CLOSE):
            with m.If(phase == State.OPEN):
                self._void(m, State.CLOSING)
                self._ask(m, Message.CLOSE, self.state.epoch, is_first=True)
            with m.If(is_listening | (phase == State.OPENING)):
                self._stop(m, State.CLOSED, Notice.CLOSED)

    def _time(self, m: Module) -> None:
        """Nobody has answered: ask again, or give up."""
        is_closing = self.state.phase == State.CLOSING
        with m.If(self._is.may_ask & is_closing):
            self._ask(m, Message.CLOSE, self.state.epoch)
        with m.Elif(self._is.may_ask):
            self._ask(m, Message.OPEN, self.state.epoch)
        with m.Elif(is_closing):
            self._stop(m, State.CLOSED, Notice.CLOSED)
        with m.Else():
            self._stop(m, State.LISTENING, Notice.OPEN_FAILED)

    def _on_open(self, m: Module) -> None:
        """The rules of OPEN frames, of which the first that applies is followed."""
        event, found, plan = self.event, self._is, self.plan
        is_open = self.state.phase == State.OPEN
        with m.If(is_open & found.knows_peer & (found.echoes_epoch | ~event.echo_valid)):
            self._say(m, Message.OPEN, self.state.epoch, echoes=True)
            m.d.sync += [plan.is_open.eq(1), plan.says.eq(~event.is_open)]
        with m.Elif(found.may_open & ~event.echo_valid):
            self._say(m, Message.OPEN, self._proposal, echoes=True)
        with m.Elif(found.may_open & found.echoes_proposal):
            self._say(m, Message.OPEN, self._proposal, echoes=True)
            m.d.sync += [plan.is_open.eq(1), plan.says.eq(~event.is_open), plan.opens.eq(1)]
            m.d.sync += [self.changed.epoch.eq(self._proposal), self.changed.peer_epoch.eq(event.epoch)]
            m.d.sync += [self.changed.phase.eq(State.OPEN), self.changed.is_timed.eq(0)]
            m.d.sync += self.changed.atomic_slots.eq(event.atomic_slots)
            m.d.sync += [plan.shuts.eq(is_open), plan.notifies.eq(is_open), plan.notice.eq(Notice.PEER_RESET)]

    def _on_close(self, m: Module) -> None:
        """CLOSE and CLOSED of the present incarnation, or the last one."""
        phase, message = self.state.phase, self.event.message
        with m.If(message == Message.CLOSE):
            with m.If(phase == State.OPEN):
                self._void(m, State.LISTENING, Notice.PEER_CLOSED)
            self._say(m, Message.CLOSED, self.state.epoch, echoes=True)
        with m.If((message == Message.CLOSED) & (phase == State.CLOSING)):
            self._stop(m, State.CLOSED, Notice.CLOSED)

    def _void(self, m: Module, phase: State, notice: Notice | None = None) -> None:
        """What is open ends."""
        m.d.sync += [self.plan.shuts.eq(1), self.changed.is_timed.eq(0), self.changed.phase.eq(phase)]
        if notice is not None:
            m.d.sync += [self.plan.notifies.eq(1), self.plan.notice.eq(notice)]

    def _stop(self, m: Module, phase: State, notice: Notice) -> None:
        """Nothing is waited for any more."""
        m.d.sync += [self.changed.phase.eq(phase), self.changed.is_timed.eq(0)]
        m.d.sync += [self.plan.notifies.eq(1), self.plan.notice.eq(notice)]

    def _ask(self, m: Module, message: Message, epoch: Value, is_first: bool = False) -> None:
        """Send OPEN or CLOSE, and wait for the answer."""
        self._say(m, message, epoch, echoes=message == Message.CLOSE)
        if message == Message.CLOSE:
            m.d.sync += self.plan.echo.eq(self.state.peer_epoch)
        m.d.sync += [
            self.changed.is_timed.eq(1),
            self.changed.started.eq(self.now),
            self.changed.asked.eq(1 if is_first else self.state.asked + 1),
        ]

    def _say(self, m: Module, message: Message, epoch: Value, echoes: bool = False) -> None:
        plan = self.plan
        m.d.sync += [plan.says.eq(1), plan.message.eq(message), plan.epoch.eq(epoch), plan.echo_valid.eq(echoes)]
