"""Tries proofs, and says what came of them."""

from __future__ import annotations

import dataclasses
import time
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path

from .proof import Change, Proof
from .replay import replay
from .solver import Clocks, SolverError, solve

HUNT_CLOCKS, HUNT_LIMIT = 12, 60  # for short counterexamples: how long they may be, and seconds to look for them
COLUMNS = "{:<24} {:>8} {:>8} {:>15}  {:<8} {}"
HEADER = COLUMNS.format("proof", "clocks", "seconds", "broken, caught", "verdict", "property")


@dataclasses.dataclass(frozen=True)
class Result:
    """What came of a proof, in how long; ``problems`` is empty if it holds and all broken copies were caught."""

    proof: Proof
    seconds: float
    caught: int
    problems: list[str]

    def lines(self) -> str:
        """A row of the table, and below it what is wrong."""
        proof = self.proof
        clocks = proof.clocks or "all"
        caught = f"{self.caught} of {len(proof.broken)}"
        verdict = "FAILED" if self.problems else "proved" if not proof.clocks else "held"
        row = COLUMNS.format(proof.name, clocks, f"{self.seconds:.1f}", caught, verdict, proof.text)
        return "\n".join([row, *(f"  ! {problem}" for problem in self.problems)])


class Attempt:
    """The proof of a block and of each of its broken copies, begun in ``pool``; ``folder`` gets all files."""

    def __init__(self, proof: Proof, folder: Path, pool: Executor) -> None:
        self.proof, self.folder = proof, folder
        self._true = pool.submit(self._prove)
        names = [f"{proof.name}_broken_{number}" for number in range(1, len(proof.broken) + 1)]
        self._broken = [pool.submit(self._hunt, *copy) for copy in zip(names, proof.broken, strict=True)]

    def _prove(self) -> tuple[Clocks | None, float]:
        begun = time.monotonic()
        found = solve(self.proof.top(), self.folder / self.proof.name, self.proof.clocks)
        return found, time.monotonic() - begun

    def _hunt(self, name: str, change: Change) -> Clocks | None:
        """A counterexample: first a short one, as those are found at once or not at all, then any."""
        found = None
        with suppress(SolverError):
            found = solve(self.proof.top(change), self.folder / name, HUNT_CLOCKS, HUNT_LIMIT)
        return found or solve(self.proof.top(change), self.folder / name, self.proof.clocks)

    def result(self) -> Result:
        """Wait for what comes of it; a counterexample is left as waves."""
        problems, seconds, caught = [], 0.0, 0
        try:
            found, seconds = self._true.result()
            if found is not None:
                problems.append(self._show(found))
        except (SolverError, ValueError) as error:
            problems.append(str(error))
        for number, (copy, change) in enumerate(zip(self._broken, self.proof.broken, strict=True), 1):
            try:
                found = copy.result()
                caught += found is not None
                if found is None:
                    problems.append(f"broken copy {number} is not caught: {change[1]!r} for {change[0]!r}")
            except (SolverError, ValueError) as error:
                problems.append(f"broken copy {number}: {error}")
        return Result(self.proof, seconds, caught, problems)

    def _show(self, clocks: Clocks) -> str:
        """Record a counterexample, and say what it shows."""
        waves = self.folder / self.proof.name / "counterexample.vcd"
        failed = replay(self.proof.top(), clocks, waves)
        names = ", ".join(failed) or "a check that depends on values that are not defined"
        return f"{names} fails after {len(clocks)} clocks: {waves}"
