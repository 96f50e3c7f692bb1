"""Lets an operation begin a frame only by a permit of the sender, and tells those that came too late."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from xoe.config import check_choice
from xoe.cyclic import EPOCH_BITS

from .layouts import QUEUE_PAIRS, qp_bits
from .sender.layouts import CLASS_BITS, PERMIT_BITS, grant_write

SETTLED = 3  # clocks that a head has to be there before what is known of it is known

_BEGUN = data.StructLayout({"epoch": EPOCH_BITS, "count": PERMIT_BITS})


def gate_head(queue_pairs: int) -> data.StructLayout:
    """The operation that is next. ``epoch`` is this end's, as it was when the operation was asked for."""
    return data.StructLayout({"valid": 1, "qp": qp_bits(queue_pairs), "traffic_class": CLASS_BITS, "epoch": EPOCH_BITS})


class Gate(wiring.Component):
    """Compares how many frames a class of a connection was granted with how many it has begun.

    ``head`` is the operation at an input of the gatherer. Four clocks after it came ``permit`` says whether it may
    begin a frame, and ``drop`` that it belongs to an incarnation that is over. Both are low before, and for some clocks
    after ``begins`` (it does begin one) and ``leaves`` (it is gone, and another may be there in the next clock).
    ``grants`` is what the sender says, see ``Sender``. Each class must have one gate only.

    Raises:
        ConfigError: ``queue_pairs`` not a power of two from 1 to 256.
    """

    def __init__(self, queue_pairs: int) -> None:
        check_choice("queue_pairs", queue_pairs, QUEUE_PAIRS)
        self.queue_pairs = queue_pairs
        super().__init__(
            {
                "head": In(gate_head(queue_pairs)),
                "begins": In(1),
                "leaves": In(1),
                "grants": In(grant_write(queue_pairs)),
                "permit": Out(1),
                "drop": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two memories, each written by one side, and what is read of them a register later."""
        m = Module()
        depth = self.queue_pairs << CLASS_BITS
        m.submodules.granted = granted = memory.Memory(shape=self.grants.grant.shape(), depth=depth, init=[])
        m.submodules.begun = begun = memory.Memory(shape=_BEGUN, depth=depth, init=[])
        grant_port, grant_write_port = granted.read_port(), granted.write_port()
        begun_port, begun_write_port = begun.read_port(), begun.write_port()
        place = Cat(self.head.traffic_class, self.head.qp)
        grants_place = Cat(self.grants.traffic_class, self.grants.qp)
        grant, used, count = Signal(self.grants.grant.shape()), Signal(_BEGUN), Signal(PERMIT_BITS)
        m.d.comb += [
            grant_port.addr.eq(place),
            begun_port.addr.eq(place),
            grant_write_port.addr.eq(grants_place),
            grant_write_port.data.eq(self.grants.grant),
            grant_write_port.en.eq(self.grants.valid),
        ]
        m.d.sync += [grant.eq(grant_port.data), used.eq(begun_port.data)]
        with m.If(used.epoch == grant.epoch):
            m.d.comb += count.eq(used.count)

        is_late = Signal()  # what was begun is still to be written
        is_settled = self._settle(m, is_late)
        is_alive = grant.alive & (grant.epoch == self.head.epoch)
        m.d.sync += [
            self.permit.eq(is_settled & is_alive & (grant.count != count)),
            self.drop.eq(is_settled & ~is_alive),
        ]
        self._write(m, begun_write_port, is_late, place, count)
        return m

    def _settle(self, m: Module, is_late: Signal) -> Signal:
        """Whether what was read belongs to this head as it is now."""
        age, is_settled = Signal(range(SETTLED + 1)), Signal()
        changes = ~self.head.valid | self.leaves | self.begins | is_late
        with m.If(changes):
            m.d.sync += age.eq(0)
        with m.Elif(age != SETTLED):
            m.d.sync += age.eq(age + 1)
        m.d.comb += is_settled.eq((age >= SETTLED - 1) & ~changes)
        return is_settled

    def _write(self, m: Module, port: memory.WritePort, is_late: Signal, place: Cat, count: Signal) -> None:
        """Count what is begun, a clock later; an incarnation that begins has begun nothing, and goes first."""
        late_place, late = Signal(len(place)), Signal(_BEGUN)
        is_fresh = self.grants.valid & self.grants.is_reset
        with m.If(self.begins):
            m.d.sync += [
                is_late.eq(1),
                late_place.eq(place),
                late.epoch.eq(self.head.epoch),
                late.count.eq(count + 1),
            ]
        with m.Elif(~is_fresh):
            m.d.sync += is_late.eq(0)
        m.d.comb += [port.en.eq(is_late | is_fresh), port.addr.eq(late_place), port.data.eq(late)]
        with m.If(is_fresh):
            m.d.comb += [
                port.addr.eq(Cat(self.grants.traffic_class, self.grants.qp)),
                port.data.epoch.eq(self.grants.grant.epoch),
                port.data.count.eq(0),
            ]
