"""Any number of operations between two ends, of which either may be hardware, with faults on the way and resets.

Leaves ``result.json`` in the folder that the parameters name.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

import cocotb
from cocotb.clock import Clock

from xoe.config import NicConfig
from xoe.fault_script import Action
from xoe.faults import Injector, Rates
from xoe.pair import PEERS, local_qp
from xoe.stimulus import random_command
from xoe.transport import TransportSettings
from xoe.wire import Status
from xoe_hdl.nic import Nic
from xoe_tb import params
from xoe_tb.bench import CLOCK_NS
from xoe_tb.ends import Cable, HardwareEnd, make_ends
from xoe_tb.users import Users

UNDER_WAY = 48  # commands of each end
ELSEWHERE = 0.02  # of the commands go anywhere, also where no connection is open
IDS = 1 << 16


class Soak:
    """Carries operations out until there were as many as asked for."""

    def __init__(self, dut, options: dict) -> None:
        self.options, self.rng = options, Random(options["seed"])
        self.nic = Nic(NicConfig(**options["config"]))
        transport = TransportSettings(**options["transport"])
        ends = make_ends(dut, options["ends"], self.nic, transport)
        injectors = {
            name: Injector(rates=Rates(**options["faults"]), seed=self.rng.getrandbits(32), keep_log=False)
            for name in PEERS
        }
        self.users = Users(Cable(dut, ends, injectors), self.nic.config.queue_pairs)
        self.submitted = self.resets = 0
        self.counters: Counter[str] = Counter()
        self._next_reset = options["resets"]
        self._clock = Clock(dut.clk, CLOCK_NS, unit="ns")
        self._shown = self._started = time.monotonic()

    async def run(self) -> None:
        """All of it."""
        self._clock.start()
        users, options = self.users, self.options
        await users.start()
        while self.submitted < options["ops"] or not users.is_idle:
            await users.step(options["patience"])
            for name in PEERS:
                self._ask(name)
            if options["resets"] and self.submitted >= self._next_reset and not self._is_resetting():
                await self._reset(self.rng.choice("AB"))
            self._show()
        users.judge()
        for name in PEERS:
            self._count(name)

    def _is_resetting(self) -> bool:
        return not all(end.is_ready for end in self.users.cable.ends.values())

    def _ask(self, name: str) -> None:
        users, queue_pairs = self.users, self.nic.config.queue_pairs
        is_able = users.end(name).is_ready and users.is_open[name]
        while is_able and users.outcomes[name].under_way < UNDER_WAY and self.submitted < self.options["ops"]:
            connection = self.rng.choice(sorted(users.is_open[name]))
            if self.rng.random() < ELSEWHERE:
                connection = self.rng.randrange(queue_pairs)
            qp = local_qp(name, connection, queue_pairs)
            users.submit(name, random_command(self.rng, self.submitted % IDS, connection, qp))
            self.submitted += 1

    async def _reset(self, name: str) -> None:
        self._next_reset += self.options["resets"]
        self.resets += 1
        self._count(name)
        cocotb.start_soon(self.users.reset(name))

    def _count(self, name: str) -> None:
        """Gather what an end has counted since its last reset."""
        end = self.users.end(name)
        if isinstance(end, HardwareEnd):
            self.counters.update(end.side.flat_counters())

    def _show(self) -> None:
        """A line of progress now and then."""
        clock = time.monotonic()
        if clock - self._shown < 5:
            return
        self._shown = clock
        speed = self.submitted / (clock - self._started)
        with open(self.options["progress"], "a") as progress:
            progress.write(
                f"  {self.submitted:>9,} of {self.options['ops']:,} operations, {self.resets} resets, "
                f"clock {self.users.cable.now:,}, {speed:.0f} in a second\n"
            )

    def result(self) -> dict:
        """What has come of it all."""
        outcomes = self.users.outcomes.values()
        counts: Counter[int] = sum((each.counts for each in outcomes), Counter())
        injectors = self.users.cable.injectors
        return {
            "operations": self.submitted,
            "ended": {Status(status).name.lower(): count for status, count in sorted(counts.items())},
            "forgotten": sum(each.forgotten for each in outcomes),
            "resets": self.resets,
            "clocks": self.users.cable.now,
            "seconds": round(time.monotonic() - self._started, 1),
            "frames": {f"{name}>{PEERS[name]}": injector.frames for name, injector in injectors.items()},
            "injected": {
                action.value: sum(injector.counts[action] for injector in injectors.values()) for action in Action
            },
            "counters": {name: count for name, count in self.counters.items() if count},
        }


@cocotb.test()
async def soak(dut) -> None:
    """Everything is carried out once, or told not to be, and nothing hangs."""
    options = params()
    run = Soak(dut, options)
    try:
        await run.run()
    finally:
        Path(options["output"]).write_text(json.dumps(run.result()))
        sys.stderr.flush()
