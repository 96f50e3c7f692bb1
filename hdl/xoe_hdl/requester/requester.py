"""The requester: commands become requests with tags, responses become completions. Model: ``xoe.requester``."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import NicConfig
from xoe.cyclic import EPOCH_BITS
from xoe.wire import ATOMICS, DATA_MAX, RESPONSE_BIT, Status, TrafficClass

from ..cam import Cam
from ..delay import delayed
from ..layouts import (
    CFG,
    MAC_BITS,
    NODE_BITS,
    QP_BITS,
    STATUS_BITS,
    TRANSLATION,
    command_beat,
    completion_beat,
    counters,
    operation_beat,
)
from ..queues import FallThroughQueue, OperationQueue, beats_max
from ..queues.operation_queue import OPERATIONS_MIN
from ..transport.connection_layouts import entry_layout
from ..transport.layouts import qp_bits
from .atomics_limit import COUNT_BITS, AtomicsLimit
from .command_check import CHECKED, UNDER_WAY, CommandCheck
from .completer import REFUSAL, Completer
from .tags import Tags

REFUSED = [*(status for status in Status if Status.DONE < status < Status.TIMED_OUT), Status.NOT_CONNECTED]
EVENTS = ("stray", "bad_response", "timed_out", "connection_lost")

COMMANDS = 16  # checked and translated ones that wait
REFUSALS = 4  # that wait for their completion

VERDICT = data.StructLayout(
    {
        "command": CHECKED,
        "is_refused": 1,
        "address": 64,
        "mac": MAC_BITS,
        "node": NODE_BITS,
        "remote_qp": QP_BITS,
        "epoch": EPOCH_BITS,
        "atomic_slots": COUNT_BITS,
    }
)
"""A command with its final status, and where it goes if it is not refused."""


class Requester(wiring.Component):
    """Turns a user's commands into requests, and what becomes of them into completions.

    A command is translated when it is whole, so that a user that stops in the middle of one holds up nobody. Seven
    clocks after its last beat was taken its request is offered, or it is refused. Requests leave in the order of their
    commands. A request waits, and with it the commands behind it, while no tag is free, or ``config.tags`` commands are
    under way or have completions that were not taken, or for an atomic while its connection has as many without an
    answer as the other end grants. Refusals need no tag, and go past nothing.

    Six clocks from a response's last beat to its completion; ``responses`` never wait for ``completions``. Completions
    of commands that are refused, of requests that time out and of responses take turns. All streams take a beat every
    clock unless what they lead to is held.

    ``cam_write`` and ``cam_written`` are those of the translation CAM, see ``Cam``. ``counters`` has what was refused,
    by status, and what ``Completer`` tells. ``in_flight``: tags in use. ``begins``, valid for a clock: an incarnation
    does, as the table of connections will say. ``peer_qp`` and two clocks later ``peer``,
    ``limit_qp`` and ``limit``, ``scan_qp`` and ``scan``: look-ups in the table of connections: a command goes only
    where its queue pair is connected, an atomic that waits does so no longer than its incarnation lasts, and a request
    whose incarnation is over is completed as lost.
    """

    def __init__(self, config: NicConfig) -> None:
        width, bits = config.data_width, qp_bits(config.queue_pairs)
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
                "peer_qp": Out(bits),
                "peer": In(entry_layout()),
                "begins": In(data.StructLayout({"valid": 1, "qp": bits})),
                "limit_qp": Out(bits),
                "limit": In(entry_layout()),
                "scan_qp": Out(bits),
                "scan": In(entry_layout()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join the parts."""
        m = Module()
        m.submodules.cam = self.cam
        m.submodules.check = check = CommandCheck(self.config)
        m.submodules.verdicts = verdicts = FallThroughQueue(VERDICT, COMMANDS, UNDER_WAY + self.cam.latency + 1)
        m.submodules.tags = tags = Tags(self.config.tags, self.config.queue_pairs)
        m.submodules.limit = limit = AtomicsLimit(self.config.queue_pairs)
        m.submodules.refusals = refusals = FallThroughQueue(REFUSAL, REFUSALS, 1)
        m.submodules.completer = completer = Completer(self.config.data_width)
        connect(m, flipped(self.commands), check.commands)
        connect(m, flipped(self.cam_write), self.cam.write)
        connect(m, flipped(self.responses), completer.responses)
        connect(m, tags.expired, completer.expired)
        connect(m, refusals.o, completer.refusals)
        has_room = self._hold(m, completer.completions, tags, refusals)
        m.d.comb += [
            self.cam_written.eq(self.cam.written),
            check.mtu.eq(self.cfg.mtu),
            check.room.eq(verdicts.room),
            tags.timeout.eq(self.cfg.timeout),
            tags.answer.eq(completer.answer),
            completer.answered.eq(tags.answered),
            self.in_flight.eq(tags.in_flight),
            tags.scan.eq(self.scan),
            self.scan_qp.eq(tags.scan_qp),
        ]
        self._translate(m, check.checked, verdicts.i)
        self._issue(m, verdicts.o, check.beats, tags, refusals, limit, has_room)
        self._follow_atomics(m, limit)
        self._count(m, refusals.i, completer)
        return m

    def _hold(self, m: Module, completions: stream.Interface, tags: Tags, refusals: FallThroughQueue) -> Signal:
        """Keep completions until the user takes them; whether there is room for that of another command.

        No more commands are under way than completions have room, so responses never wait for the user.
        """
        config, width = self.config, self.config.data_width
        beats = max(config.tags * DATA_MAX * 8 // width, beats_max(width))
        m.submodules.held = held = OperationQueue(width, max(config.tags, OPERATIONS_MIN), beats, completion_beat)
        connect(m, completions, held.i)
        connect(m, held.o, flipped(self.completions))
        owed, has_room, is_taken = Signal(range(config.tags + 1)), Signal(init=1), Signal()
        later = Signal.like(owed)
        begins = tags.free.valid & tags.free.ready | refusals.i.valid
        m.d.sync += is_taken.eq(held.o.valid & held.o.ready & held.o.payload.last)
        m.d.comb += later.eq(owed + begins - is_taken)
        m.d.sync += [owed.eq(later), has_room.eq(later != config.tags)]
        return has_room

    def _translate(self, m: Module, checked: data.View, verdicts: stream.Interface) -> None:
        """Look up, and add what the page and the connection say to what the command said by itself."""
        found, latency = self.cam.result, self.cam.latency
        command = delayed(m, "command", checked, latency)
        status = Signal(STATUS_BITS)
        m.d.comb += [self.cam.lookup[name].eq(checked[name]) for name in ("valid", "address", "space", "length")]
        m.d.comb += [self.peer_qp.eq(delayed(m, "peer_qp", checked.qp, latency - 2)), status.eq(command.status)]
        with m.If(command.status != Status.DONE):
            pass
        with m.Elif(~found.hit):
            m.d.comb += status.eq(Status.TRANSLATION_FAULT)
        with m.Elif((command.rights & ~found.payload.rights).any()):
            m.d.comb += status.eq(Status.PERMISSION)
        with m.Elif(found.crosses):
            m.d.comb += status.eq(Status.OUT_OF_RANGE)
        self._compare(m, delayed(m, "command_later", command, 1), delayed(m, "status", status, 1), verdicts)

    def _compare(self, m: Module, command: data.View, status: Value, verdicts: stream.Interface) -> None:
        """A clock later: does the connection lead to where the page is?"""
        verdict, peer = verdicts.payload, self.peer
        found = delayed(m, "found", self.cam.result, 1)
        page = found.payload
        leads = Signal(3)
        m.d.sync += leads.eq(
            Cat(
                peer.is_open & (peer.node == self.cam.result.payload.node),
                peer.mac == self.cam.result.payload.mac,
                peer.remote_qp == self.cam.result.payload.qp,
            )
        )
        m.d.sync += [verdict.epoch.eq(peer.epoch), verdict.atomic_slots.eq(peer.atomic_slots)]
        m.d.comb += [
            verdicts.valid.eq(found.valid),
            verdict.command.eq(command),
            verdict.command.status.eq(Mux((status == Status.DONE) & ~leads.all(), Status.NOT_CONNECTED, status)),
            verdict.is_refused.eq((status != Status.DONE) | ~leads.all()),
            verdict.address.eq(found.address),
            verdict.mac.eq(page.mac),
            verdict.node.eq(page.node),
            verdict.remote_qp.eq(page.qp),
        ]

    def _follow_atomics(self, m: Module, limit: AtomicsLimit) -> None:
        """Answers to atomics, a clock after they came; of whoever waits for them, or does not any more."""
        response, is_inside, answered = self.responses, Signal(), Signal(limit.answered.shape())
        operation, route = response.payload.data.operation, response.payload.data.route
        is_taken = response.valid & response.ready
        is_atomic = operation.opcode.matches(*sorted(int(opcode) | RESPONSE_BIT for opcode in ATOMICS))
        with m.If(is_taken):
            m.d.sync += is_inside.eq(~response.payload.last)
        m.d.sync += [
            answered.valid.eq(is_taken & ~is_inside & is_atomic),
            answered.owner.qp.eq(route.local_qp),
            answered.owner.epoch.eq(route.epoch),
        ]
        m.d.comb += limit.answered.eq(answered)

    def _issue(
        self,
        m: Module,
        verdicts: stream.Interface,
        beats: stream.Interface,
        tags: Tags,
        refusals: FallThroughQueue,
        limit: AtomicsLimit,
        has_room: Value,
    ) -> None:
        """Send the foremost command as a request with a tag, or drop its data and refuse it."""
        verdict, command, request = verdicts.payload, verdicts.payload.command, self.requests.payload
        is_there, is_last, is_moved, may_go, begun = verdicts.valid, Signal(), Signal(), Signal(), Signal()
        # Once a request's first beat is offered, it goes on.
        m.d.comb += may_go.eq(begun | tags.free.valid & has_room & (limit.permit | ~command.is_atomic))
        with m.If(self.requests.valid):
            m.d.sync += begun.eq(~(self.requests.ready & is_last))
        m.d.comb += [
            limit.head.valid.eq(is_there & command.is_atomic & ~verdict.is_refused),
            limit.head.owner.qp.eq(command.qp),
            limit.head.owner.epoch.eq(verdict.epoch),
            limit.slots.eq(verdict.atomic_slots),
            limit.begins.eq(self.begins),
            self.limit_qp.eq(command.qp),
            limit.issued.eq(tags.free.valid & tags.free.ready & command.is_atomic),
            tags.owner.qp.eq(command.qp),
            tags.owner.epoch.eq(verdict.epoch),
        ]
        m.d.comb += [
            # A command's beats have been there for a while when its verdict comes.
            is_last.eq(~command.has_beats | beats.payload.last),
            is_moved.eq(Mux(verdict.is_refused, refusals.room & has_room, may_go & self.requests.ready)),
            self.requests.valid.eq(is_there & ~verdict.is_refused & may_go),
            tags.free.ready.eq(is_there & ~verdict.is_refused & may_go & self.requests.ready & is_last),
            refusals.i.valid.eq(is_there & verdict.is_refused & is_last & refusals.room & has_room),
            beats.ready.eq(is_there & command.has_beats & is_moved),
            verdicts.ready.eq(is_last & is_moved),
            tags.record.eq(command.record),
            refusals.i.payload.id.eq(command.record.id),
            refusals.i.payload.opcode.eq(command.record.opcode),
            refusals.i.payload.status.eq(command.status),
        ]
        # Nobody answers any more: it goes, to be dropped, and its tag completes it.
        m.d.sync += limit.is_over.eq(~self.limit.is_open | (self.limit.epoch != verdict.epoch))
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
            route.epoch.eq(verdict.epoch),
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
