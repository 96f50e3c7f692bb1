"""Runs a workload on two NICs in a simulator and gathers its figures."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xoe.config import NicConfig
from xoe.scenario import Setup
from xoe_hdl.nic import Nic

from .build import BenchError, BuildError, make_build, run
from .cache import locked
from .link import link_verilog
from .progress import shown
from .tools import MissingToolError

MODULE, TOP = "xoe_nic", "xoe_link"
TRANSPORT = {"probe_timeout": 8192, "resend_timeout": 16384}
"""Settings: many connections share the wire, so a round trip is long when all of them are busy."""


ENDS = {
    "hardware": ("hardware", "hardware"),
    "mixed": ("hardware", "model"),
    "mixed-b": ("model", "hardware"),
    "models": ("model", "model"),
}
"""What the ends A and B may be."""


class RunError(RuntimeError):
    """The run did not come to its end; the message says why. ``is_early``: it did not even begin."""

    def __init__(self, message: str, is_early: bool) -> None:
        super().__init__(message)
        self.is_early = is_early


def run_linked(
    config: NicConfig,
    bench: str,
    parameters: Mapping[str, Any],
    seed: int,
    sim: str = "verilator",
    waves: bool | None = None,
    is_joined: bool = False,
    **first: int,
) -> Path:
    """Build two NICs with a link, or with what a bench puts between them, and run the bench; the run's folder.

    ``first`` has the first PSN and count of credits, if they are not 0.

    Raises:
        RunError: a tool is missing, the design cannot be built, or a test failed.
    """
    nic = Nic(config, **first)
    sources = {f"{TOP}.v": link_verilog(nic, MODULE, TOP, is_joined=is_joined)}
    try:
        print(f"two NICs of {config.data_width} bits: built now, unless they are there", file=sys.stderr, flush=True)
        build = make_build(nic, MODULE, sim, sources=sources, top=TOP, waves=waves)
    except (MissingToolError, BuildError) as error:
        raise RunError(str(error), is_early=True) from None
    try:
        return run(build, bench, parameters, seed)
    except BenchError as error:
        raise RunError(str(error), is_early=False) from None


def run_script(parameters: Mapping[str, Any], setup: Setup, ends: str, width: int = 64, seed: int = 1) -> Path:
    """Run scripts with two ends in a simulator; the run's folder.

    Args:
        parameters: ``cases``, the names of some of ``xoe.cases``, or ``text``, that of a script.
        setup: of these scripts; what has to be built is the same for all.
        ends: one of ``ENDS``.
        width: bits of the data paths.
        seed: of faults at random.

    Raises:
        ConfigError: hardware with such parameters can't be built.
        RunError: a tool is missing, or a script failed.
    """
    first = {"first_seq": setup.first_seq, "first_credit": setup.first_credit}
    given = {**parameters, "ends": ENDS[ends], "width": width}
    return run_linked(setup.config(data_width=width), "bench_script", given, seed, **first)


def run_workload(options: Namespace, config: NicConfig) -> dict[str, Any]:
    """Build the two NICs, run the workload, and return its figures, which ``result.json`` holds too.

    Raises:
        RunError: a tool is missing, the design cannot be built, or the simulation ended early.
    """
    output = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    with locked(output):  # two runs at a time would mix their files
        return _run_workload(options, config, output)


def _faults(options: Namespace) -> dict[str, float]:
    """Rates of faults on the link, as ``xoe.faults.Rates`` names them; none is one without faults."""
    return getattr(options, "faults", {})


def _run_workload(options: Namespace, config: NicConfig, output: Path) -> dict[str, Any]:
    result_file = output / "result.json"
    for old in (result_file, output / "wire.pcap", *output.glob("dump.*")):
        old.unlink(missing_ok=True)
    parameters = {
        "config": dataclasses.asdict(config),
        "seed": options.seed,
        "trace": str(options.trace.resolve()) if options.trace else None,
        "output": str(output),
        "progress": str(output / "progress.txt"),
        "faults": _faults(options),
        "transport": TRANSPORT,
    }
    with shown(Path(parameters["progress"])):
        is_joined = not _faults(options)
        folder = run_linked(
            config, "bench_workload", parameters, options.seed, options.sim, options.waves, is_joined=is_joined
        )
    for waves in folder.glob("dump.*"):
        shutil.copy(waves, output)
    result = json.loads(result_file.read_text()) | {"simulator": options.sim, "seed": options.seed}
    result_file.write_text(json.dumps(result, indent=2) + "\n")
    return result
