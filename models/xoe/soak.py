"""``python -m xoe.soak``: any number of operations between two endpoints, with faults on the way and resets of either.

Every operation is held against what may come of it; see ``Oracle``.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections import Counter
from random import Random

from .cam import Page, Translation, Window
from .command import Command
from .config import ConfigError, NicConfig
from .connection import State
from .faults import Injector, Rates
from .framer import Settings
from .memory import Memory
from .network import HangError, Link, run
from .oracle import Oracle, OracleError, Watched
from .traffic import Traffic
from .transport import TransportSettings
from .wire import Opcode, Rights, Status

MACS = {"A": 0x02_00_00_00_00_0A, "B": 0x02_00_00_00_00_0B}
NODES = {"A": 1, "B": 2}
PEERS = {"A": "B", "B": "A"}
REGION = 0x4000  # bytes of the other end's memory, for each queue pair
COUNTERS = 0x3000  # in it: counters, behind what is read and written
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
        self.now = self.submitted = self.resets = 0
        self.counters: Counter[Traffic] = Counter()
        self._under_way = dict.fromkeys(PEERS, 0)
        self._high = dict.fromkeys(PEERS, 0)
        self._next_reset = options.resets
        self._started = self._shown = time.monotonic()
        transport = TransportSettings(retries=options.retries, go_back_n=options.go_back_n)
        self.ends = {name: self._make(name, transport) for name in PEERS}
        self.links = {f"{name}>{peer}": self._link(name, peer) for name, peer in PEERS.items()}

    def run(self) -> None:
        """Carry everything out.

        Raises:
            OracleError: what must not happen has happened.
            HangError: nothing goes on.
        """
        for name in PEERS:
            self._set_tables(name)
        self.now = run(self.ends, self.links, self._turn, patience=8_000_000)
        self.oracle.judge({name: end.memory for name, end in self.ends.items()})
        for end in self.ends.values():
            self.counters.update(end.counters)

    def _make(self, name: str, transport: TransportSettings) -> Watched:
        config = NicConfig(queue_pairs=self.options.queue_pairs)
        end = Watched(config, Settings(MACS[name], NODES[name], mtu=config.mtu), transport, Memory())
        end.name, end.oracle = name, self.oracle
        return end

    def _link(self, name: str, peer: str) -> Link:
        options = self.options
        rates = {fault: options.each / 10 if fault == "burst" else options.each for fault in FAULTS}
        rates.update({fault: getattr(options, fault) for fault in FAULTS if getattr(options, fault) is not None})
        injector = Injector(rates=Rates(**rates), seed=self.rng.getrandbits(32), keep_log=False)
        return Link(options.link_delay, options.link_rate, injector)

    def _set_tables(self, name: str) -> None:
        """Let each end reach the other one's memory, by an address space for each queue pair."""
        end, peer = self.ends[name], PEERS[name]
        rights = Rights.READ | Rights.WRITE | Rights.ATOMIC
        for qp in range(self.options.queue_pairs):
            end.translations.write(qp, Page(qp, 0, 20, Translation(0, MACS[peer], NODES[peer], qp, rights)))
        end.windows.write(0, Page(NODES[peer], 0, 20, Window(rights)))

    def _turn(self, now: int) -> bool:
        """What the users do whenever something has happened; whether all is done."""
        for name, end in self.ends.items():
            while end.completions:
                self.oracle.completed(name, end.completions.popleft())
                self._under_way[name] -= 1
            end.notices.clear()
            self._high[name] = max(self._high[name], end.buffer.high)
            self._connect(name, end, now)
            is_open = any(end.state(qp) is State.OPEN for qp in range(self.options.queue_pairs))
            while is_open and self._under_way[name] < UNDER_WAY and self.submitted < self.options.ops:
                self._submit(name, end)
        if self.options.resets and self.submitted >= self._next_reset:
            self._reset(self.rng.choice("AB"), now)
        self._show()
        return self.submitted >= self.options.ops and not any(self._under_way.values())

    def _connect(self, name: str, end: Watched, now: int) -> None:
        for qp in range(self.options.queue_pairs):
            if end.state(qp) is State.CLOSED and name == "B":
                end.listen(qp, MACS["A"], NODES["A"], qp)
            elif name == "A" and end.state(qp) in (State.CLOSED, State.LISTENING):
                end.connect(qp, MACS["B"], NODES["B"], qp, now)

    def _submit(self, name: str, end: Watched) -> None:
        rng, qp = self.rng, self.rng.randrange(self.options.queue_pairs)
        number = self.submitted % (1 << 16)
        length = rng.choice((1, 8, 64, rng.randint(1, 256), 256))
        address = qp * REGION + rng.randrange(0, COUNTERS - 256)
        kind = rng.random()
        if kind < 0.35:
            command = Command(Opcode.WRITE, number, qp, qp, address, length, rng.randbytes(length))
        elif kind < 0.6:
            command = Command(Opcode.READ, number, qp, qp, address, length)
        elif kind < 0.98:
            counter = qp * REGION + COUNTERS + 8 * rng.randrange(4)
            command = Command(Opcode.ADD, number, qp, qp, counter, 8, rng.getrandbits(32).to_bytes(8, "little"))
        else:
            command = Command(Opcode.FENCE, number, qp, qp, address)
        self.submitted += 1
        self._under_way[name] += 1
        self.oracle.submit(name, command)
        end.submit(command)

    def _reset(self, name: str, now: int) -> None:
        self._next_reset += self.options.resets
        self.resets += 1
        end = self.ends[name]
        self.counters.update(end.counters)
        end.reset(now)
        self._set_tables(name)
        self._under_way[name] -= self.oracle.forget(name)
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


def main() -> int:
    """Run, report, and return the exit code: 0 passed, 1 something was wrong, 2 it could not be run."""
    try:
        soak = Soak(parse())
    except (ConfigError, ValueError) as error:
        print(f"xoe.soak: {error}", file=sys.stderr)
        return 2
    try:
        soak.run()
        verdict = "passed"
    except (OracleError, HangError) as error:
        verdict = f"FAILED at clock {soak.now}, seed {soak.options.seed}: {error}"
    print("" if soak.options.quiet else "\r\x1b[K", end="", file=sys.stderr)
    print(soak.table(verdict))
    return 0 if verdict == "passed" else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("xoe.soak: interrupted")
