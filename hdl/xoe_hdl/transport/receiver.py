"""The receiving end of all connections. Models: ``xoe.receiver`` and ``xoe.credit.CreditReceiver``."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import CREDIT_LIMIT_MAX as LIMIT_MAX
from xoe.config import CREDIT_SIZES, check_choice, check_range
from xoe.cyclic import CREDIT_BITS, SEQ_BITS
from xoe.wire import GRID, TrafficClass

from ..delay import delayed
from ..layouts import counters
from ..queues import Queue
from . import receive_layouts as layouts
from .layouts import CLASSES, WINDOWS, qp_bits
from .order import COUNTERS, Order
from .page_store import POWERS, segment
from .receive_layouts import CLASS_BITS
from .returns import Returns
from .turns import Merge


def _check(window: int, pages: int, credit_words: int, granted: Sequence[int], counter_width: int) -> None:
    check_choice("window", window, WINDOWS)
    check_choice("pages", pages, POWERS)
    check_choice("credit_words", credit_words, tuple(size // GRID for size in CREDIT_SIZES))
    check_range("classes in granted", len(granted), CLASSES, CLASSES)
    for name, credits in zip(("request", "response", "atomic"), granted, strict=True):
        check_range(f"credits granted for class {name}", credits, 0, LIMIT_MAX)
    check_range("counter_width", counter_width, 2, 64)


class Receiver(wiring.Component):
    """Keeps frames until all before them are there, delivers each once, in order, and counts the credits it gives back.

    Two engines, of which each works on one event at a time: one on what comes (``arrivals``, ``reconcile``, ``report``,
    ``shut``, ``open``, each in turn), one on what leaves (``freed``). In clocks, with nothing held back: 7 for a frame
    in order, 7 for one that is kept and 3 more when its turn comes; 7 for ``freed``; 17 for a report, in which the
    first engine stands still; a stream is served after one event of each of the others at the most.

    ``requests`` and ``responses`` may stand still for any time: all frames of the buffer have room in their queues.
    While ``free`` or ``owe`` stand still, the engines do too, and nothing is lost. For ``queue_pairs`` clocks after a
    reset nothing is taken, and no connection is open.

    Ports, streams unless said otherwise; layouts are in ``receive_layouts``:

    * ``arrivals``: a good data frame that lies in the receive buffer. Ten clocks from one in order to its delivery.
    * ``requests``, ``responses``: frames whose turn it is, in order for each connection; responses are those of class
      1. What an incarnation has delivered here stays when it ends: whoever takes it has to look at its epoch.
    * ``free``: segments of frames that are not kept.
    * ``freed``: a delivered frame that has left the buffer. Credit of an ended incarnation is not counted.
    * ``open``: begins an incarnation, of a connection that is shut and drained. Its ``window`` is 1 and up, and at most
      the parameter. ``shut``: ends it; what is kept goes to ``free``. Each is taken when it is done. Frames that come
      while a connection is shut are ``stale``.
    * ``drained_qp`` (no stream), and two clocks later ``is_drained``: no frame that was delivered, of whatever
      incarnation, is in the buffer any more: all went back by ``freed``. It may be late while frames are delivered. A
      connection that is shut has no others in the buffer, but those not taken from ``arrivals`` yet.
    * ``reconcile``: from an acknowledgement. Credits that its sender has consumed for frames that never came are freed;
      only if the sender and this end speak of the same frames: ``seq`` is expected, and none beyond it is kept.
    * ``report``: asks for what an acknowledgement says; ``reported``: it, 16 clocks later or more. One is under way at
      a time. ``nack`` is said once.
    * ``shown_qp``, ``shown_class`` (no streams), and two clocks later ``expected`` and ``shown``: the PSN expected and
      the credits of a class freed, for a data frame's header. An event shows in look-ups from 7 clocks on.
    * ``owe``: the other end has to be told: of a data frame that is not stale, or of freed credits. ``urgent``: the
      frame was not the expected one, or others wait behind a gap; or a quarter of the class's credits were freed since
      the last report, or credits by ``reconcile``.
    * ``cfg_go_back_n``; ``counters``: of frames by verdict, and of ``reconciled`` differences.

    Args:
        queue_pairs: a power of two, 1..256.
        window: frames that may be here before the expected one, that one included: 8, 16, 32, 64 or 128.
        pages: of the receive buffer, a power of two, 4..4096. A frame has one at least.
        credit_words: 8-byte words that a credit is worth: 4..256, a power of two.
        granted: credits that each connection grants, by class, 0..4095.
        counter_width: bits of a counter; counters wrap.

    Raises:
        ConfigError: a parameter out of bounds.
    """

    def __init__(
        self,
        queue_pairs: int,
        window: int,
        pages: int,
        credit_words: int,
        granted: Sequence[int],
        counter_width: int = 32,
    ) -> None:
        bits = qp_bits(queue_pairs)
        _check(window, pages, credit_words, granted, counter_width)
        self.pages = pages
        self.order = Order(bits, window, pages, credit_words)
        self.returns = Returns(bits, pages, credit_words, granted)
        self.delivery = layouts.delivery_layout(bits, pages)
        super().__init__(self._ports(bits, window, counter_width))

    def _ports(self, bits: int, window: int, counter_width: int) -> wiring.Signature:
        return wiring.Signature(
            {
                **{name: self.order.signature.members[name] for name in self.order.inputs},
                "freed": In(stream.Signature(layouts.freed_layout(bits))),
                "requests": Out(stream.Signature(self.delivery)),
                "responses": Out(stream.Signature(self.delivery)),
                "free": Out(stream.Signature(segment(self.pages))),
                "reported": Out(stream.Signature(layouts.reported_layout(bits, window))),
                "owe": Out(stream.Signature(layouts.owe_layout(bits))),
                "shown_qp": In(bits),
                "shown_class": In(CLASS_BITS),
                "expected": Out(SEQ_BITS),
                "shown": Out(CREDIT_BITS),
                "drained_qp": In(bits),
                "is_drained": Out(1),
                "cfg_go_back_n": In(1),
                "counters": Out(counters(*COUNTERS, width=counter_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join the engines and the queues."""
        m = Module()
        m.submodules.order = order = self.order
        m.submodules.returns = returns = self.returns
        m.submodules.owes = owes = Merge(self.owe.payload.shape())
        for name in ("arrivals", "reconcile", "shut", "open"):
            connect(m, flipped(getattr(self, name)), getattr(order, name))
        connect(m, flipped(self.freed), returns.freed)
        connect(m, order.free, flipped(self.free))
        connect(m, order.commands, returns.commands)
        connect(m, order.owe, owes.a)
        connect(m, returns.owe, owes.b)
        connect(m, owes.o, flipped(self.owe))
        m.d.comb += [
            order.memories.shown_qp.eq(self.shown_qp),
            returns.shown_qp.eq(self.shown_qp),
            returns.shown_class.eq(self.shown_class),
            self.expected.eq(order.memories.expected),
            self.shown.eq(returns.shown),
            order.memories.drained_qp.eq(self.drained_qp),
            returns.drained_qp.eq(self.drained_qp),
            self.is_drained.eq(order.memories.delivered == returns.released),
        ]
        m.d.sync += order.go_back_n.eq(self.cfg_go_back_n)
        for index, name in enumerate(COUNTERS):
            m.d.sync += self.counters[name].eq(self.counters[name] + order.happened[index])
        self._deliver(m)
        self._report(m)
        return m

    def _deliver(self, m: Module) -> None:
        """Sort what is delivered. Neither queue is ever full: a frame has a page until it was taken from here."""
        delivered = delayed(m, "delivered", self.order.delivered, 1)
        is_response = Signal()
        m.d.sync += is_response.eq(self.order.delivered.frame.traffic_class == TrafficClass.RESPONSE)
        for name, is_its in (("requests", ~is_response), ("responses", is_response)):
            m.submodules[name] = queue = Queue(self.delivery, self.pages)
            connect(m, queue.o, flipped(getattr(self, name)))
            m.d.comb += [queue.i.valid.eq(delivered.valid & is_its), queue.i.payload.eq(delivered.frame)]

    def _report(self, m: Module) -> None:
        """Let no report begin before the one before it was taken."""
        order, returns, reported = self.order, self.returns, self.reported
        is_under_way = Signal()
        m.d.comb += [
            order.report.payload.eq(self.report.payload),
            order.report.valid.eq(self.report.valid & ~is_under_way),
            self.report.ready.eq(order.report.ready),
            reported.payload.freed.eq(returns.told),
        ]
        m.d.comb += [reported.payload[name].eq(order.snapshot[name]) for name in order.snapshot.shape().members]
        with m.If(reported.ready):
            m.d.sync += reported.valid.eq(0)
        with m.If(returns.is_told):
            m.d.sync += reported.valid.eq(1)
        with m.If(order.report.ready):
            m.d.sync += [is_under_way.eq(1), reported.payload.qp.eq(self.report.payload.qp)]
        with m.Elif(reported.valid & reported.ready):
            m.d.sync += is_under_way.eq(0)
