"""Runs a script (see ``xoe.scenario``) with two endpoints, under the eyes of an oracle.

``python models/tests/scenario.py FILE`` replays one.
"""

import sys
from pathlib import Path

from endpoints import NAMES, Pair, check_endpoint, other
from xoe.connection import State
from xoe.fault_script import Script
from xoe.faults import Injector
from xoe.oracle import Oracle, Watched
from xoe.outcomes import Outcomes
from xoe.pair import local_qp
from xoe.scenario import COMMANDS, QUEUE_PAIRS, Setup
from xoe.wire import Status

PATIENCE = 10**7


class Scenario(Pair):
    """Runs a script, under the eyes of an oracle."""

    endpoint = Watched

    def __init__(self, script, rates=None):
        self.setup = setup = Setup.of(script)
        super().__init__(
            script,
            rates,
            delay=setup.delay,
            rate=setup.rate or None,
            config=setup.config(),
            transport=setup.transport(),
            timeout=setup.timeout,
            epochs=dict.fromkeys(NAMES, dict.fromkeys(range(QUEUE_PAIRS), -setup.first % 256)),
            first_seq=setup.first_seq,
            first_credit=setup.first_credit,
        )
        self.oracle = Oracle({name: other(name) for name in NAMES})
        self.outcomes = {name: Outcomes() for name in NAMES}
        for name, end in self.ends.items():
            end.name, end.oracle = name, self.oracle

    def run_script(self):
        """Run it to its end, then whatever is left, and then a last operation on each connection without any fault."""
        events = [event for event in self.script.events if event.verb != "setup"]
        last = max((event.time for event in events), default=0) + 1
        calls = [(event.time, lambda now, event=event: self.happen(event)) for event in events]
        self.run_until(lambda: self.now >= last, [*calls, (last, self.resume)], PATIENCE)
        self.finish(patience=PATIENCE)
        self.injected = sum(sum(link.injector.counts.values()) for link in self.links.values())
        for link in self.links.values():
            link.injector = Injector()
        self.run_until(lambda: all(self.is_open(qp) for qp in range(self.setup.pairs)), patience=PATIENCE)
        numbers = [(name, self.add_last(name, qp)) for qp in range(self.setup.pairs) for name in NAMES]
        self.finish(patience=PATIENCE)
        assert all(self.status(name, number) == Status.DONE for name, number in numbers)
        self.oracle.judge({name: end.memory for name, end in self.ends.items()})
        for name in NAMES:
            self.outcomes[name].judge(self.ends[other(name)].memory.read)

    def add_last(self, name, qp):
        return self.submit_command(self.setup.make(name, "add", self.submitted, qp), name)

    def resume(self, now):
        for end in self.ends.values():
            end.is_stalled = False
        self.fetch = dict.fromkeys(NAMES, True)

    def happen(self, event):
        """Carry out an event."""
        arguments, name = dict(event.arguments), event.end
        end = self.ends[name]
        if event.verb in COMMANDS:
            self.submit_command(self.setup.command(event, self.submitted), name)
        elif event.verb == "close":
            end.close(self.local(name, arguments["qp"]), self.now)
        elif event.verb == "reset":
            end.reset(self.now)
            self.set_tables(name)
            self.oracle.forget(name)
            self.outcomes[name].forget()
        elif event.verb in ("hold", "take"):
            self.fetch[name] = event.verb == "take"
        else:
            end.is_stalled = event.verb == "stall"

    def local(self, name, qp):
        return local_qp(name, qp, QUEUE_PAIRS)

    def submit_command(self, command, name):
        """Give it to an end; its id."""
        self.submitted += 1
        self.give(name, command)
        return command.id

    def give(self, name, command):
        self.oracle.submit(name, command)
        self.outcomes[name].submit(command)
        super().give(name, command)

    def take(self, name, completion):
        super().take(name, completion)
        self.oracle.completed(name, completion)
        self.outcomes[name].completed(completion)

    def step(self, now):
        """Also check the ends, and open what is not open."""
        super().step(now)
        for end in self.ends.values():
            check_endpoint(end)
        for qp in range(self.setup.pairs):
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
