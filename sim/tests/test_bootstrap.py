import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("sh", "dirname", "cmp", "mkdir", "flock", "rm", "cp")


@pytest.fixture
def machine(tmp_path):
    """A fresh clone on a machine that has nothing but the base system; ``add`` puts a program on it."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "project" / "sim").mkdir(parents=True)
    shutil.copy(ROOT / "sim" / "bootstrap", tmp_path / "project" / "sim")
    shutil.copy(ROOT / "requirements.lock", tmp_path / "project")
    for tool in TOOLS:
        path = shutil.which(tool)
        if path:
            (tmp_path / "bin" / tool).symlink_to(path)
    return tmp_path


def add(machine, name, script):
    program = machine / "bin" / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def bootstrap(machine):
    return subprocess.run(
        [machine / "project" / "sim" / "bootstrap"],
        env={"PATH": str(machine / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )


# Stands for Python: says yes to every question, and makes a .venv whose Python does the same.
PYTHON = """\
case "$*" in
*"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && mkdir -p .venv/packages ;;
*purelib*) echo .venv/packages ;;
*--version*) echo Python 3.11 ;;
esac"""


def test_everything_that_is_missing_is_said_in_plain_lines(machine):
    finished = bootstrap(machine)
    assert finished.returncode == 1
    assert finished.stderr.splitlines() == [
        "xoe: Python 3.11 or later is missing: apt-get install python3 python3-venv",
        "xoe: a C++ compiler is missing: apt-get install g++",
    ]


def test_an_old_python_counts_as_none(machine):
    add(machine, "c++", "exit 0")
    add(machine, "python3", "exit 1")
    assert bootstrap(machine).stderr == "xoe: Python 3.11 or later is missing: apt-get install python3 python3-venv\n"


def test_a_python_without_venv_is_told(machine):
    add(machine, "c++", "exit 0")
    add(machine, "python3", 'case "$*" in *ensurepip*) exit 1 ;; esac')
    assert bootstrap(machine).stderr == "xoe: Python's venv module is missing: apt-get install python3-venv\n"


def test_the_environment_is_made_once(machine):
    add(machine, "c++", "exit 0")
    add(machine, "python3", PYTHON)
    assert "setting up .venv" in bootstrap(machine).stderr
    project = machine / "project"
    assert (project / ".venv" / "packages" / "xoe.pth").read_text().splitlines()[0] == f"{project}/models"
    again = bootstrap(machine)
    assert (again.returncode, again.stderr) == (0, "")


@pytest.mark.parametrize("spoil", ["lock", "stamp", "python"])
def test_it_is_made_again_when_it_does_not_fit(machine, spoil):
    add(machine, "c++", "exit 0")
    add(machine, "python3", PYTHON)
    bootstrap(machine)
    project = machine / "project"
    if spoil == "lock":
        (project / "requirements.lock").write_text("other==1\n")
    elif spoil == "stamp":  # what an interrupted set-up leaves
        (project / ".venv" / "requirements.lock").unlink()
    else:
        (project / ".venv" / "bin" / "python").unlink()
    (project / ".venv" / "old").touch()
    assert "setting up .venv" in bootstrap(machine).stderr
    assert not (project / ".venv" / "old").exists()


def test_a_failed_installation_is_told_and_tried_again(machine):
    add(machine, "c++", "exit 0")
    add(machine, "python3", PYTHON.replace("*purelib*)", '*"-m pip"*) exit 1 ;;\n*purelib*)'))
    for _ in range(2):
        finished = bootstrap(machine)
        assert finished.returncode == 1
        assert "could not be installed; is there a network?" in finished.stderr


def test_help_lists_every_command():
    text = subprocess.run(["make", "help"], cwd=ROOT, env=os.environ, capture_output=True, text=True, check=True).stdout
    for command in ("sim", "test", "formal", "lint", "verilog", "clean"):
        assert f"make {command} " in text
