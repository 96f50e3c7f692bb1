"""A workload, faults and what users do, as one script that can be replayed, and what must come of it.

``python models/tests/scenario.py FILE`` replays a script. Its events are

- ``at 0 A setup ...``: parameters of both ends, see ``DEFAULTS``;
- ``at T A add qp= slot= value=``, ``write qp= slot= length= fill=``, ``read qp= slot= length=``, ``fence qp=``;
- ``at T A close qp=``, ``reset``, ``stall``, ``resume``.

Whatever is closed or lost is opened again at once. Queue pairs are named as A has them.
"""

import dataclasses
import sys
from pathlib import Path

from endpoints import CONFIG, NAMES, Pair, check_endpoint, other, remote_qp, settings
from xoe.connection import State
from xoe.fault_script import Script
from xoe.faults import Injector
from xoe.oracle import Oracle, Watched
from xoe.wire import Opcode, Status

DEFAULTS = {
    "window": 64,
    "mtu": 4096,
    "credit_size": 512,
    "slots": 16,
    "tags": 64,
    "pairs": 2,
    "go_back_n": 0,
    "retries": 7,
    "reorder": 3,
    "ack_every": 4,
    "rate": 0,
    "delay": 500,
    "first": 0,
    "timeout": 0,
}
SLOT = 256
COUNTERS = 0x2000  # from the beginning of a queue pair's part of memory
PATIENCE = 10**7


class Scenario(Pair):
    """Runs a script, under the eyes of an oracle."""

    endpoint = Watched

    def __init__(self, script):
        self.setup = setup = dict(DEFAULTS)
        for event in script.events:
            if event.verb == "setup":
                setup.update(event.arguments)
        automatic = dict.fromkeys(
            ("credit_request", "credit_response", "credit_atomic", "resend_buffer", "receive_buffer"), 0
        )
        given = {name: setup[name] for name in ("window", "mtu", "credit_size", "tags")}
        config = dataclasses.replace(CONFIG, atomic_slots=setup["slots"], **given, **automatic)
        names = ("retries", "reorder", "ack_every")
        first = -setup["first"]
        super().__init__(
            script,
            delay=setup["delay"],
            rate=setup["rate"] or None,
            config=config,
            transport=settings(go_back_n=bool(setup["go_back_n"]), **{name: setup[name] for name in names}),
            timeout=setup["timeout"],
            epochs=dict.fromkeys(NAMES, dict.fromkeys(range(CONFIG.queue_pairs), first % 256)),
            first_seq=first % (1 << 24),
            first_credit=first % (1 << 20),
        )
        self.oracle = Oracle({name: other(name) for name in NAMES})
        for name, end in self.ends.items():
            end.name, end.oracle = name, self.oracle
        self.most = min(256, (setup["mtu"] - 42) // 8 * 8)

    def run_script(self):
        """Run it to its end, then whatever is left, and then a last operation on each connection without any fault."""
        events = [event for event in self.script.events if event.verb != "setup"]
        last = max((event.time for event in events), default=0) + 1
        calls = [(event.time, lambda now, event=event: self.happen(event)) for event in events]
        self.run_until(lambda: self.now >= last, [*calls, (last, self.resume)], PATIENCE)
        self.finish(patience=PATIENCE)
        for link in self.links.values():
            link.injector = Injector()
        self.run_until(lambda: all(self.is_open(qp) for qp in range(self.setup["pairs"])), patience=PATIENCE)
        numbers = [(name, self.command(name, "add", qp)) for qp in range(self.setup["pairs"]) for name in NAMES]
        self.finish(patience=PATIENCE)
        assert all(self.status(name, number) == Status.DONE for name, number in numbers)
        self.oracle.judge({name: end.memory for name, end in self.ends.items()})

    def resume(self, now):
        for end in self.ends.values():
            end.is_stalled = False

    def happen(self, event):
        """Carry out an event."""
        arguments, name = dict(event.arguments), event.end
        end = self.ends[name]
        if event.verb in ("add", "write", "read", "fence"):
            self.command(name, event.verb, **arguments)
        elif event.verb == "close":
            end.close(self.local(name, arguments["qp"]), self.now)
        elif event.verb == "reset":
            end.reset(self.now)
            self.set_tables(name)
            self.oracle.forget(name)
        else:
            end.is_stalled = event.verb == "stall"

    def local(self, name, qp):
        return qp if name == "A" else remote_qp("A", qp)

    def command(self, name, verb, qp, slot=0, length=8, value=1, fill=0):
        """Submit one; its id. Counters lie apart from what is written."""
        length, base = min(length, self.most), 0x4000 * qp
        opcode, address, data = Opcode[verb.upper()], base + SLOT * slot, b""
        if verb == "add":
            address, length, data = base + COUNTERS + 8 * slot, 8, value.to_bytes(8, "little")
        elif verb == "write":
            data = bytes((fill + at) % 256 for at in range(length))
        elif verb == "fence":
            length = 0
        return self.submit(name, opcode, address, length, data, self.local(name, qp))

    def give(self, name, command):
        self.oracle.submit(name, command)
        super().give(name, command)

    def take(self, name, completion):
        super().take(name, completion)
        self.oracle.completed(name, completion)

    def step(self, now):
        """Also check the ends, and open what is not open."""
        super().step(now)
        for end in self.ends.values():
            check_endpoint(end)
        for qp in range(self.setup["pairs"]):
            if self.a.state(qp) in (State.CLOSED, State.LISTENING):
                self.connect("A", qp)
            if self.b.state(self.local("B", qp)) is State.CLOSED:
                self.listen("B", self.local("B", qp))


def main(arguments):
    """Replay a script."""
    if len(arguments) != 1:
        sys.exit("usage: python models/tests/scenario.py FILE")
    scenario = Scenario(Script.parse(Path(arguments[0]).read_text()))
    scenario.run_script()
    print(f"{scenario.submitted} commands, {scenario.now} clocks: all as it should be")


if __name__ == "__main__":
    main(sys.argv[1:])
