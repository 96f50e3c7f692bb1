"""The NIC: an adaptation block between a GPU's memory operations and an Ethernet MAC."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import NicConfig, check_range
from xoe.cyclic import CREDIT_BITS, SEQ_BITS
from xoe.wire import OperationHeader

from .egress import Egress
from .ingress import Ingress
from .layouts import CFG, Axi4Signature, axis, command_beat, completion_beat
from .requester import Requester
from .responder import Responder
from .transport.connections import PARTS, Connections


class Nic(wiring.Component):
    """Requester and responder, what sends and what receives for both, and the table of connections.

    Ports, each a stream unless said otherwise:

    * ``s_axis_command``, ``m_axis_completion``: what the user asks for and gets back.
    * ``s_axis_connect``, ``m_axis_notice``: what the user wants of connections, and what becomes of them.
    * ``s_axis``, ``m_axis``: frames from and to the MAC, without FCS.
    * ``m_axis_host``, ``m_axis_control``: frames that are not ours, PAUSE and PFC.
    * ``m_axi``: the memory that peers read and write.
    * ``s_axis_translation``, ``translation_written``: writes to the translation CAM, and (valid for one clock) the
      outcome of each; ``s_axis_window``, ``window_written``: the same for the responder's windows.
    * ``cfg``: settings, see ``layouts.CFG``; ``counters``: every block's counters; ``in_flight``: tags in use.

    A user that does not take completions is not asked for more than ``config.tags`` of them; one that does not take
    notices holds up connections that open or close, and no others. A memory that stands still holds up requests, but
    not responses. Requests leave in the order of their commands, so one that may not be sent yet, because its
    connection's other end has no room or is not there any more, holds up those of other connections until it is.

    Args:
        config: the parameters.
        first_seq: PSN of the first data frame of each connection, 24 bits.
        first_credit: where counts of credits begin, 20 bits.

    Raises:
        ConfigError: a parameter out of bounds, or buffers that are too large.
    """

    def __init__(self, config: NicConfig, first_seq: int = 0, first_credit: int = 0) -> None:
        check_range("first_seq", first_seq, 0, (1 << SEQ_BITS) - 1)
        check_range("first_credit", first_credit, 0, (1 << CREDIT_BITS) - 1)
        width = config.data_width
        self.config = config
        self.requester = Requester(config)
        self.first_seq, self.first_credit = first_seq, first_credit
        self.egress = Egress(config, first_seq, first_credit)
        self.ingress = Ingress(config)
        self.responder = Responder(config)
        # Frames are gathered up to the MTU, so what is granted has to hold the largest; of atomics, one at least.
        largest = (config.payload_max, config.payload_max, OperationHeader.SIZE)
        self.connections = Connections(config.queue_pairs, config.counter_width, largest)
        counters = data.StructLayout({name: getattr(self, name).counters.shape() for name in self._counted})
        connections = self.connections.signature.members
        super().__init__(
            {
                "s_axis_command": In(stream.Signature(command_beat(width))),
                "m_axis_completion": Out(stream.Signature(completion_beat(width))),
                "s_axis_connect": connections["s_axis_connect"],
                "m_axis_notice": connections["m_axis_notice"],
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

    _counted = ("requester", "responder", "egress", "ingress", "connections")

    def elaborate(self, platform: object) -> Module:
        """Join the blocks."""
        m = Module()
        for name in self._counted:
            m.submodules[name] = getattr(self, name)
        requester, egress, ingress, responder = self.requester, self.egress, self.ingress, self.responder
        connect(m, flipped(self.s_axis_command), requester.commands)
        connect(m, requester.completions, flipped(self.m_axis_completion))
        connect(m, requester.requests, egress.requests)
        connect(m, responder.responses, egress.responses)
        connect(m, egress.m_axis, flipped(self.m_axis))
        connect(m, flipped(self.s_axis), ingress.s_axis)
        connect(m, ingress.host, flipped(self.m_axis_host))
        connect(m, ingress.control, flipped(self.m_axis_control))
        connect(m, ingress.requests, responder.requests)
        connect(m, ingress.responses, requester.responses)
        connect(m, responder.m_axi, flipped(self.m_axi))
        connect(m, flipped(self.s_axis_translation), requester.cam_write)
        connect(m, flipped(self.s_axis_window), responder.window_write)
        m.d.comb += [
            self.translation_written.eq(requester.cam_written),
            self.window_written.eq(responder.window_written),
            self.in_flight.eq(requester.in_flight),
            *(block.cfg.eq(self.cfg) for block in (requester, egress, ingress)),
            *(self.counters[name].eq(getattr(self, name).counters) for name in self._counted),
        ]
        self._acknowledge(m)
        self._connect(m)
        self._show(m)
        return m

    def _acknowledge(self, m: Module) -> None:
        """What came tells of what was sent, and what is sent of what came."""
        egress, ingress = self.egress, self.ingress
        connect(m, ingress.acks, egress.acks)
        connect(m, ingress.reported, egress.reported)
        connect(m, egress.paid, ingress.paid)
        m.d.comb += [
            ingress.shown_qp.eq(egress.shown_qp),
            ingress.shown_class.eq(egress.shown_class),
            egress.expected.eq(ingress.expected),
            egress.shown.eq(ingress.shown),
        ]

    def _connect(self, m: Module) -> None:
        """Incarnations begin and end everywhere."""
        table, egress, ingress = self.connections, self.egress, self.ingress
        connect(m, flipped(self.s_axis_connect), table.s_axis_connect)
        connect(m, table.m_axis_notice, flipped(self.m_axis_notice))
        connect(m, ingress.controls, table.control)
        connect(m, ingress.unaccepted, table.unaccepted)
        connect(m, egress.failures, table.failed)
        connect(m, table.answers, egress.answers)
        connect(m, table.open_sender, egress.offer)
        connect(m, table.shut_sender, egress.shut)
        for part in (part for part in PARTS if part != "sender"):
            for verb in ("open", "shut"):
                connect(m, getattr(table, f"{verb}_{part}"), getattr(ingress, f"{verb}_{part}"))
        m.d.comb += [
            *(table.cfg[name].eq(self.cfg[name]) for name in ("open_timeout", "silence_timeout", "retries")),
            table.cfg.window.eq(self.config.window),
            table.heard.eq(ingress.heard),
            self.requester.begins.valid.eq(table.open_sender.valid & table.open_sender.ready),
            self.requester.begins.qp.eq(table.open_sender.payload.qp),
            ingress.drained_qp.eq(table.drained_qp),
            table.is_drained.eq(ingress.is_drained),
        ]

    def _show(self, m: Module) -> None:
        """The table of connections, to all who look something up there."""
        table, egress, ingress, requester = self.connections, self.egress, self.ingress, self.requester
        views = (
            ("transmit", egress.transmit_qp, egress.transmit),
            ("notes", egress.notes_qp, egress.notes),
            ("requester", requester.peer_qp, requester.peer),
            ("limit", requester.limit_qp, requester.limit),
            ("tags", requester.scan_qp, requester.scan),
            ("parser", ingress.parser_qp, ingress.parser_entry),
            ("reader", ingress.reader_qp, ingress.reader_entry),
        )
        for name, qp, entry in views:
            m.d.comb += [getattr(table, f"{name}_qp").eq(qp), entry.eq(getattr(table, name))]
