"""``python -m xoe.soak``: any number of operations between two endpoints, with faults on the way and resets of either.

Every operation is held against what may come of it, by what both ends do and by what their users see alone; see
``Oracle`` and ``Outcomes``.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections import Counter
from random import Random

from .config import ConfigError, NicConfig
from .connection import State
from .faults import Injector, Rates
from .memory import Memory
from .network import HangError, Link, run
from .oracle import Oracle, OracleError, Watched
from .outcomes import OutcomeError, Outcomes
from .pair import MACS, NODES, PEERS, local_qp, remote_qp, settings, translations, windows
from .stimulus import random_command
from .traffic import Traffic
from .transport import TransportSettings
from .wire import Status

UNDER_WAY = 48  # operations of each end
FAULTS = tuple(field.name for field in dataclasses.fields(Rates) if field.default == 0)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line's options; wrong ones end the program with a line that says what is allowed."""
    parser = argparse.ArgumentParser(
        prog="python -m xoe.soak",
        description="Carry out operations between two endpoints over a network that does its worst, and check each.",
    )
    parser.add_argument("--ops", type=int, default=20_000, help="operations, both ends together (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is chosen (default: %(default)s)")
    parser.add_argument("--each", type=float, default=0.01, help="rate of each fault not given (default: %(default)s)")
    for name in FAULTS:
        names = ("--loss", "--drop") if name == "drop" else (f"--{name}",)
        parser.add_argument(*names, type=float, dest=name, metavar="RATE", help=f"rate of the fault {name}, 0 to 1")
    parser.add_argument("--resets", type=int, default=5_000, help="operations between resets; 0: none (%(default)s)")
    parser.add_argument("--queue-pairs", type=int, default=4, help="1, 2, 4 or 8 (default: %(default)s)")
    parser.add_argument("--link-delay", type=int, default=500, help="clocks from end to end (default: %(default)s)")
    parser.add_argument("--link-rate", type=float, default=64, help="bytes in a clock (default: %(default)s)")
    parser.add_argument("--retries", type=int, default=7, help="0 to 15 (default: %(default)s)")
    parser.add_argument("--go-back-n", action="store_true", help="instead of selective repeat")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser.parse_args(arguments)


