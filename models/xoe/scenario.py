"""What the events of a script mean, whoever runs it: two models, two NICs, or one of each.

- ``at 0 A setup ...``: parameters of both ends, the fields of ``Setup``;
- ``at T A add qp= slot= value=``, ``write qp= slot= length= fill=``, ``read qp= slot= length=``, ``fence qp=``;
- ``at T A close qp=``, ``reset``; ``stall`` (the responder) and ``resume``; ``hold`` (completions) and ``take``.

Whatever is closed or lost is opened again at once. ``qp`` is a connection: the number that A has for it.
"""

from __future__ import annotations

import dataclasses

from .command import Command
from .config import NicConfig
from .cyclic import CREDIT_BITS, SEQ_BITS
from .fault_script import Event, Script, ScriptError
from .pair import local_qp
from .stimulus import COUNTERS_MAX, SLOT, SLOTS, counter_address, slot_address
from .transport import TransportSettings
from .wire import CRC_SIZE, FrameHeader, Opcode, OperationHeader

QUEUE_PAIRS = 16
_TRANSPORT = ("retries", "reorder", "ack_every", "sync_interval", "silence_timeout")
COMMANDS = ("add", "write", "read", "fence")
VERBS = (*COMMANDS, "close", "reset", "stall", "resume", "hold", "take", "setup")


@dataclasses.dataclass(frozen=True)
class Setup:
    """Parameters of a script's both ends, and of what lies between them.

    Attributes:
        window, mtu, credit_size, slots, tags: see ``NicConfig``.
        pairs: connections.
        go_back_n, retries, reorder, ack_every, sync_interval, silence_timeout: see ``TransportSettings``.
        rate: of the link, bytes in a clock; 0: a frame takes no time. Hardware has its own.
        delay: of the link, clocks.
        first: PSNs and counts of credits begin so many before their end.
        timeout: of commands, clocks; 0: none.
    """

    window: int = 64
    mtu: int = 4096
    credit_size: int = 512
    slots: int = 16
    tags: int = 64
    pairs: int = 2
    go_back_n: int = 0
    retries: int = 7
    reorder: int = 3
    ack_every: int = 4
    sync_interval: int = 1 << 16
    silence_timeout: int = 1 << 19
    rate: int = 0
    delay: int = 500
    first: int = 0
    timeout: int = 0

    @classmethod
    def of(cls, script: Script) -> Setup:
        """What the events of a script set up.

        Raises:
            ScriptError: an event that means nothing, or a parameter that there is not.
        """
        values: dict[str, int] = {}
        names = [field.name for field in dataclasses.fields(cls)]
        for event in script.events:
            if event.verb not in VERBS:
                raise ScriptError(f"{event}: the verb must be one of {', '.join(VERBS)}, not {event.verb!r}")
            if event.verb == "setup":
                values.update(event.arguments)
        for name in values:
            if name not in names:
                raise ScriptError(f"setup: a parameter is one of {', '.join(names)}, not {name!r}")
        return cls(**values)

    def config(self, **others: int) -> NicConfig:
        """The parameters of both NICs; ``others`` besides.

        Raises:
            ConfigError: one is out of bounds.
        """
        given = {name: getattr(self, name) for name in ("window", "mtu", "credit_size", "tags")}
        return NicConfig(queue_pairs=QUEUE_PAIRS, atomic_slots=self.slots, **(given | others))

    def transport(self) -> TransportSettings:
        """The transport's settings.

        Raises:
            ConfigError: one is out of bounds.
        """
        given = {name: getattr(self, name) for name in _TRANSPORT}
        return TransportSettings(go_back_n=bool(self.go_back_n), **given)

    @property
    def first_seq(self) -> int:
        """PSN of the first data frame of every connection."""
        return -self.first % (1 << SEQ_BITS)

    @property
    def first_credit(self) -> int:
        """Where counts of credits begin."""
        return -self.first % (1 << CREDIT_BITS)

    @property
    def largest(self) -> int:
        """Bytes of the largest write or read."""
        overhead = FrameHeader.SIZE + OperationHeader.SIZE + CRC_SIZE
        return min(SLOT, (self.mtu - overhead) // 8 * 8)

    def command(self, event: Event, number: int) -> Command:
        """The command that an event asks for, with an id."""
        return self.make(event.end, event.verb, number, **dict(event.arguments))

    def make(
        self, end: str, verb: str, number: int, qp: int, slot: int = 0, length: int = 8, value: int = 1, fill: int = 0
    ) -> Command:
        """A command of an end: ``verb`` is one of ``COMMANDS``.

        Raises:
            ScriptError: a connection, slot or counter that there is not.
        """
        if not 0 <= qp < self.pairs:
            raise ScriptError(f"{verb}: qp must be below {self.pairs}, not {qp}")
        slots = COUNTERS_MAX if verb == "add" else SLOTS
        if not 0 <= slot < slots:
            raise ScriptError(f"{verb}: slot must be below {slots}, not {slot}")
        local, length = local_qp(end, qp, QUEUE_PAIRS), min(length, self.largest)
        opcode, address, data = Opcode[verb.upper()], slot_address(qp, slot), b""
        if verb == "add":
            address, length, data = counter_address(qp, slot), 8, value.to_bytes(8, "little")
        elif verb == "write":
            data = bytes((fill + at) % 256 for at in range(length))
        elif verb == "fence":
            length = 0
        return Command(opcode, number, local, local, address, length, data)
