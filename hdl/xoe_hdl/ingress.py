"""All that receives: frames are checked, put in order, and taken apart into operations, each once."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from xoe.config import ConfigError, NicConfig
from xoe.wire import GRID, RESPONSE_BIT, OperationHeader, TrafficClass

from .crc import WORD
from .layouts import CFG, counters, operation_beat
from .parser import Parser
from .queues import OperationQueue, beats_max
from .transport import connection_layouts as layouts
from .transport.acknowledger import Acknowledger
from .transport.admission import Admission
from .transport.layouts import qp_bits
from .transport.page_store import POWERS, ROWS
from .transport.reader import REQUESTS_MAX, Reader
from .transport.receive_layouts import open_layout, qp_layout
from .transport.receiver import Receiver
from .transport.turns import Merge

COUNTERS = ("operation_malformed", "misplaced")

_PASSING = 8  # operations and beats between the reader and the queue of requests


def receive_pages(config: NicConfig) -> tuple[int, int]:
    """Pages of the receive buffer, and rows of each.

    Raises:
        ConfigError: more than the buffer can have.
    """
    rows = max(ROWS[0], config.credit_size * 8 // config.data_width)
    needed = -(-config.receive_buffer // config.credit_size)
    if needed > POWERS[-1]:
        raise ConfigError(
            f"receive_buffer must have no more than {POWERS[-1]} pages of {config.credit_size} bytes (credit_size), "
            f"not {config.receive_buffer} bytes"
        )
    return 1 << ceil_log2(max(needed, POWERS[0])), rows


class Ingress(wiring.Component):
    """``Parser`` and ``Receiver``, with what is between and behind them.

    Ports, streams unless said otherwise:

    * ``s_axis``, ``host``, ``control``: see ``Parser``.
    * ``requests``, ``responses``: operations, each once, in the order of its connection. ``requests`` may stand still
      for ever; ``responses`` must always go on, or nothing does.
    * ``acks``: what frames say of those that were sent; ``controls``, ``unaccepted``, ``heard``: see ``Admission``.
    * ``reported``: acknowledgements to be sent; ``paid``: a data frame tells some of it.
    * ``open_receiver``, ``shut_receiver``, ``open_acknowledger``, ``shut_acknowledger``: an incarnation begins or ends.
    * ``drained_qp``, ``is_drained``, ``shown_qp``, ``shown_class``, ``expected``, ``shown``: see ``Receiver``.
    * ``parser_qp``, ``parser_entry``, ``reader_qp``, ``reader_entry`` (no streams): look-ups in the table of
      connections.
    * ``counters``: see ``Parser``, ``Admission``, ``Receiver``; and ``operations``: malformed ones, and requests that
      came as responses, which are dropped.

    Args:
        config: the parameters.

    Raises:
        ConfigError: a receive buffer that is too large.
    """

    def __init__(self, config: NicConfig) -> None:
        self.config = config
        width, bits = config.data_width, qp_bits(config.queue_pairs)
        pages, page_rows = receive_pages(config)
        self.parser = Parser(config, pages, page_rows)
        self.admission = Admission(config, pages)
        self.receiver = Receiver(
            config.queue_pairs,
            config.window,
            pages,
            config.credit_size // GRID,
            config.credits,
            config.counter_width,
        )
        self.acknowledger = Acknowledger(config.queue_pairs)
        self.reader = Reader(config, pages)
        # Of a frame: operations without data have a beat each.
        self.operations_max = config.payload_max // OperationHeader.SIZE
        self.beats_max = config.payload_max // GRID // (1 if width == WORD else 2)
        frames = REQUESTS_MAX + 1
        self.queue = OperationQueue(
            width,
            frames * self.operations_max + _PASSING,
            max(frames * self.beats_max + _PASSING, beats_max(width)),
        )
        members = [block.signature.members for block in (self.parser, self.admission, self.receiver)]
        parser, admission, receiver = members
        counted = {
            "parser": self.parser.counters.shape(),
            "admission": self.admission.counters.shape(),
            "receiver": self.receiver.counters.shape(),
            "operations": counters(*COUNTERS, width=config.counter_width),
        }
        shown = ("shown_qp", "shown_class", "expected", "shown", "drained_qp", "is_drained")
        super().__init__(
            {
                **{name: parser[name] for name in ("s_axis", "host", "control")},
                "requests": Out(stream.Signature(operation_beat(width))),
                "responses": Out(stream.Signature(operation_beat(width))),
                **{name: admission[name] for name in ("acks", "controls", "unaccepted", "heard")},
                "reported": receiver["reported"],
                "paid": self.acknowledger.signature.members["paid"],
                "open_receiver": In(stream.Signature(open_layout(bits))),
                "shut_receiver": In(stream.Signature(qp_layout(bits))),
                "open_acknowledger": In(stream.Signature(qp_layout(bits))),
                "shut_acknowledger": In(stream.Signature(qp_layout(bits))),
                **{name: receiver[name] for name in shown},
                "parser_qp": Out(bits),
                "parser_entry": In(layouts.entry_layout()),
                "reader_qp": Out(bits),
                "reader_entry": In(layouts.entry_layout()),
                "cfg": In(CFG),
                "counters": Out(data.StructLayout(counted)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join the parts."""
        m = Module()
        m.submodules.parser = parser = self.parser
        m.submodules.admission = admission = self.admission
        m.submodules.receiver = receiver = self.receiver
        m.submodules.acknowledger = acknowledger = self.acknowledger
        m.submodules.reader = reader = self.reader
        connect(m, flipped(self.s_axis), parser.s_axis)
        connect(m, parser.host, flipped(self.host))
        connect(m, parser.control, flipped(self.control))
        connect(m, parser.frames, admission.frames)
        for name in ("arrivals", "reconcile"):
            connect(m, getattr(admission, name), getattr(receiver, name))
        for name in ("acks", "controls", "unaccepted"):
            connect(m, getattr(admission, name), flipped(getattr(self, name)))
        for name in ("requests", "responses"):
            connect(m, getattr(receiver, name), getattr(reader, name))
        for verb in ("open", "shut"):
            connect(m, flipped(getattr(self, f"{verb}_receiver")), getattr(receiver, verb))
            connect(m, flipped(getattr(self, f"{verb}_acknowledger")), getattr(acknowledger, verb))
        connect(m, reader.freed, receiver.freed)
        connect(m, receiver.owe, acknowledger.owe)
        connect(m, acknowledger.due, receiver.report)
        connect(m, receiver.reported, flipped(self.reported))
        connect(m, flipped(self.paid), acknowledger.paid)
        m.d.comb += [
            parser.cfg.eq(self.cfg),
            *(acknowledger.cfg[name].eq(self.cfg[name]) for name in acknowledger.cfg.shape().members),
            receiver.cfg_go_back_n.eq(self.cfg.go_back_n),
            *(getattr(receiver, name).eq(getattr(self, name)) for name in ("shown_qp", "shown_class", "drained_qp")),
            *(getattr(self, name).eq(getattr(receiver, name)) for name in ("expected", "shown", "is_drained")),
            self.heard.eq(admission.heard),
            self.parser_qp.eq(admission.qp),
            admission.entry.eq(self.parser_entry),
            self.reader_qp.eq(reader.qp),
            reader.entry.eq(self.reader_entry),
            self.counters.parser.eq(parser.counters),
            self.counters.admission.eq(admission.counters),
            self.counters.receiver.eq(receiver.counters),
        ]
        self._read(m)
        self._sort(m)
        return m

    def _read(self, m: Module) -> None:
        """Rows of the buffer, which are given back by three."""
        parser, reader = self.parser, self.reader
        shape = parser.give_back.payload.shape()
        m.submodules.dropped = dropped = Merge(shape)
        m.submodules.given_back = given_back = Merge(shape)
        connect(m, self.admission.free, dropped.a)
        connect(m, self.receiver.free, dropped.b)
        connect(m, dropped.o, given_back.a)
        connect(m, reader.give_back, given_back.b)
        connect(m, given_back.o, parser.give_back)
        m.d.comb += [
            parser.fetch.eq(reader.fetch),
            parser.fetch_first.eq(reader.fetch_first),
            parser.fetch_page.eq(reader.fetch_page),
            reader.row.eq(parser.row),
        ]

    def _sort(self, m: Module) -> None:
        """Responses go on at once, requests wait in a queue; a request that came as a response is dropped."""
        m.submodules.queue = queue = self.queue
        found = self.reader.operations
        is_response = found.payload.data.route.traffic_class == TrafficClass.RESPONSE
        is_wrong = is_response & ((found.payload.data.operation.opcode & RESPONSE_BIT) == 0)
        connect(m, queue.o, flipped(self.requests))
        m.d.comb += [
            self.responses.payload.eq(found.payload),
            queue.i.payload.eq(found.payload),
            self.responses.valid.eq(found.valid & is_response & ~is_wrong),
            queue.i.valid.eq(found.valid & ~is_response),
            found.ready.eq(Mux(is_response, self.responses.ready | is_wrong, queue.i.ready)),
        ]
        self._follow(m)
        count = self.counters.operations
        happened = Signal(len(COUNTERS))
        m.d.sync += [
            happened.eq(Cat(self.reader.is_malformed, found.valid & is_wrong & found.payload.last)),
            count.operation_malformed.eq(count.operation_malformed + happened[0]),
            count.misplaced.eq(count.misplaced + happened[1]),
        ]

    def _follow(self, m: Module) -> None:
        """Whether the queue has room for the largest frame, or for several."""
        queue, room = self.queue, []
        levels = {
            "operations": (self.operations_max, queue.operations, lambda each: each.payload.last),
            "beats": (self.beats_max, queue.beats, lambda each: 1),
        }
        for name, (most, depth, counts) in levels.items():
            level = Signal(range(depth + 1), name=f"{name}_level")
            comes, goes = (Signal(name=f"{name}_{way}") for way in ("come", "go"))
            for way, each in ((comes, queue.i), (goes, queue.o)):
                m.d.sync += way.eq(each.valid & each.ready & counts(each))
            m.d.sync += level.eq(level + comes - goes)
            room.append([level <= depth - (more + 1) * most - _PASSING for more in range(REQUESTS_MAX)])
        has_room: list[Value] = [operations & beats for operations, beats in zip(*room, strict=True)]
        m.d.sync += self.reader.room.eq(Cat(has_room))
