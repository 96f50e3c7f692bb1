"""Counterexamples as waves: the inputs that the solver found, in Amaranth's simulator."""

from __future__ import annotations

from pathlib import Path

from amaranth.sim import Simulator

from .harness import Harness
from .solver import Clocks

PERIOD = 1e-8


def replay(top: Harness, clocks: Clocks, waves: Path) -> list[str]:
    """Drive a fresh harness with ``clocks`` and record it; returns the names of the checks that fail in the last clock.

    There may be none: values that have no defined value in the hardware, such as what a memory gives out before it was
    read, are the solver's to choose, and 0 in the simulator.
    """
    top.is_replay = True
    failed = []
    simulator = Simulator(top)
    simulator.add_clock(PERIOD, domain="sync")

    async def drive(ctx):
        inputs = {signal.name: signal for signal in top.inputs}
        for values in clocks:
            for name, value in values.items():
                if name != "clk":
                    ctx.set(inputs[name], value)
            await ctx.delay(PERIOD / 4)
            failed[:] = [name for name, signal in top.checks.items() if not ctx.get(signal)]
            await ctx.tick()

    simulator.add_testbench(drive)
    with simulator.write_vcd(str(waves)):
        simulator.run()
    return failed
