"""Runs scripts (see ``xoe.scenario``) with two ends, of which either may be hardware; each script is a test."""

from __future__ import annotations

from random import Random

import cocotb
from cocotb.clock import Clock

from xoe.cases import CASES, Case
from xoe.command import Completion
from xoe.fault_script import Event, Script
from xoe.faults import Injector
from xoe.pair import PEERS
from xoe.scenario import COMMANDS, Setup
from xoe.wire import Status
from xoe_hdl.nic import Nic
from xoe_tb import params
from xoe_tb.bench import CLOCK_NS
from xoe_tb.ends import Cable, make_ends
from xoe_tb.users import Users

TEXT = params().get("text")
CHOSEN = {"script": Case(TEXT, is_clean=False)} if TEXT else {name: CASES[name] for name in params()["cases"]}
ENDS_LATE = 2  # an end may not know yet that what it has open is over
PATIENCE = 2_000_000  # clocks without a completion: longer than any connection takes to fail


class ScriptRun:
    """A script, with both ends as the bench's parameters say."""

    def __init__(self, dut, case: Case) -> None:
        self.case, self.script = case, Script.parse(case.text)
        self.setup = setup = Setup.of(self.script)
        nic = Nic(setup.config(data_width=params()["width"]), setup.first_seq, setup.first_credit)
        ends = make_ends(dut, params()["ends"], nic, setup.transport(), timeout=setup.timeout)
        rng, injectors = Random(cocotb.RANDOM_SEED), {}
        for name, peer in PEERS.items():
            direction = f"{name}>{peer}"
            rules = [rule for rule in self.script.rules if rule.direction == direction]
            injectors[name] = Injector(rules, case.rates, rng.getrandbits(32), direction)
        self.users = Users(Cable(dut, ends, injectors, setup.delay), setup.pairs, self._on_completion)
        self.submitted = 0
        self._statuses: dict[tuple[str, int], int] = {}

    def _on_completion(self, name: str, completion: Completion) -> None:
        self._statuses[name, completion.id] = completion.status

    async def run(self) -> None:
        """The script to its end, whatever is left then, and a last addition on each connection without any fault."""
        users = self.users
        await users.start()
        begun = users.cable.now
        events = [event for event in self.script.events if event.verb != "setup"]
        for event in sorted(events, key=lambda event: event.time):
            while users.cable.now - begun < event.time or not users.end(event.end).is_ready:
                await users.step(PATIENCE)
            self._happen(event)
        for name in PEERS:
            await self._wait(lambda name=name: users.end(name).is_ready)
            users.end(name).stall(False)
            users.end(name).hold(False)
        await self._wait(lambda: users.is_idle)
        assert not self.case.is_clean or set(self._statuses.values()) == {Status.DONE}, self._statuses
        injected = sum(sum(injector.counts.values()) for injector in users.cable.injectors.values())
        assert injected or not self.script.rules, "what the rules are about has not happened"
        await self._finish()

    async def _finish(self) -> None:
        users = self.users
        for name, peer in PEERS.items():
            users.cable.injectors[name] = Injector(direction=f"{name}>{peer}")
        await self._wait(lambda: users.are_open)
        is_done = False
        for _ in range(ENDS_LATE):
            asked = [(name, qp) for qp in range(self.setup.pairs) for name in PEERS]
            numbers = [(name, self._submit(Event(0, name, "add", (("qp", qp),)))) for name, qp in asked]
            await self._wait(lambda: users.is_idle and users.are_open)
            is_done = {self._statuses[number] for number in numbers} == {Status.DONE}
            if is_done:
                break
        assert is_done, "not everything works as the first time"
        users.judge()

    async def _wait(self, is_there) -> None:
        while not is_there():
            await self.users.step(PATIENCE)

    def _submit(self, event: Event) -> int:
        number = self.submitted
        self.submitted += 1
        self.users.submit(event.end, self.setup.command(event, number))
        return number

    def _happen(self, event: Event) -> None:
        users, end = self.users, self.users.end(event.end)
        if event.verb in COMMANDS:
            self._submit(event)
        elif event.verb == "close":
            users.close(event.end, dict(event.arguments)["qp"])
        elif event.verb == "reset":
            cocotb.start_soon(users.reset(event.end))
        elif event.verb in ("stall", "resume"):
            end.stall(event.verb == "stall")
        else:
            end.hold(event.verb == "hold")


@cocotb.test()
@cocotb.parametrize(name=list(CHOSEN))
async def script(dut, name: str) -> None:
    """Every command completes as it may, and in the end everything works as the first time."""
    Clock(dut.clk, CLOCK_NS, unit="ns").start()
    await ScriptRun(dut, CHOSEN[name]).run()
