"""The NIC: an adaptation block between a GPU's memory operations and an Ethernet MAC."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import NicConfig
from xoe.wire import DATA_MAX, RESPONSE_BIT

from .framer import Framer
from .layouts import CFG, Axi4Signature, axis, command_beat, completion_beat
from .parser import Parser
from .queues import OperationQueue, beats_max
from .requester import Requester
from .responder import Responder


class Nic(wiring.Component):
    """Requester, framer, parser and responder joined.

    Ports, each a stream unless said otherwise:

    * ``s_axis_command``, ``m_axis_completion``: what the user asks for and gets back.
    * ``s_axis``, ``m_axis``: frames from and to the MAC, without FCS.
    * ``m_axis_host``, ``m_axis_control``: frames that are not ours, PAUSE and PFC.
    * ``m_axi``: the memory that peers read and write.
    * ``s_axis_translation``, ``translation_written``: writes to the translation CAM, and (valid for one clock) the
      outcome of each; ``s_axis_window``, ``window_written``: the same for the responder's windows.
    * ``cfg``: settings, see ``layouts.CFG``; ``counters``: every block's counters; ``in_flight``: tags in use.

    A user that does not take its completions holds up every response that comes in, and behind them the requests of
    peers. The queue in front of the responder holds all the operations that one peer with as many tags can have in
    flight, so that requests never hold up responses.
    """

    def __init__(self, config: NicConfig) -> None:
        width = config.data_width
        self.config = config
        self.requester = Requester(config)
        self.framer = Framer(config)
        self.parser = Parser(config)
        self.responder = Responder(config)
        beats = max(config.tags * DATA_MAX * 8 // width, beats_max(width))
        self.request_queue = OperationQueue(width, config.tags, beats)
        blocks = {
            "requester": self.requester,
            "framer": self.framer,
            "parser": self.parser,
            "responder": self.responder,
        }
        counters = data.StructLayout({name: block.counters.shape() for name, block in blocks.items()})
        super().__init__(
            {
                "s_axis_command": In(stream.Signature(command_beat(width))),
                "m_axis_completion": Out(stream.Signature(completion_beat(width))),
                "s_axis": In(stream.Signature(axis(width))),
                "m_axis": Out(stream.Signature(axis(width))),
                "m_axis_host": Out(stream.Signature(axis(width))),
                "m_axis_control": Out(stream.Signature(axis(width))),
                "m_axi": Out(Axi4Signature(width)),
                "s_axis_translation": self.requester.signature.members["cam_write"],
                "translation_written": self.requester.signature.members["cam_written"],
                "s_axis_window": self.responder.signature.members["window_write"],
                "window_written": self.responder.signature.members["window_written"],
                "cfg": In(CFG),
                "counters": Out(counters),
                "in_flight": self.requester.signature.members["in_flight"],
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join the blocks."""
        m = Module()
        m.submodules.requester = requester = self.requester
        m.submodules.framer = framer = self.framer
        m.submodules.parser = parser = self.parser
        m.submodules.responder = responder = self.responder
        m.submodules.request_queue = queue = self.request_queue

        connect(m, flipped(self.s_axis_command), requester.commands)
        connect(m, requester.completions, flipped(self.m_axis_completion))
        connect(m, requester.requests, framer.requests)
        connect(m, responder.responses, framer.responses)
        connect(m, framer.m_axis, flipped(self.m_axis))
        connect(m, flipped(self.s_axis), parser.s_axis)
        connect(m, parser.host, flipped(self.m_axis_host))
        connect(m, parser.control, flipped(self.m_axis_control))
        connect(m, queue.o, responder.requests)
        connect(m, responder.m_axi, flipped(self.m_axi))
        connect(m, flipped(self.s_axis_translation), requester.cam_write)
        connect(m, flipped(self.s_axis_window), responder.window_write)
        self._sort_operations(m)
        m.d.comb += [
            self.translation_written.eq(requester.cam_written),
            self.window_written.eq(responder.window_written),
            self.in_flight.eq(requester.in_flight),
        ]
        for name in ("requester", "framer", "parser", "responder"):
            block = getattr(self, name)
            m.d.comb += self.counters[name].eq(block.counters)
            if "cfg" in block.signature.members:
                m.d.comb += block.cfg.eq(self.cfg)
        return m

    def _sort_operations(self, m: Module) -> None:
        """Send what the parser finds to the requester if it is a response, else to the responder."""
        found, to_requester, to_responder = self.parser.operations, self.requester.responses, self.request_queue.i
        is_response = (found.payload.data.operation.opcode & RESPONSE_BIT) != 0
        m.d.comb += [
            to_requester.payload.eq(found.payload),
            to_responder.payload.eq(found.payload),
            to_requester.valid.eq(found.valid & is_response),
            to_responder.valid.eq(found.valid & ~is_response),
            found.ready.eq(is_response & to_requester.ready | ~is_response & to_responder.ready),
        ]
