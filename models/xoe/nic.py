"""The NIC: requester, framer, parser and responder joined, as ``xoe_hdl.nic`` joins them.

It has no clock: operations are carried out when a frame arrives, and frames leave when they are asked for. Two of them,
or one and a simulated NIC, can be joined by handing over the frames that ``transmit`` gives to ``receive``.
"""

from __future__ import annotations

import dataclasses
from collections import deque

from .cam import Cam, Translation, Window
from .command import Command, Completion, Request
from .config import NicConfig
from .framer import Framer, Routed, Settings
from .memory import Memory
from .parser import Parsed, Parser
from .requester import Requester
from .responder import Responder
from .wire import TrafficClass


class Nic:
    """A NIC with its memory; see the blocks for what can be refused, and for their counters.

    Args:
        config: the parameters.
        settings: what the registers hold; ``settings.mtu`` is at most ``config.mtu``.
        memory: what peers read and write.
        timeout: clocks after which a request is given up; 0: never. Time passes by ``requester.step``.

    ``translations`` and ``windows`` are filled by their ``write``; ``completions`` has those not fetched yet.
    """

    def __init__(self, config: NicConfig, settings: Settings, memory: Memory, timeout: int = 0) -> None:
        self.translations: Cam[Translation] = Cam(config.cam_entries)
        self.windows: Cam[Window] = Cam(config.windows)
        self.requester = Requester(config, self.translations, settings.mtu, timeout)
        self.framer = Framer(settings)
        self.parser = Parser(config, settings.mac, settings.node, settings.ethertype)
        self.responder = Responder(memory, self.windows)
        self.completions: deque[Completion] = deque()
        self._commands: deque[Command] = deque()
        self._requests: list[Routed] = []
        self._responses: list[Routed] = []

    def submit(self, command: Command) -> None:
        """Carry out a command, or let it wait for a tag; how it ends is among ``completions`` at some time."""
        self._commands.append(command)
        self._start_waiting()

    def transmit(self) -> list[bytes]:
        """The frames of all that waits to be sent, responses first."""
        frames = self.framer.frames(self._responses) + self.framer.frames(self._requests)
        self._responses, self._requests = [], []
        return frames

    def receive(self, data: bytes, bad: bool = False) -> Parsed:
        """Take a frame, without FCS, and carry out what is in it; returns what the parser made of it."""
        parsed = self.parser.parse(data, bad)
        for operation in parsed.operations:
            if operation.is_response:
                completion = self.requester.respond(operation)
                if completion is not None:
                    self.completions.append(completion)
            elif parsed.route is not None:
                response = self.responder.execute(operation, parsed.route.node)
                if response is not None:
                    route = dataclasses.replace(parsed.route, traffic_class=TrafficClass.RESPONSE)
                    self._responses.append((response, route))
        self._start_waiting()
        return parsed

    def _start_waiting(self) -> None:
        """Start commands in their order for as long as there are tags."""
        while self._commands:
            started = self.requester.submit(self._commands[0])
            if started is None:
                return
            self._commands.popleft()
            if isinstance(started, Request):
                self._requests.append((started.operation, started.route))
            else:
                self.completions.append(started)


def exchange(first: Nic, second: Nic) -> list[bytes]:
    """Hand frames to and fro until neither has any; the frames, in order."""
    sent: list[bytes] = []
    while True:
        there, back = first.transmit(), second.transmit()
        if not there and not back:
            return sent
        sent += there + back
        for frame in there:
            second.receive(frame)
        for frame in back:
            first.receive(frame)
