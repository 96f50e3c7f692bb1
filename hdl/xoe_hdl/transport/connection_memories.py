"""What is remembered of connections, and what others see of it."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from xoe.connection import State
from xoe.cyclic import EPOCH_BITS
from xoe.transport import RETRIES_MAX

from . import connection_layouts as layouts
from .connection_layouts import BODY, CLOCK_BITS, PEER

VIEWS = ("transmit", "notes", "requester", "limit", "tags", "parser", "reader")

STAMP_BITS = CLOCK_BITS + 1  # so that the longest time is passed long before the clock is round

_KEPT = {
    "phase": State,
    "asked": range(RETRIES_MAX + 2),  # how often, since the last answer
    "is_timed": 1,
    "started": STAMP_BITS,
    "peer_epoch": EPOCH_BITS,
    **PEER,
    "atomic_slots": BODY["atomic_slots"],  # that the other end grants
}

STATE = data.StructLayout({**_KEPT, "epoch": EPOCH_BITS})
"""Of a connection; all but ``epoch`` begins as 0 after a reset."""


class ConnectionMemories(wiring.Component):
    """The state of the connection that is worked on, in a register, and the memories behind it.

    ``load`` puts there what ``fetch_qp`` said a clock before; ``change`` puts ``changed`` there; ``store`` writes it
    back, and to the views, in which a connection is open if its phase says so. ``close`` writes to the views alone that
    it is not. The epochs outlive a reset.

    ``heard`` writes the clock ``now`` for a connection, else ``begin`` does for that of ``qp``; what was written for
    the one that is worked on is in ``heard_at``.
    """

    def __init__(self, bits: int) -> None:
        self.bits = bits
        views = {f"{name}_qp": In(bits) for name in VIEWS} | {name: Out(layouts.entry_layout()) for name in VIEWS}
        super().__init__(
            {
                "fetch_qp": In(bits),
                "load": In(1),
                "state": Out(STATE),
                "change": In(1),
                "changed": In(STATE),
                "qp": In(bits),
                "store": In(1),
                "close": In(1),
                "now": In(STAMP_BITS),
                "heard": In(layouts.heard_layout(bits)),
                "begin": In(1),
                "heard_at": Out(STAMP_BITS),
                **views,
            }
        )
        self.is_clearing = Signal(init=1)

    def elaborate(self, platform: object) -> Module:
        """After a reset everything is written but the epochs."""
        m = Module()
        kept = data.StructLayout(_KEPT)
        m.submodules.states = states = Memory(shape=kept, depth=1 << self.bits, init=[])
        m.submodules.epochs = epochs = Memory(shape=EPOCH_BITS, depth=1 << self.bits, init=[])
        read, write = states.read_port(), states.write_port()
        read_epoch, write_epoch = epochs.read_port(), epochs.write_port()
        state = self.state
        m.d.comb += [port.addr.eq(self.fetch_qp) for port in (read, read_epoch)]
        m.d.comb += [port.addr.eq(self.qp) for port in (write, write_epoch)]
        m.d.comb += [write.data[name].eq(state[name]) for name in _KEPT]
        m.d.comb += [
            write_epoch.data.eq(state.epoch),
            write.en.eq(self.store),
            write_epoch.en.eq(self.store & ~self.is_clearing),
        ]
        with m.If(self.load):
            m.d.sync += [state[name].eq(read.data[name]) for name in _KEPT]
            m.d.sync += [state.epoch.eq(read_epoch.data), self.is_clearing.eq(0)]
        with m.If(self.change):
            m.d.sync += state.eq(self.changed)
        self._keep_time(m)
        self._show(m)
        return m

    def _keep_time(self, m: Module) -> None:
        """A row read in the clock in which it is written is the old one: at worst one clock too old."""
        m.submodules.times = times = Memory(shape=STAMP_BITS, depth=1 << self.bits, init=[])
        read, write = times.read_port(), times.write_port()
        m.d.comb += [
            read.addr.eq(self.fetch_qp),
            write.addr.eq(Mux(self.heard.valid, self.heard.qp, self.qp)),
            write.data.eq(self.now),
            write.en.eq(self.heard.valid | self.begin),
        ]
        with m.If(self.load):
            m.d.sync += self.heard_at.eq(read.data)

    def _show(self, m: Module) -> None:
        """The views: they may be looked at in any clock."""
        m.submodules.table = table = Memory(shape=layouts.entry_layout(), depth=1 << self.bits, init=[])
        write = table.write_port()
        m.d.comb += [write.addr.eq(self.qp), write.en.eq(self.store | self.close)]
        m.d.comb += write.data.is_open.eq((self.state.phase == State.OPEN) & ~self.close)
        m.d.comb += [write.data[name].eq(self.state[name]) for name in ("epoch", "peer_epoch", *PEER, "atomic_slots")]
        for name in VIEWS:
            read = table.read_port()
            m.d.comb += read.addr.eq(getattr(self, f"{name}_qp"))
            m.d.sync += getattr(self, name).eq(read.data)
