"""Two endpoints joined by a faulty link, with windows and translations that let each reach the other's memory."""

import dataclasses
import random

import pytest

from xoe.command import Command
from xoe.config import NicConfig
from xoe.endpoint import Endpoint
from xoe.fault_script import Script
from xoe.faults import Injector
from xoe.memory import Memory
from xoe.network import Link, run
from xoe.pair import MACS, NODES, translations, windows
from xoe.pair import remote_qp as joined_to
from xoe.pair import settings as registers
from xoe.transport import TransportSettings
from xoe.wire import Opcode, Status

NAMES = ("A", "B")
CONFIG = NicConfig()
SETTINGS = TransportSettings()

SELECTIVE = dataclasses.replace(SETTINGS, go_back_n=False)
GO_BACK = dataclasses.replace(SETTINGS, go_back_n=True)
MODES = pytest.mark.parametrize("transport", [SELECTIVE, GO_BACK], ids=["selective", "go-back-n"])
WIDE = dataclasses.replace(
    CONFIG, credit_request=160, credit_response=160, resend_buffer=80_000, receive_buffer=0, tags=256
)
"""Room for seventeen of the largest frames at once."""

LARGE = 14 * 256  # bytes that are written by one of the largest frames


def other(name):
    return "B" if name == "A" else "A"


def remote_qp(name, qp):
    """A's queue pair n is joined to B's n + 1."""
    return joined_to(name, qp, CONFIG.queue_pairs)


class Pair:
    """``ends`` and ``links`` by name, the time, and all completions by end and id.

    ``config``, ``transport`` and the further arguments of ``Endpoint`` may be dictionaries with a value for each end.
    """

    endpoint = Endpoint

    def __init__(self, script="", rates=None, seed=1, delay=500, rate=None, config=None, transport=None, **arguments):
        self.script = Script.parse(script) if isinstance(script, str) else script
        configs = config if isinstance(config, dict) else dict.fromkeys(NAMES, config or CONFIG)
        transports = transport if isinstance(transport, dict) else dict.fromkeys(NAMES, transport or SETTINGS)
        self.ends = {}
        for name in NAMES:
            own = {
                key: value[name] if isinstance(value, dict) and "A" in value else value
                for key, value in arguments.items()
            }
            self.ends[name] = self.endpoint(
                configs[name], registers(name, configs[name].mtu), transports[name], Memory(), **own
            )
            self.set_tables(name)
        self.links = {}
        for number, direction in enumerate(("A>B", "B>A")):
            rules = [rule for rule in self.script.rules if rule.direction == direction]
            injector = Injector(rules, rates, seed * 2 + number, direction)
            self.links[direction] = Link(delay, rate, injector)
        self.now = 0
        self.done = {name: {} for name in NAMES}
        self.notices = {name: [] for name in NAMES}
        self.submitted = 0
        self.fetch = {"A": True, "B": True}

    @property
    def a(self):
        return self.ends["A"]

    @property
    def b(self):
        return self.ends["B"]

    def set_tables(self, name):
        """Translations for each queue pair (its address space) to the other's memory, and windows for the other."""
        end = self.ends[name]
        for index, page in enumerate(translations(name, min(16, end.config.queue_pairs))):
            end.translations.write(index, page)
        for index, page in enumerate(windows(name)):
            end.windows.write(index, page)

    def peer(self, name, qp):
        return MACS[other(name)], NODES[other(name)], remote_qp(name, qp)

    def connect(self, name="A", qp=0):
        self.ends[name].connect(qp, *self.peer(name, qp), self.now)

    def listen(self, name="B", qp=1):
        self.ends[name].listen(qp, *self.peer(name, qp))

    def open(self, qp=0):
        """Join A's queue pair to B's."""
        self.listen("B", remote_qp("A", qp))
        self.connect("A", qp)
        self.run_until(lambda: self.is_open(qp))

    def is_open(self, qp=0):
        """Whether both ends are open, and with each other."""
        pairs = self.a.pairs.get(qp), self.b.pairs.get(remote_qp("A", qp))
        if not all(pair is not None and pair.channel is not None for pair in pairs):
            return False
        first, second = ((pair.channel.offer.epoch, pair.channel.peer.epoch) for pair in pairs)
        return first == second[::-1]

    def submit(self, name, opcode, address, length=8, data=None, qp=None):
        """Submit a command; its id."""
        qp = ({"A": 0, "B": 1}[name]) if qp is None else qp
        if data is None:
            data = bytes(length) if opcode == Opcode.WRITE else b""
        number = self.submitted
        self.submitted += 1
        self.give(name, Command(opcode, number, qp, qp, address, length, data))
        return number

    def give(self, name, command):
        self.ends[name].submit(command)

    def take(self, name, completion):
        assert completion.id not in self.done[name], f"{name} completed {completion} twice"
        self.done[name][completion.id] = completion

    def write(self, name, address, data, qp=None):
        return self.submit(name, Opcode.WRITE, address, len(data), data, qp)

    def read(self, name, address, length, qp=None):
        return self.submit(name, Opcode.READ, address, length, b"", qp)

    def add(self, name, address, number, qp=None):
        return self.submit(name, Opcode.ADD, address, 8, number.to_bytes(8, "little"), qp)

    def step(self, now):
        """Fetch completions and notices; a command that completes twice is an error."""
        self.now = now
        for name, end in self.ends.items():
            while end.completions and self.fetch[name]:
                self.take(name, end.completions.popleft())
            while end.notices:
                qp, notice = end.notices.popleft()
                self.notices[name].append((qp, notice.name))

    def run_until(self, condition, events=(), patience=4_000_000):
        def until(now):
            self.step(now)
            return condition()

        self.now = run(self.ends, self.links, until, self.now, events, patience)
        self.check()

    def run(self, clocks):
        """Let so much time pass, whatever happens."""
        end = self.now + clocks
        self.run_until(lambda: self.now >= end, [(end, lambda now: None)])

    def finish(self, events=(), patience=4_000_000):
        """Run until all that was submitted is completed, and nothing is under way."""
        self.run_until(lambda: self.now > 0 and all(end.is_idle for end in self.ends.values()), events, patience)

    def check(self):
        """What must always hold."""
        for end in self.ends.values():
            check_endpoint(end)

    def status(self, name, number):
        return self.done[name][number].status

    def value(self, name, number):
        """What an atomic returned."""
        return int.from_bytes(self.done[name][number].data, "little")


