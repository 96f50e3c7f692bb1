"""Counts the credits that each connection gets back. Model: ``xoe.credit.CreditReceiver``."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory, WritePort
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.acknowledger import URGENT_SHARE
from xoe.cyclic import CREDIT_BITS, EPOCH_BITS

from ..memories import NO_COLLISION
from . import receive_layouts as layouts
from .intake import Intake
from .layouts import CLASSES, WORDS_BITS, credits_needed
from .receive_layouts import CLASS_BITS

_COUNT = data.StructLayout({"freed": CREDIT_BITS, "told": CREDIT_BITS})


class Returns(wiring.Component):
    """Works on one event at a time: seven clocks for a frame that has left the buffer, eleven for a report.

    Ports and parameters are those of ``Receiver``, but for these:

    * ``commands``: from ``Order``; done when taken. ``is_told``: for one clock, when a report was; ``told`` has its
      counts, and stands until the next report is worked on.
    * ``shown_qp``, ``shown_class``, and two clocks later ``shown``: credits freed. ``drained_qp``, and two clocks later
      ``released``: frames that have come back by ``freed``; counts round.
    """

    def __init__(self, bits: int, pages: int, credit_words: int, granted: Sequence[int]) -> None:
        self.bits, self.credit_words, self.granted = bits, credit_words, tuple(granted)
        self.inputs = {"commands": layouts.command_layout(bits), "freed": layouts.freed_layout(bits)}
        super().__init__(
            {
                **{name: In(stream.Signature(shape)) for name, shape in self.inputs.items()},
                "owe": Out(stream.Signature(layouts.owe_layout(bits))),
                "is_told": Out(1),
                "told": Out(layouts.FREED),
                "shown_qp": In(bits),
                "shown_class": In(CLASS_BITS),
                "shown": Out(CREDIT_BITS),
                "drained_qp": In(bits),
                "released": Out(range(2 * pages)),
            }
        )
        self._end = Signal(data.StructLayout({"is_alive": 1, "epoch": EPOCH_BITS, "released": range(2 * pages)}))
        self._event = Signal(data.StructLayout({**self.inputs["commands"].members, "words": WORDS_BITS}))
        self._count = Signal(_COUNT)

    def elaborate(self, platform: object) -> Module:
        """The memories, the sums, and the sequence of steps."""
        m = Module()
        m.submodules.intake = intake = Intake(self.inputs, self._event.shape(), ("commands",))
        for name in self.inputs:
            connect(m, flipped(getattr(self, name)), getattr(intake, name))
        ends, counts = self._remember(m, intake)
        is_current, is_urgent, total = self._add(m, intake)
        m.d.comb += [counts.data.freed.eq(total), counts.data.told.eq(self._count.told)]
        m.d.sync += self.is_told.eq(0)
        with m.If(self.owe.ready):
            m.d.sync += self.owe.valid.eq(0)
        with m.FSM(name="step"):
            self._begin(m, intake, ends)
            self._free(m, intake, ends, counts, is_current, is_urgent)
            self._tell(m, counts)
            self._open(m, counts)
            with m.State("DONE"):
                m.d.comb += [ends.en.eq(1), intake.done.eq(1)]
                m.next = "TAKE"
        return m

    def _remember(self, m: Module, intake: Intake) -> tuple[WritePort, WritePort]:
        """Ports that write an end and a count. Both are read ahead of the event, and may be looked at in any clock."""
        m.submodules.ends = ends = Memory(shape=self._end.shape(), depth=1 << self.bits, init=[], attrs=NO_COLLISION)
        m.submodules.shown_ends = shown_ends = Memory(shape=self.released.shape(), depth=1 << self.bits, init=[])
        m.submodules.counts = counts = Memory(shape=_COUNT, depth=4 << self.bits, init=[], attrs=NO_COLLISION)
        m.submodules.shown_counts = shown_counts = Memory(shape=CREDIT_BITS, depth=4 << self.bits, init=[])
        end, write_end, mirror_end = ends.read_port(), ends.write_port(), shown_ends.write_port()
        count, write_count, mirror_count = counts.read_port(), counts.write_port(), shown_counts.write_port()
        released, shown = shown_ends.read_port(), shown_counts.read_port()
        place = Cat(self._event.traffic_class[:2], self._event.qp)
        m.d.comb += [port.addr.eq(self._event.qp) for port in (write_end, mirror_end)]
        m.d.comb += [port.addr.eq(place) for port in (count, write_count, mirror_count)]
        m.d.comb += [
            end.addr.eq(intake.event.qp),
            write_end.data.eq(self._end),
            mirror_end.data.eq(self._end.released),
            mirror_end.en.eq(write_end.en),
            mirror_count.data.eq(write_count.data.freed),
            mirror_count.en.eq(write_count.en),
            released.addr.eq(self.drained_qp),
            shown.addr.eq(Cat(self.shown_class[:2], self.shown_qp)),
        ]
        m.d.sync += [self._count.eq(count.data), self.released.eq(released.data), self.shown.eq(shown.data)]
        with m.If(intake.is_fetched):
            m.d.sync += self._end.eq(end.data)
        return write_end, write_count

    def _add(self, m: Module, intake: Intake) -> tuple[Signal, Signal, Signal]:
        """What is free with this event, if it is of the present incarnation, and whether it is urgent: a step a clock.

        It is if that is much, or if counts were found to differ. A frame of a class without credits frees none.
        """
        event = self._event
        is_current, is_urgent = Signal(), Signal()
        step, total, untold, quarter = (
            Signal(CREDIT_BITS, name=name) for name in ("step", "total", "untold", "quarter")
        )
        quarters = Array(Const(max(1, -(-credits // URGENT_SHARE)), CREDIT_BITS) for credits in (*self.granted, 0))
        needed = credits_needed(event.words, self.credit_words)
        m.d.sync += [
            step.eq(Mux(event.reconciles, event.credits, needed)),
            total.eq(self._count.freed + step),
            untold.eq(total - self._count.told),
            quarter.eq(quarters[event.traffic_class[:2]]),
            is_urgent.eq((untold >= quarter) | event.reconciles),
            is_current.eq(self._end.is_alive & (self._end.epoch == event.epoch) & (event.traffic_class < CLASSES)),
        ]
        return is_current, is_urgent, total

    def _begin(self, m: Module, intake: Intake, ends: WritePort) -> None:
        """Clear the ends; take an event, its connection's end and its class's count."""
        event, end, is_freed = self._event, self._end, intake.served[1]
        intake.add_steps(m, event, ends.en)
        with m.State("LOAD"):
            m.d.comb += intake.choose.eq(is_freed)
            m.next = "COUNT"
        with m.State("COUNT"):
            m.next = "ADD"
            with m.If(is_freed):
                m.d.sync += end.released.eq(end.released + 1)
            for bit, state in (("reports", "TELL"), ("opens", "OPEN"), ("shuts", "DONE")):
                with m.If(event[bit]):
                    m.next = state
            with m.If(event.shuts):
                m.d.sync += end.is_alive.eq(0)

    def _free(
        self, m: Module, intake: Intake, ends: WritePort, counts: WritePort, is_current: Signal, is_urgent: Signal
    ) -> None:
        """Wait for the sums and for room to tell of them; then write them."""
        is_free = Signal()
        m.d.sync += is_free.eq(~self.owe.valid)
        for state, following in (("ADD", "SUBTRACT"), ("SUBTRACT", "COMPARE"), ("COMPARE", "STORE")):
            with m.State(state):
                m.next = following
        with m.State("STORE"), m.If(is_free):
            m.d.comb += [ends.en.eq(1), counts.en.eq(is_current), intake.done.eq(1)]
            m.d.sync += [
                self.owe.valid.eq(is_current),
                self.owe.payload.qp.eq(self._event.qp),
                self.owe.payload.urgent.eq(is_urgent),
                self.owe.payload.is_credit.eq(1),
                self.owe.payload.traffic_class.eq(self._event.traffic_class),
            ]
            m.next = "TAKE"

    def _tell(self, m: Module, counts: WritePort) -> None:
        """Keep the counts of all classes for the report, one after the other."""
        event, count = self._event, self._count
        with m.State("TELL"):
            m.d.comb += [counts.en.eq(1), counts.data.freed.eq(count.freed), counts.data.told.eq(count.freed)]
            m.d.sync += event.traffic_class.eq(event.traffic_class + 1)
            m.d.sync += self.told[event.traffic_class[:2]].eq(count.freed)
            m.next = "READ"
            with m.If(event.traffic_class == CLASSES - 1):
                m.d.sync += self.is_told.eq(1)
                m.next = "DONE"
        with m.State("READ"):
            m.next = "AGAIN"
        with m.State("AGAIN"):
            m.next = "TELL"

    def _open(self, m: Module, counts: WritePort) -> None:
        """Begin an incarnation: the counts of a class each clock."""
        event, end = self._event, self._end
        with m.State("OPEN"):
            m.d.comb += [counts.en.eq(1), counts.data.freed.eq(event.credits), counts.data.told.eq(event.credits)]
            m.d.sync += [end.is_alive.eq(1), end.epoch.eq(event.epoch)]
            m.d.sync += event.traffic_class.eq(event.traffic_class + 1)
            with m.If(event.traffic_class == CLASSES - 1):
                m.next = "DONE"
