"""From what the other end of a connection offers to what the sender goes by."""

from __future__ import annotations

from amaranth.hdl import Array, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from xoe.config import ATOMIC_SIZE, BUFFER_OVERHEAD, CREDIT_SIZES, NicConfig, credits_needed
from xoe.wire import GRID

from . import connection_layouts as layouts
from .layouts import qp_bits
from .sender.layouts import opening

_LOGS = [exact_log2(size) for size in CREDIT_SIZES]
_CLOCKS = 3


class Terms(wiring.Component):
    """Three clocks from ``offer`` to ``opens``, whether that waits for it or not; each is taken when the other is.

    Says for each class how many credits the largest frame takes: of requests and responses it is what the MTU holds; of
    atomics no more than may be without an answer. It is never more than was granted, so that a frame can always begin.

    Args:
        config: ``queue_pairs``, ``mtu`` and ``window`` are used.
        first_seq: PSN of the first data frame of each connection.
        first_credit: where counts of credits begin.
    """

    def __init__(self, config: NicConfig, first_seq: int, first_credit: int) -> None:
        self.config, self.first_seq, self.first_credit = config, first_seq, first_credit
        bits = qp_bits(config.queue_pairs)
        super().__init__(
            {
                "offer": In(stream.Signature(layouts.sender_layout(bits))),
                "opens": Out(stream.Signature(opening(config.queue_pairs))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """The offer stands still until it is taken; so a pipeline of it is right after some clocks."""
        m = Module()
        offer, opens, clocks = self.offer.payload, self.opens.payload, Signal(range(_CLOCKS + 1))
        limits = [offer[f"credit_{name}"] for name in ("request", "response", "atomic")]
        with m.If(~self.offer.valid | self.offer.ready):
            m.d.sync += clocks.eq(0)
        with m.Elif(clocks != _CLOCKS):
            m.d.sync += clocks.eq(clocks + 1)
        m.d.comb += [
            self.opens.valid.eq(clocks == _CLOCKS),
            self.offer.ready.eq(self.opens.valid & self.opens.ready),
            *(opens[name].eq(offer[name]) for name in ("qp", "epoch", "peer_epoch")),
            opens.first_seq.eq(self.first_seq),
            opens.first_credit.eq(self.first_credit),
            opens.credit_shift.eq(offer.credit_size - exact_log2(GRID)),
            *(opens.limits[at].eq(limit) for at, limit in enumerate(limits)),
        ]
        m.d.sync += opens.window.eq(Mux(offer.window > self.config.window, self.config.window, offer.window))
        for at, needed in enumerate(self._needed(m)):
            m.d.sync += opens.most[at].eq(Mux(needed > limits[at], limits[at], needed))
        return m

    def _needed(self, m: Module) -> list[Value]:
        """Credits of the largest frame of each class."""
        offer, payload_max = self.offer.payload, self.config.payload_max
        place = (offer.credit_size - _LOGS[0])[:3]
        data_needed, atomic_needed, size = Signal(12), Signal(16), Signal(16)
        table = [credits_needed(payload_max, size) for size in CREDIT_SIZES]
        atomics = offer.atomic_slots * ATOMIC_SIZE
        m.d.sync += [
            data_needed.eq(Array(Const(value, 12) for value in [*table, table[-1]])[place]),
            size.eq(Mux(atomics > payload_max, payload_max, atomics) + BUFFER_OVERHEAD - 1),
            atomic_needed.eq((size >> offer.credit_size) + 1),
        ]
        return [data_needed, data_needed, atomic_needed]