class Soak:
    """Two endpoints, their users, and what lies between.

    Raises:
        ConfigError, ValueError: an option out of bounds.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        if options.ops < 1 or options.resets < 0:
            raise ValueError("ops must be 1 or more and resets 0 or more")
        if options.queue_pairs > 8:
            raise ValueError(f"queue_pairs must be 1, 2, 4 or 8, not {options.queue_pairs}")
        self.options = options
        self.rng = Random(options.seed)
        self.oracle = Oracle(PEERS)
        self.outcomes = {name: Outcomes() for name in PEERS}
        self.now = self.submitted = self.resets = 0
        self.counters: Counter[Traffic] = Counter()
        self._high = dict.fromkeys(PEERS, 0)
        self._next_reset = options.resets
        self._started = self._shown = time.monotonic()
        transport = TransportSettings(retries=options.retries, go_back_n=options.go_back_n)
        self.ends = {name: self._make(name, transport) for name in PEERS}
        self.links = {f"{name}>{peer}": self._link(name, peer) for name, peer in PEERS.items()}

    def run(self) -> None:
        """Carry everything out.

        Raises:
            OracleError, OutcomeError: what must not happen has happened.
            HangError: nothing goes on.
        """
        for name in PEERS:
            self._set_tables(name)
        self.now = run(self.ends, self.links, self._turn, patience=8_000_000)
        self.oracle.judge({name: end.memory for name, end in self.ends.items()})
        for name, peer in PEERS.items():
            self.outcomes[name].judge(self.ends[peer].memory.read)
        for end in self.ends.values():
            self.counters.update(end.counters)

    def _make(self, name: str, transport: TransportSettings) -> Watched:
        config = NicConfig(queue_pairs=self.options.queue_pairs)
        end = Watched(config, settings(name, config.mtu), transport, Memory())
        end.name, end.oracle = name, self.oracle
        return end

    def _link(self, name: str, peer: str) -> Link:
        options = self.options
        rates = {fault: options.each / 10 if fault == "burst" else options.each for fault in FAULTS}
        rates.update({fault: getattr(options, fault) for fault in FAULTS if getattr(options, fault) is not None})
        injector = Injector(rates=Rates(**rates), seed=self.rng.getrandbits(32), keep_log=False)
        return Link(options.link_delay, options.link_rate, injector)

    def _set_tables(self, name: str) -> None:
        """Let each end reach the other one's memory."""
        end = self.ends[name]
        for index, page in enumerate(translations(name, self.options.queue_pairs)):
            end.translations.write(index, page)
        for index, window in enumerate(windows(name)):
            end.windows.write(index, window)

    def _turn(self, now: int) -> bool:
        """What the users do whenever something has happened; whether all is done."""
        for name, end in self.ends.items():
            while end.completions:
                completion = end.completions.popleft()
                self.oracle.completed(name, completion)
                self.outcomes[name].completed(completion)
            end.notices.clear()
            self._high[name] = max(self._high[name], end.buffer.high)
            self._connect(name, end, now)
            is_open = any(end.state(qp) is State.OPEN for qp in range(self.options.queue_pairs))
            while is_open and self.outcomes[name].under_way < UNDER_WAY and self.submitted < self.options.ops:
                self._submit(name, end)
        if self.options.resets and self.submitted >= self._next_reset:
            self._reset(self.rng.choice("AB"), now)
        self._show()
        return self.submitted >= self.options.ops and not any(each.under_way for each in self.outcomes.values())

    def _connect(self, name: str, end: Watched, now: int) -> None:
        peer, queue_pairs = PEERS[name], self.options.queue_pairs
        for qp in range(queue_pairs):
            there = MACS[peer], NODES[peer], remote_qp(name, qp, queue_pairs)
            if end.state(qp) is State.CLOSED and name == "B":
                end.listen(qp, *there)
            elif name == "A" and end.state(qp) in (State.CLOSED, State.LISTENING):
                end.connect(qp, *there, now)

    def _submit(self, name: str, end: Watched) -> None:
        connection = self.rng.randrange(self.options.queue_pairs)
        qp = local_qp(name, connection, self.options.queue_pairs)
        command = random_command(self.rng, self.submitted % (1 << 16), connection, qp)
        self.submitted += 1
        self.oracle.submit(name, command)
        self.outcomes[name].submit(command)
        end.submit(command)

    def _reset(self, name: str, now: int) -> None:
        self._next_reset += self.options.resets
        self.resets += 1
        end = self.ends[name]
        self.counters.update(end.counters)
        end.reset(now)
        self._set_tables(name)
        self.oracle.forget(name)
        self.outcomes[name].forget()
        self._connect(name, end, now)

    def _show(self) -> None:
        """A line of progress, each second."""
        clock = time.monotonic()
        if clock - self._shown < 1 or self.options.quiet:
            return
        self._shown = clock
        speed = self.submitted / (clock - self._started)
        line = f"{self.submitted} of {self.options.ops} operations, {self.resets} resets, {speed:.0f} in a second"
        print(f"\r{line}", end="", file=sys.stderr, flush=True)

    def table(self, verdict: str) -> str:
        """What has come of it all."""
        seconds = time.monotonic() - self._started
        rows = [("verdict", verdict), ("operations", self.submitted)]
        rows += [
            (f"  {Status(status).name.lower().replace('_', ' ')}", self.oracle.counts[status])
            for status in sorted(self.oracle.counts)
        ]
        rows += [("  forgotten in resets", self.oracle.forgotten), ("resets", self.resets), ("clocks", self.now)]
        rows += [("seconds", f"{seconds:.1f}"), ("operations in a second", f"{self.submitted / seconds:.0f}")]
        for direction, link in self.links.items():
            faults = ", ".join(f"{action.value} {count}" for action, count in link.injector.counts.items() if count)
            rows.append((f"frames {direction}", f"{link.injector.frames}; {faults or 'no faults'}"))
        rows += [
            (event.name.lower().replace("_", " "), self.counters[event]) for event in Traffic if self.counters[event]
        ]
        rows += [
            (f"receive buffer {name}", f"{high} of {self.ends[name].config.receive_buffer} bytes")
            for name, high in self._high.items()
        ]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {value}" for name, value in rows)


def main(arguments: list[str] | None = None) -> int:
    """Run, report, and return the exit code: 0 passed, 1 something was wrong, 2 it could not be run."""
    try:
        soak = Soak(parse(arguments))
    except (ConfigError, ValueError) as error:
        print(f"xoe.soak: {error}", file=sys.stderr)
        return 2
    try:
        soak.run()
        verdict = "passed"
    except (OracleError, OutcomeError, HangError) as error:
        verdict = f"FAILED at clock {soak.now}, seed {soak.options.seed}: {error}"
    print("" if soak.options.quiet else "\r\x1b[K", end="", file=sys.stderr)
    print(soak.table(verdict))
    return 0 if verdict == "passed" else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("xoe.soak: interrupted")
