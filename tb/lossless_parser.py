"""A parser whose good data frames are taken apart as they come: a wire without loss needs no more."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out, connect, flipped

from xoe.config import NicConfig
from xoe.wire import Kind
from xoe_hdl.layouts import counters, operation_beat
from xoe_hdl.parser import COUNTERS as PARSER_COUNTERS
from xoe_hdl.parser import Parser
from xoe_hdl.parser.payload_writer import FOUND
from xoe_hdl.transport.page_store import segment
from xoe_hdl.transport.reader import REQUESTS_MAX, Reader
from xoe_hdl.transport.turns import Merge

COUNTERS = (*PARSER_COUNTERS, "operation_malformed")
PAGES = 256
PAGE_BYTES = 256


class LosslessParser(wiring.Component):
    """``Parser`` and ``Reader``; ``operations`` are those of good data frames, in order."""

    def __init__(self, config: NicConfig) -> None:
        self.config = config
        self.parser = Parser(config, PAGES, max(4, PAGE_BYTES * 8 // config.data_width))
        self.reader = Reader(config, PAGES)
        passed = ("s_axis", "host", "control", "cfg")
        super().__init__(
            {
                **{name: self.parser.signature.members[name] for name in passed},
                "operations": Out(stream.Signature(operation_beat(config.data_width))),
                "counters": Out(counters(*COUNTERS, width=config.counter_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A frame goes to the reader, and its source is the connection's other end; or its rows are given back."""
        m = Module()
        m.submodules.parser = parser = self.parser
        m.submodules.reader = reader = self.reader
        m.submodules.merge = merge = Merge(segment(PAGES))
        connect(m, flipped(self.s_axis), parser.s_axis)
        connect(m, parser.host, flipped(self.host))
        connect(m, parser.control, flipped(self.control))
        connect(m, reader.operations, flipped(self.operations))
        connect(m, reader.give_back, merge.b)
        connect(m, merge.o, parser.give_back)
        frame, source = self.parser.frames.payload, Signal(FOUND)
        is_kept = frame.is_good & (frame.found.kind == Kind.DATA)
        m.d.comb += [
            parser.cfg.eq(self.cfg),
            reader.requests.valid.eq(parser.frames.valid & is_kept),
            merge.a.valid.eq(parser.frames.valid & ~is_kept),
            merge.a.payload.eq(frame.segment),
            parser.frames.ready.eq((is_kept & reader.requests.ready) | (~is_kept & merge.a.ready)),
            reader.requests.payload.qp.eq(frame.found.dst_qp),
            reader.requests.payload.segment.eq(frame.segment),
            *(reader.requests.payload[name].eq(frame.found[name]) for name in ("epoch", "traffic_class", "words")),
            reader.room.eq((1 << REQUESTS_MAX) - 1),
            reader.freed.ready.eq(1),
            reader.entry.is_open.eq(1),
            reader.entry.epoch.eq(source.epoch),
            reader.entry.mac.eq(source.mac),
            reader.entry.node.eq(source.src_node),
            reader.entry.remote_qp.eq(source.src_qp),
            parser.fetch.eq(reader.fetch),
            parser.fetch_first.eq(reader.fetch_first),
            parser.fetch_page.eq(reader.fetch_page),
            reader.row.eq(parser.row),
            *(self.counters[name].eq(parser.counters[name]) for name in PARSER_COUNTERS),
        ]
        with m.If(parser.frames.ready & is_kept):
            m.d.sync += source.eq(frame.found)
        with m.If(reader.is_malformed):
            m.d.sync += self.counters.operation_malformed.eq(self.counters.operation_malformed + 1)
        return m
