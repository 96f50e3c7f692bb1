"""Takes delivered frames out of the receive buffer, and apart into operations."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import NicConfig

from ..crc import WORD
from ..delay import delayed
from ..layouts import ROUTE, operation_beat
from ..parser.aligner import lead_words
from ..parser.unpacker import Unpacker
from ..parser.word_window import payload_beat
from ..queues import FallThroughQueue
from . import connection_layouts as layouts
from .layouts import WORDS_BITS, qp_bits
from .page_store import segment
from .receive_layouts import delivery_layout, freed_layout

PLANS = 2  # frames that are chosen and not being read
UNPACKING = 4  # frames that are being read and not taken apart
REQUESTS_MAX = 2  # frames of requests that are on their way at a time
ROWS = 8  # that are read and not taken apart
UNDER_WAY = 4  # of them, when the queue says that it has room
DONE = 16  # frames that have left, and are not counted as free yet


class Reader(wiring.Component):
    """A row a clock, and an operation a clock; about seven clocks from a delivery to its first row.

    Ports, streams unless said otherwise:

    * ``requests``, ``responses``: frames whose turn it is. Responses go first. A frame of an incarnation that is over
      is dropped: nobody waits for an answer.
    * ``qp`` (no stream), and two clocks later ``entry``: the connection.
    * ``room``, a bit for each: one frame of requests more, or two, may be taken apart, whatever is behind
      ``operations``; so requests that may not go on hold up no responses.
    * ``fetch``, ``fetch_first``, ``fetch_page``, and a clock later ``row``: as a ``PageStore`` has it.
    * ``operations``: of all frames, in order. ``is_malformed`` as ``Unpacker`` has it.
    * ``freed``, ``give_back``: a frame that has left the buffer.
    """

    def __init__(self, config: NicConfig, pages: int) -> None:
        self.width, self.pages = config.data_width, pages
        self.bits = bits = qp_bits(config.queue_pairs)
        delivery = delivery_layout(bits, pages)
        self._leaving = data.StructLayout(
            {"is_request": 1, "route": ROUTE, "words": WORDS_BITS, "segment": segment(pages)}
        )
        self._plan = data.StructLayout({**self._leaving.members, "rows": WORDS_BITS})
        super().__init__(
            {
                "requests": In(stream.Signature(delivery)),
                "responses": In(stream.Signature(delivery)),
                "qp": Out(bits),
                "entry": In(layouts.entry_layout()),
                "room": In(REQUESTS_MAX),
                "fetch": Out(1),
                "fetch_first": Out(1),
                "fetch_page": Out(range(pages)),
                "row": In(payload_beat(self.width)),
                "operations": Out(stream.Signature(operation_beat(self.width))),
                "is_malformed": Out(1),
                "freed": Out(stream.Signature(freed_layout(bits))),
                "give_back": Out(stream.Signature(segment(pages))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Choose frames; read their rows; take them apart; say that they have left."""
        m = Module()
        m.submodules.plans = plans = FallThroughQueue(self._plan, PLANS)
        m.submodules.done = done = FallThroughQueue(self._leaving, DONE, UNPACKING + PLANS + 1)
        leaves = self._read(m, plans, done)
        self._choose(m, plans, done, leaves)
        self._leave(m, done)
        return m

    def _choose(self, m: Module, plans: FallThroughQueue, done: FallThroughQueue, leaves: Value) -> None:
        """Choose a frame, and look at its connection."""
        chosen, is_request, is_current = Signal(self.requests.payload.shape()), Signal(), Signal()
        under_way, may_go, plan = Signal(range(REQUESTS_MAX + 1)), Signal(), plans.i.payload
        per_row = self.width // WORD
        begins = Signal()
        m.d.sync += [
            # It is a clock old, and so must know what begins in this one.
            may_go.eq(~begins & ~under_way[-1] & self.room.bit_select(under_way[0], 1)),
            is_current.eq(self.entry.is_open & (self.entry.epoch == chosen.epoch)),
            plan.rows.eq((chosen.words + lead_words(self.width) + per_row - 1) // per_row),
        ]
        m.d.sync += under_way.eq(under_way + begins - leaves)
        m.d.comb += [
            self.qp.eq(chosen.qp),
            plan.is_request.eq(is_request),
            plan.words.eq(chosen.words),
            plan.segment.eq(chosen.segment),
            *(plan.route[name].eq(self.entry[name]) for name in ("mac", "node", "remote_qp")),
            plan.route.local_qp.eq(chosen.qp),
            plan.route.traffic_class.eq(chosen.traffic_class),
            plan.route.epoch.eq(chosen.epoch),
        ]
        with m.FSM(name="step"):
            with m.State("IDLE"):
                with m.If(self.responses.valid):
                    m.d.comb += self.responses.ready.eq(1)
                    m.d.sync += [chosen.eq(self.responses.payload), is_request.eq(0)]
                    m.next = "LOOK"
                with m.Elif(self.requests.valid & may_go):
                    m.d.comb += self.requests.ready.eq(1)
                    m.d.sync += [chosen.eq(self.requests.payload), is_request.eq(1)]
                    m.next = "LOOK"
            for step, following in (("LOOK", "WAIT"), ("WAIT", "COMPARE"), ("COMPARE", "PLAN")):
                with m.State(step):
                    m.next = following
            with m.State("PLAN"):
                m.d.comb += plans.i.valid.eq(is_current)
                with m.If(~is_current):
                    m.next = "DROP"
                with m.Elif(plans.i.ready):
                    m.d.comb += begins.eq(is_request)
                    m.next = "IDLE"
            with m.State("DROP"), m.If(self._drop(m, done, chosen)):
                m.next = "IDLE"

    def _drop(self, m: Module, done: FallThroughQueue, chosen: data.View) -> Value:
        """Let the chosen frame leave at once, unless another one does now; whether it has."""
        dropped, is_dropped = Signal(self._leaving), Signal()
        m.d.comb += [
            *(dropped.route[name].eq(0) for name in ("mac", "node", "remote_qp")),
            dropped.is_request.eq(0),
            dropped.route.local_qp.eq(chosen.qp),
            dropped.route.epoch.eq(chosen.epoch),
            dropped.route.traffic_class.eq(chosen.traffic_class),
            dropped.words.eq(chosen.words),
            dropped.segment.eq(chosen.segment),
            is_dropped.eq(~self._leaves & done.room),
        ]
        with m.If(is_dropped):
            m.d.comb += [done.i.valid.eq(1), done.i.payload.eq(dropped)]
        return is_dropped

    def _read(self, m: Module, plans: FallThroughQueue, done: FallThroughQueue) -> Value:
        """Fetch the rows of frames without a gap inside one; whether a frame of requests has left."""
        m.submodules.unpacking = unpacking = FallThroughQueue(self._leaving, UNPACKING, 1)
        m.submodules.rows = rows = FallThroughQueue(payload_beat(self.width), ROWS, UNDER_WAY)
        m.submodules.unpacker = unpacker = Unpacker(self.width)
        left, is_first, plan = Signal(WORDS_BITS), Signal(init=1), plans.o.payload
        may_begin, is_last = Signal(), Signal()
        m.d.comb += [
            may_begin.eq(~is_first | unpacking.room & done.room),
            self.fetch.eq(plans.o.valid & rows.room & may_begin),
            self.fetch_first.eq(is_first),
            self.fetch_page.eq(plan.segment.first),
            is_last.eq((is_first & (plan.rows == 1)) | ~is_first & (left == 1)),
            plans.o.ready.eq(self.fetch & is_last),
            unpacking.i.valid.eq(self.fetch & is_first),
            *(unpacking.i.payload[name].eq(plan[name]) for name in self._leaving.members),
        ]
        with m.If(self.fetch):
            m.d.sync += [is_first.eq(is_last), left.eq(left - 1)]
            with m.If(is_first):
                m.d.sync += left.eq(plan.rows - 1)
        row = Signal(payload_beat(self.width))
        m.d.sync += row.eq(self.row)  # a block RAM is too slow for any logic behind it in the same clock
        m.d.comb += [
            rows.i.valid.eq(delayed(m, "is_fetched", self.fetch, 2)),
            rows.i.payload.eq(row),
            unpacker.verdicts.valid.eq(unpacking.o.valid),
            unpacker.verdicts.payload.eq(1),
            unpacker.routes.valid.eq(unpacking.o.valid),
            unpacker.routes.payload.eq(unpacking.o.payload.route),
            unpacking.o.ready.eq(unpacker.verdicts.ready),
            self.is_malformed.eq(unpacker.is_malformed),
        ]
        connect(m, rows.o, unpacker.beats)
        connect(m, unpacker.operations, flipped(self.operations))
        # A clock later: it is known late that a frame is through.
        self._leaves = delayed(m, "leaves", unpacking.o.valid & unpacker.verdicts.ready, 1)
        gone = delayed(m, "gone", unpacking.o.payload, 1)
        with m.If(self._leaves):
            m.d.comb += [done.i.valid.eq(1), done.i.payload.eq(gone)]
        return self._leaves & gone.is_request

    def _leave(self, m: Module, done: FallThroughQueue) -> None:
        """Tell both who count that a frame has left."""
        leaving, told = done.o.payload, Signal(2)
        freed = self.freed.payload
        m.d.comb += [
            self.freed.valid.eq(done.o.valid & ~told[0]),
            self.give_back.valid.eq(done.o.valid & ~told[1]),
            self.give_back.payload.eq(leaving.segment),
            freed.qp.eq(leaving.route.local_qp),
            freed.epoch.eq(leaving.route.epoch),
            freed.traffic_class.eq(leaving.route.traffic_class),
            freed.words.eq(leaving.words),
        ]
        are_told = [told[0] | self.freed.ready, told[1] | self.give_back.ready]
        m.d.comb += done.o.ready.eq(are_told[0] & are_told[1])
        m.d.sync += [told[0].eq(are_told[0]), told[1].eq(are_told[1])]
        with m.If(~done.o.valid | done.o.ready):
            m.d.sync += told.eq(0)
