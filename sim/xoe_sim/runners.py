"""cocotb's runners, made fast to build and fast to run.

Only the top's ports are public, so that the optimiser has all the rest, and Verilator's run-time library is compiled
once for all designs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from cocotb_tools import runner

from .cache import digest, made_once
from .tools import find_verilator

ROOT = Path(__file__).resolve().parents[2]
IMPORTS = [str(ROOT / folder) for folder in ("models", "hdl", "sim", "tb")]


class _Environment(runner.Runner):
    """What every simulator finds: our packages, and this Python's programs."""

    def _set_env_common(self) -> None:
        super()._set_env_common()
        self.env["PYTHONPATH"] = os.pathsep.join([*IMPORTS, *sys.path])
        self.env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), self.env["PATH"]])


class Icarus(_Environment, runner.Icarus):
    """Icarus Verilog."""

    # The last -g wins; with cocotb's -g2012 Yosys's time-zero trigger does not fire, and outputs stay X.
    BUILD_ARGS = ("-g2005",)

    def _create_iverilog_dump_file(self) -> None:
        """Record waves in the run's folder. cocotb's own file is SystemVerilog, which -g2005 refuses."""
        self.iverilog_dump_file.write_text(
            "module cocotb_iverilog_dump;\n"
            f'  initial begin $dumpfile("dump.fst"); $dumpvars(0, {self.hdl_toplevel}); end\n'
            "endmodule\n"
        )

    @classmethod
    def identity(cls) -> tuple[str, ...]:
        """What a build depends on, beside the design."""
        return cls.BUILD_ARGS


class Verilator(_Environment, runner.Verilator):
    """Verilator; ``build`` writes the C++, ``compile`` makes a program of it."""

    BUILD_ARGS = ("-Wno-fatal",)
    OPTIMISE = "-O1"  # -O0 compiles little faster and runs at a fifth; -O2 takes twice as long and runs no faster

    @classmethod
    def identity(cls) -> tuple[str, ...]:
        """What a build depends on, beside the design."""
        return (*cls.BUILD_ARGS, cls.OPTIMISE, find_verilator().version)

    def _set_env_common(self) -> None:
        super()._set_env_common()
        self.env.update(find_verilator().environment)

    def _simulator_in_path_build_only(self) -> None:
        self.executable = find_verilator().program

    def _build_command(self) -> list[list[str]]:
        translate = super()._build_command()[0]
        translate.remove("--public-flat-rw")
        return [translate]

    def compile(self) -> None:
        """Compile what ``build`` wrote.

        Raises:
            subprocess.CalledProcessError: the compiler failed; its words are in the log.
        """
        name = f"runtime-{digest(find_verilator(), self.waves)}"
        for compiled in made_once(self.build_dir.parent / name, self._make_runtime).glob("*.o"):
            shutil.copy2(compiled, self.build_dir)
        self._make(f"OPT_FAST={self.OPTIMISE}")

    def _make_runtime(self, folder: Path) -> None:
        """Compile the objects that are the same for every design, here because the makefile is here."""
        makefile = (self.build_dir / "Vtop_classes.mk").read_text()
        listed = makefile.split("VM_GLOBAL_FAST +=")[1].replace("VM_GLOBAL_SLOW +=", " ").split()
        objects = [f"{word}.o" for word in listed if word.startswith("verilated")]
        self._make(*objects)
        for compiled in objects:
            shutil.copy2(self.build_dir / compiled, folder)

    def _make(self, *arguments: str) -> None:
        # The last option is for the PyPI package, which was configured without a compiler; gcc and clang both take it.
        fixed = ("-f", "Vtop.mk", f"VM_TRACE={int(self.waves)}", "CFG_CXXFLAGS_PCH_I=-include")
        command = ["make", "-j2", *fixed, *arguments]
        # What was given to a `make` that called us is none of this one's business.
        env = {name: value for name, value in self.env.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        with open(self.build_dir / "compile.log", "a") as log:
            subprocess.run(command, cwd=self.build_dir, env=env, stdout=log, stderr=subprocess.STDOUT, check=True)
