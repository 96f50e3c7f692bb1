"""The requester: commands become requests with tags, responses become completions. Model: ``xoe.requester``."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import NicConfig
from xoe.wire import Status, TrafficClass

from ..cam import Cam
from ..delay import delayed
from ..layouts import (
    CFG,
    MAC_BITS,
    NODE_BITS,
    QP_BITS,
    TRANSLATION,
    command_beat,
    completion_beat,
    counters,
    operation_beat,
)
from ..queues import FallThroughQueue
from .command_check import CHECKED, UNDER_WAY, CommandCheck
from .completer import REFUSAL, Completer
from .tags import Tags

REFUSED = [status for status in Status if Status.DONE < status < Status.TIMED_OUT]
EVENTS = ("stray", "bad_response", "timed_out")

COMMANDS = 16  # checked and translated ones that wait
REFUSALS = 4  # that wait for their completion

VERDICT = data.StructLayout(
    {"command": CHECKED, "is_refused": 1, "address": 64, "mac": MAC_BITS, "node": NODE_BITS, "remote_qp": QP_BITS}
)
"""A command with its final status, and where it goes if it is not refused."""


class Requester(wiring.Component):
    """Turns a user's commands into requests, and what becomes of them into completions.

    A command is translated when it is whole, so that a user that stops in the middle of one holds up nobody. Six
    clocks after its last beat was taken its request is offered, or it is refused. Requests leave in the order of their
    commands. A request waits, and with it the commands behind it, while no tag is free; refusals need none, and go past
    nothing.

    Three clocks from a response to its completion. Completions of commands that are refused, of requests that time out
    and of responses take turns. All streams take a beat every clock unless what they lead to is held.

    ``cam_write`` and ``cam_written`` are those of the translation CAM, see ``Cam``. ``counters`` has what was refused,
    by status, and what ``Completer`` tells. ``in_flight``: tags in use.
    """

    def __init__(self, config: NicConfig) -> None:
        width = config.data_width
        self.config = config
        self.cam = Cam(config.cam_entries, TRANSLATION)
        names = [status.name.lower() for status in REFUSED] + list(EVENTS)
        super().__init__(
            {
                "commands": In(stream.Signature(command_beat(width))),
                "completions": Out(stream.Signature(completion_beat(width))),
                "requests": Out(stream.Signature(operation_beat(width))),
                "responses": In(stream.Signature(operation_beat(width))),
                "cam_write": self.cam.signature.members["write"],
                "cam_written": self.cam.signature.members["written"],
                "cfg": In(CFG),
                "counters": Out(counters(*names, width=config.counter_width)),
                "in_flight": Out(range(config.tags + 1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join the parts."""
        m = Module()
        m.submodules.cam = self.cam
        m.submodules.check = check = CommandCheck(self.config)
        m.submodules.verdicts = verdicts = FallThroughQueue(VERDICT, COMMANDS, UNDER_WAY + self.cam.latency)
        m.submodules.tags = tags = Tags(self.config.tags)
        m.submodules.refusals = refusals = FallThroughQueue(REFUSAL, REFUSALS, 1)
        m.submodules.completer = completer = Completer(self.config.data_width)
        connect(m, flipped(self.commands), check.commands)
        connect(m, flipped(self.cam_write), self.cam.write)
        connect(m, flipped(self.responses), completer.responses)
        connect(m, tags.expired, completer.expired)
        connect(m, refusals.o, completer.refusals)
        connect(m, completer.completions, flipped(self.completions))
        m.d.comb += [
            self.cam_written.eq(self.cam.written),
            check.mtu.eq(self.cfg.mtu),
            check.room.eq(verdicts.room),
            tags.timeout.eq(self.cfg.timeout),
            tags.answer.eq(completer.answer),
            completer.answered.eq(tags.answered),
            self.in_flight.eq(tags.in_flight),
        ]
        self._translate(m, check.checked, verdicts.i)
        self._issue(m, verdicts.o, check.beats, tags, refusals)
        self._count(m, refusals.i, completer)
        return m

    def _translate(self, m: Module, checked: data.View, verdicts: stream.Interface) -> None:
        """Look up, and add what the page says to what the command said by itself."""
        found, verdict = self.cam.result, verdicts.payload
        command = delayed(m, "command", checked, self.cam.latency)
        m.d.comb += [self.cam.lookup[name].eq(checked[name]) for name in ("valid", "address", "space", "length")]
        m.d.comb += [
            verdicts.valid.eq(found.valid),
            verdict.command.eq(command),
            verdict.is_refused.eq(verdict.command.status != Status.DONE),
            verdict.address.eq(found.address),
            verdict.mac.eq(found.payload.mac),
            verdict.node.eq(found.payload.node),
            verdict.remote_qp.eq(found.payload.qp),
        ]
        with m.If(command.status != Status.DONE):
            pass
        with m.Elif(~found.hit):
            m.d.comb += verdict.command.status.eq(Status.TRANSLATION_FAULT)
        with m.Elif((command.rights & ~found.payload.rights).any()):
            m.d.comb += verdict.command.status.eq(Status.PERMISSION)
        with m.Elif(found.crosses):
            m.d.comb += verdict.command.status.eq(Status.OUT_OF_RANGE)

    def _issue(
        self,
        m: Module,
        verdicts: stream.Interface,
        beats: stream.Interface,
        tags: Tags,
        refusals: FallThroughQueue,
    ) -> None:
        """Send the foremost command as a request with a tag, or drop its data and refuse it."""
        verdict, command, request = verdicts.payload, verdicts.payload.command, self.requests.payload
        is_there, is_last, is_moved = verdicts.valid, Signal(), Signal()
        m.d.comb += [
            # A command's beats have been there for a while when its verdict comes.
            is_last.eq(~command.has_beats | beats.payload.last),
            is_moved.eq(Mux(verdict.is_refused, refusals.room, tags.free.valid & self.requests.ready)),
            self.requests.valid.eq(is_there & ~verdict.is_refused & tags.free.valid),
            tags.free.ready.eq(is_there & ~verdict.is_refused & self.requests.ready & is_last),
            refusals.i.valid.eq(is_there & verdict.is_refused & is_last & refusals.room),
            beats.ready.eq(is_there & command.has_beats & is_moved),
            verdicts.ready.eq(is_last & is_moved),
            tags.record.eq(command.record),
            refusals.i.payload.id.eq(command.record.id),
            refusals.i.payload.opcode.eq(command.record.opcode),
            refusals.i.payload.status.eq(command.status),
        ]
        operation, route = request.data.operation, request.data.route
        m.d.comb += [
            request.last.eq(is_last),
            # Without data of its own there may be that of a later command, still on its way, which would change.
            request.data.data.eq(Mux(command.has_beats, beats.payload.data, 0)),
            operation.opcode.eq(command.record.opcode),
            operation.words.eq(command.words),
            operation.tag.eq(tags.free.payload),
            operation.length.eq(command.length),
            operation.address.eq(verdict.address),
            route.mac.eq(verdict.mac),
            route.node.eq(verdict.node),
            route.remote_qp.eq(verdict.remote_qp),
            route.local_qp.eq(command.qp),
            # Probes would have a class of their own; they are refused.
            route.traffic_class.eq(Mux(command.is_atomic, TrafficClass.ATOMIC, TrafficClass.REQUEST)),
        ]

    def _count(self, m: Module, refusals: stream.Interface, completer: Completer) -> None:
        """Count, a clock after it happened."""
        events = {status.name.lower(): refusals.valid & (refusals.payload.status == status) for status in REFUSED}
        events |= {name: getattr(completer, name) for name in EVENTS}
        for name, event in events.items():
            happened = Signal(name=f"{name}_happened")
            m.d.sync += happened.eq(event)
            with m.If(happened):
                m.d.sync += self.counters[name].eq(self.counters[name] + 1)
