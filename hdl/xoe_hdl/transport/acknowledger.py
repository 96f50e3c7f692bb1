"""Decides when acknowledgements are sent by themselves, for all connections. Model: ``xoe.acknowledger``."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory, WritePort
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.transport import CLOCKS_MAX

from ..memories import NO_COLLISION
from . import receive_layouts as layouts
from .intake import Intake
from .layouts import CLASSES, qp_bits

CLOCK_BITS = CLOCKS_MAX.bit_length()
EVERY_BITS = 7
OWED_MAX = 64
_STAMP_BITS = CLOCK_BITS + 1  # so that the longest time is passed long before the clock is round
_PATIENCE = 4  # events that may come before a look at the next connection

ACK_CFG = data.StructLayout({"ack_every": EVERY_BITS, "ack_delay": CLOCK_BITS, "sync_interval": CLOCK_BITS})
"""As in ``xoe.transport.TransportSettings``; may change at any time."""


class Acknowledger(wiring.Component):
    """Works on one event at a time, four clocks each, and between them looks at one connection after the other.

    A look takes five clocks, and comes at the latest after four events; so the times of ``cfg`` are kept to 22 clocks
    for each queue pair, to 6 if nothing happens, and if ``due`` is taken at once. What is urgent is offered as soon as
    ``due`` is free, unless a look has found another connection first.

    Ports, streams unless said otherwise:

    * ``owe``: a data frame came, or credits were freed.
    * ``paid``: a data frame carries the acknowledgement, and the credits of a class. It must look these up in the clock
      in which this is taken or later; so nothing that is owed is taken for paid. If an acknowledgement is due at once,
      it pays for nothing.
    * ``due``: an acknowledgement is to be sent by itself. Taking it counts as sending, so what it says must be asked of
      the ``Receiver`` afterwards. It stays offered if a data frame pays meanwhile, or the connection ends.
    * ``open``, ``shut``: the connection takes part, or does not any more. Nothing is owed at first.
    * ``cfg``: no stream; see ``ACK_CFG``.

    Args:
        queue_pairs: a power of two, 1..256.

    Raises:
        ConfigError: another number.
    """

    def __init__(self, queue_pairs: int) -> None:
        self.bits = bits = qp_bits(queue_pairs)
        qp = layouts.qp_layout(bits)
        self.inputs = {"owe": layouts.owe_layout(bits), "paid": layouts.paid_layout(bits), "open": qp, "shut": qp}
        super().__init__(
            {
                **{name: In(stream.Signature(shape)) for name, shape in self.inputs.items()},
                "due": Out(stream.Signature(qp)),
                "cfg": In(ACK_CFG),
            }
        )
        self._state = Signal(
            data.StructLayout(
                {
                    "is_open": 1,
                    "is_urgent": 1,
                    "is_late": 1,  # the first thing owed waits for longer than it may
                    "is_silent": 1,  # no acknowledgement was sent for too long
                    "owed": range(OWED_MAX + 1),  # data frames
                    "frees": CLASSES,  # the classes of which credits were freed
                    "since": _STAMP_BITS,
                    "last": _STAMP_BITS,
                }
            )
        )
        self._event = Signal(layouts.owe_layout(bits))
        self._class = Signal(CLASSES)  # of the event, a clock later; one bit at the most
        self._now = Signal(_STAMP_BITS)

    def elaborate(self, platform: object) -> Module:
        """The state's memory, the turns, what each event does, and the look at the clock."""
        m = Module()
        m.d.sync += self._now.eq(self._now + 1)
        qp = layouts.qp_layout(self.bits)
        m.submodules.intake = intake = Intake(
            {"taken": qp, "look": qp, **self.inputs}, self._event.shape(), first="taken"
        )
        shape = self._state.shape()
        m.submodules.states = states = Memory(shape=shape, depth=1 << self.bits, init=[], attrs=NO_COLLISION)
        read, write = states.read_port(), states.write_port()
        m.d.comb += [
            read.addr.eq(intake.event.qp),
            write.addr.eq(self._event.qp),
            write.data.eq(self._state),
        ]
        m.d.sync += self._class.eq(Cat(self._event.traffic_class == number for number in range(CLASSES)))
        self._let_in(m, intake)
        kinds = data.View(data.StructLayout(dict.fromkeys(intake.inputs, 1)), intake.served)
        is_busy = self._send(m, intake)
        with m.FSM(name="step"):
            self._begin(m, intake, write, read.data)
            self._do(m, kinds)
            self._look(m)
            self._offer(m, write, kinds.look, is_busy)
        return m

    def _let_in(self, m: Module, intake: Intake) -> None:
        """A look waits for a pause, but not for long."""
        patience, waits = Signal(range(_PATIENCE + 1)), Cat(getattr(self, name).valid for name in self.inputs)
        for name in self.inputs:
            connect(m, flipped(getattr(self, name)), getattr(intake, name))
        look = intake.look
        m.d.comb += look.valid.eq((waits == 0) | (patience == _PATIENCE))
        next_qp = Signal(self.bits)
        m.d.comb += look.payload.qp.eq(next_qp)
        with m.If(look.ready):
            m.d.sync += [next_qp.eq(next_qp + 1), patience.eq(0)]
        with m.Elif(intake.take & (patience != _PATIENCE)):
            m.d.sync += patience.eq(patience + 1)

    def _send(self, m: Module, intake: Intake) -> Signal:
        """Note what was sent before any other event; whether one is offered or not noted yet."""
        is_busy, taken = Signal(), intake.taken
        m.d.comb += [is_busy.eq(self.due.valid | taken.valid), taken.payload.eq(self.due.payload)]
        with m.If(self.due.valid & self.due.ready):
            m.d.sync += [self.due.valid.eq(0), taken.valid.eq(1)]
        with m.If(taken.ready):
            m.d.sync += taken.valid.eq(0)
        return is_busy

    def _begin(self, m: Module, intake: Intake, write: WritePort, fetched: Value) -> None:
        """Clear the states; take an event and its connection's state."""
        event = self._event
        intake.add_steps(m, event, write.en)
        with m.State("LOAD"):
            m.d.comb += intake.choose.eq(1)
            m.d.sync += self._state.eq(fetched)
            m.next = "DO"

    def _do(self, m: Module, kinds: data.View) -> None:
        """Change the state as the event demands."""
        state, event, is_enough, left = self._state, self._event, Signal(), Signal(CLASSES)
        m.d.comb += [
            is_enough.eq(~event.is_credit & (state.owed + 1 >= self.cfg.ack_every)),
            left.eq(state.frees & ~self._class),
        ]
        with m.State("DO"):
            m.next = "STORE"
            with m.If(kinds.look):
                m.next = "COMPARE"
            with m.If(kinds.owe):
                m.d.sync += state.is_urgent.eq(state.is_urgent | event.urgent | is_enough)
                with m.If(event.is_credit):
                    m.d.sync += state.frees.eq(state.frees | self._class)
                with m.Elif(state.owed != OWED_MAX):
                    m.d.sync += state.owed.eq(state.owed + 1)
                with m.If(~self._owes()):
                    m.d.sync += state.since.eq(self._now)
            with m.If(kinds.paid & ~state.is_urgent):
                m.d.sync += [state.owed.eq(0), state.frees.eq(left), state.is_late.eq(state.is_late & left.any())]
            with m.If(kinds.taken | kinds.open):
                m.d.sync += [state.owed.eq(0), state.frees.eq(0), state.is_urgent.eq(0), state.is_late.eq(0)]
                m.d.sync += [state.last.eq(self._now), state.is_silent.eq(0)]
            for kind, is_open in ((kinds.open, 1), (kinds.shut, 0)):
                with m.If(kind):
                    m.d.sync += state.is_open.eq(is_open)

    def _owes(self) -> Value:
        return (self._state.owed != 0) | self._state.frees.any()

    def _look(self, m: Module) -> None:
        """Compare the times; what has passed stays passed, however long the connection is not looked at again."""
        state, cfg, waited, silent = self._state, self.cfg, Signal(_STAMP_BITS), Signal(_STAMP_BITS)
        m.d.sync += [waited.eq(self._now - state.since), silent.eq(self._now - state.last)]
        with m.State("COMPARE"):
            m.d.sync += [
                state.is_late.eq(state.is_late | self._owes() & (waited >= cfg.ack_delay)),
                state.is_silent.eq(state.is_silent | (cfg.sync_interval != 0) & (silent >= cfg.sync_interval)),
            ]
            m.next = "STORE"

    def _offer(self, m: Module, write: WritePort, is_look: Value, is_busy: Value) -> None:
        """Write the state back, and offer the connection if its time has come.

        One that a look found while another was offered comes before those that are urgent.
        """
        state, event, due = self._state, self._event, self.due
        is_passed_over, passed_over, is_due = Signal(), Signal(self.bits), Signal()
        m.d.comb += is_due.eq(state.is_open & (state.is_urgent | state.is_late | state.is_silent))
        with m.State("STORE"):
            m.d.comb += write.en.eq(1)
            with m.If(is_due & ~is_busy & (is_look | ~is_passed_over)):
                m.d.sync += [due.valid.eq(1), due.payload.qp.eq(event.qp)]
            with m.If(is_look & is_passed_over & (passed_over == event.qp)):
                m.d.sync += is_passed_over.eq(0)
            with m.If(is_look & is_due & is_busy & (due.payload.qp != event.qp)):
                m.d.sync += [is_passed_over.eq(1), passed_over.eq(event.qp)]
            m.next = "TAKE"
