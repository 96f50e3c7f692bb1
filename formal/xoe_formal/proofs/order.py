"""The engine that puts frames in order: every PSN of an incarnation is delivered once, in its turn, or not at all."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream

from xoe.cyclic import EPOCH_BITS, SEQ_BITS

from ..harness import Harness
from ..monitors import check_stable
from ..proof import Proof

WINDOW, PAGES, CREDIT_WORDS = 8, 4, 4
BITS = 1  # of the number of a queue pair
CLOCKS = 30  # that are tried from a reset: the clearing, an opening, and two frames in any order, or other events


class InOrder(Harness):
    """The engine among those who use it as they must, and what is known of one of the connections, whichever it is.

    A frame is known by ``words``, which is the low part of its PSN.
    """

    def __init__(self, order: Any) -> None:
        super().__init__()
        self.order = order

    def build(self, m: Module) -> None:
        """Drive the inputs, follow the connection, and look at what is delivered."""
        m.submodules.order = order = self.order
        watched, goes_back, is_settled = Signal(BITS), Signal(), Signal()
        with m.If(~is_settled):
            m.d.sync += [is_settled.eq(1), watched.eq(self.anything("watched", watched))]
            m.d.sync += goes_back.eq(self.anything("go_back_n", goes_back))
        for name in order.inputs:
            self._offer(m, name, getattr(order, name))
        for name in ("free", "owe", "commands"):
            sent = getattr(order, name)
            m.d.comb += sent.ready.eq(self.anything(f"{name}_ready", sent.ready))
            check_stable(self, m, name, sent)
        m.d.comb += order.go_back_n.eq(goes_back)
        self._follow(m, watched)

    def _offer(self, m: Module, name: str, port: stream.Interface) -> None:
        """Anything at any time, which stays until it is taken."""
        payload = Value.cast(port.payload)
        waits, kept = Signal(name=f"{name}_waited"), Signal(len(payload), name=f"{name}_was")
        m.d.sync += [waits.eq(port.valid & ~port.ready), kept.eq(payload)]
        m.d.comb += [
            port.valid.eq(waits | self.anything(f"{name}_valid", waits)),
            payload.eq(Mux(waits, kept, self.anything(f"{name}_payload", payload))),
        ]

    def _follow(self, m: Module, watched: Signal) -> None:
        """An incarnation ends before the next begins; of its frames the next one to be delivered is ``following``."""
        order, opening, arrival, delivered = self.order, self.order.open, self.order.arrivals, self.order.delivered
        is_alive, epoch, following = Signal(), Signal(EPOCH_BITS), Signal(SEQ_BITS)
        is_ours = delivered.valid & (delivered.frame.qp == watched)
        self.assume(~arrival.valid | (arrival.payload.words == arrival.payload.seq[: len(arrival.payload.words)]))
        self.assume(~opening.valid | (opening.payload.qp != watched) | ~is_alive)
        self.assume(~opening.valid | (opening.payload.window != 0) & (opening.payload.window <= WINDOW))
        with m.If(is_ours):
            m.d.sync += following.eq(following + 1)
        with m.If(opening.valid & opening.ready & (opening.payload.qp == watched)):
            m.d.sync += [is_alive.eq(1), epoch.eq(opening.payload.epoch), following.eq(opening.payload.seq)]
        with m.Elif(order.shut.valid & order.shut.ready & (order.shut.payload.qp == watched)):
            m.d.sync += is_alive.eq(0)
        self.check("delivered_in_turn", ~is_ours | (delivered.frame.words == following[: len(delivered.frame.words)]))
        self.check("of_this_incarnation", ~is_ours | is_alive & (delivered.frame.epoch == epoch))


ORDER = Proof(
    "order",
    "a PSN is delivered once, in its turn, in its incarnation; what is offered stays until it is taken",
    "xoe_hdl.transport.order:Order",
    lambda block: InOrder(block(BITS, WINDOW, PAGES, CREDIT_WORDS)),
    (
        ("self._state.expected.eq(self._state.expected + 1)", "self._state.expected.eq(self._state.expected + 2)"),
        ("with m.If(verdict.in_order):", "with m.If(verdict.in_order | verdict.early):"),
        ("m.d.sync += delivered.epoch.eq(state.epoch)", "m.d.sync += delivered.epoch.eq(state.epoch + 1)"),
        ("m.d.sync += is_free.eq(~self.free.valid & ~self.owe.valid)", "m.d.sync += is_free.eq(1)"),
        ("with m.If(self._owes):  # else there may be one that waits", "with m.If(1):"),
    ),
    clocks=CLOCKS,
)
