import pytest

from xoe_sim import tools


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without any program."""
    monkeypatch.setenv("PATH", str(tmp_path))
    tools.find_verilator.cache_clear()
    yield tmp_path
    tools.find_verilator.cache_clear()


@pytest.mark.parametrize(
    ("sim", "message"),
    [
        ("icarus", "Icarus Verilog is missing: apt-get install iverilog"),
        ("verilator", r"c\+\+ is missing: apt-get install g\+\+"),
    ],
)
def test_a_missing_program_is_told_with_the_command_that_brings_it(bare, sim, message):
    with pytest.raises(tools.MissingToolError, match=message):
        tools.check(sim)


def test_a_python_that_no_simulator_can_load_is_told(monkeypatch):
    monkeypatch.setattr(tools.find_libpython, "find_libpython", lambda: None)
    with pytest.raises(tools.MissingToolError, match=r"shared library is missing: apt-get install libpython3\.\d+"):
        tools.check("verilator")


def put(folder, version):
    program = folder / "verilator"
    program.write_text(f"#!/bin/sh\necho 'Verilator {version} 2025-01-01 rev v{version}'\n")
    program.chmod(0o755)
    return str(program)


def test_a_recent_verilator_of_the_system_is_used(bare):
    program = put(bare, "5.036")
    assert tools.find_verilator().program == program


def test_an_old_verilator_of_the_system_is_passed_over(bare):
    program = put(bare, "5.006")
    found = tools.find_verilator()
    assert found.program != program
    assert found.environment["VERILATOR_ROOT"] in found.program