def kept(pair):
    """Credits of all frames of a queue pair that are in the receive buffer, of whatever incarnation."""
    old = sum(waiting.frame.credits for waiting in pair._inbox if waiting.channel is not pair.channel)
    return old + (sum(pair.channel.used) if pair.channel else 0)


def check_endpoint(end):
    """The invariants of an endpoint and of its connections."""
    assert 0 <= end.buffer.used <= end.buffer.high <= end.config.receive_buffer
    assert end.buffer.used == sum(map(kept, end.pairs)) * end.config.credit_size
    assert len(end.completions) + len(end.tags) <= end.config.tags
    for channel in (pair.channel for pair in end.pairs if pair.channel is not None):
        assert len(channel.sender.outstanding) <= channel.sender.window <= end.config.window
        assert 0 <= channel.unacknowledged <= end.config.resend_buffer
        assert 0 <= channel.slots.used <= channel.slots.slots
        assert 0 <= channel.atomics <= channel.peer.atomic_slots
        assert all(0 <= credits.available <= credits.limit for credits in channel.credit_senders)
        assert all(0 <= used <= limit for used, limit in zip(channel.used, end.config.credits, strict=True))


def settings(**changes):
    return dataclasses.replace(SETTINGS, **changes)


def opened(script="", **arguments):
    pair = Pair(script, **arguments)
    pair.open()
    return pair


def write_message(pair, size, address=0, name="A", seed=0):
    """Write so many bytes with the largest writes; the bytes."""
    data = random.Random(f"{seed} {size}").randbytes(size)
    for at in range(0, size, 256):
        pair.write(name, address + at, data[at : at + 256])
    return data


def all_done(pair):
    return all(completion.status == Status.DONE for done in pair.done.values() for completion in done.values())


def counted(pair, event):
    return pair.a.counters[event] + pair.b.counters[event]
