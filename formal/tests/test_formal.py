import dataclasses
import subprocess
import sys

import pytest
from amaranth.hdl import Signal

from xoe_formal.__main__ import main
from xoe_formal.harness import Harness
from xoe_formal.proof import Proof
from xoe_formal.proofs import PROOFS

LIMIT = 5


BLOCK = """
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

class Limited(wiring.Component):
    def __init__(self):
        super().__init__({"step": In(1), "count": Out(8)})

    def elaborate(self, platform):
        m = Module()
        with m.If(self.step & (self.count < 5)):
            m.d.sync += self.count.eq(self.count + 1)
        return m
"""


class Bounds(Harness):
    def __init__(self, block, highest):
        super().__init__()
        self.block, self.highest = block(), highest

    def build(self, m):
        m.submodules.block = self.block
        m.d.comb += self.block.step.eq(self.anything("step", Signal()))
        self.check("is_low", self.block.count <= self.highest)


PROOF = Proof(
    "limit",
    "it stops",
    "limited_block:Limited",
    lambda block: Bounds(block, LIMIT),
    (("self.count < 5", "self.count <= 5"),),
)


@pytest.fixture
def attempt(tmp_path, capsys, monkeypatch):
    """Tries PROOF with some of it changed; returns the exit code and what was printed."""
    (tmp_path / "limited_block.py").write_text(BLOCK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "limited_block", raising=False)

    def run(**changes):
        code = main((dataclasses.replace(PROOF, **changes),), ["--output", str(tmp_path)])
        return code, capsys.readouterr().out

    return run


@pytest.mark.parametrize(("clocks", "columns"), [(0, ["all", "proved"]), (12, ["12", "held"])])
def test_what_is_true_is_proved_and_the_broken_copy_caught(attempt, clocks, columns):
    code, text = attempt(clocks=clocks)
    assert code == 0
    row = text.splitlines()[1].split()
    assert [row[1], row[6]] == columns
    assert text.endswith("1 of 1 proofs hold, broken copies caught: 1 of 1\n")


def test_what_is_false_fails_and_leaves_waves(attempt, tmp_path):
    code, text = attempt(harness=lambda block: Bounds(block, LIMIT - 1))
    waves = tmp_path / "limit" / "counterexample.vcd"
    assert code == 1
    assert f"  ! is_low fails after {LIMIT + 1} clocks: {waves}" in text
    assert "check_is_low" in waves.read_text()


def test_a_bound_before_the_failure_sees_nothing_of_it(attempt):
    assert attempt(harness=lambda block: Bounds(block, LIMIT - 1), clocks=LIMIT, broken=())[0] == 0


def test_a_broken_copy_that_is_not_caught_fails(attempt):
    code, text = attempt(broken=(("self.count + 1", "self.count + 1 + 0"),))
    assert code == 1
    assert "  ! broken copy 1 is not caught: 'self.count + 1 + 0' for 'self.count + 1'" in text


def test_a_change_of_text_that_is_not_there_fails(attempt):
    code, text = attempt(broken=(("nowhere", ""),))
    assert code == 1
    assert "broken copy 1: 'nowhere' stands 0 times in limited_block.py, not once" in text


def test_a_contradiction_in_the_assumptions_is_seen_by_the_broken_copy(attempt):
    class Nothing(Bounds):
        def build(self, m):
            super().build(m)
            self.assume(0)

    assert attempt(harness=lambda block: Nothing(block, LIMIT))[0] == 1


def test_names_are_words_and_unique():
    names = [proof.name for proof in PROOFS]
    assert len(names) == len(set(names))
    assert all(name.isidentifier() for name in names)
    assert all(proof.broken for proof in PROOFS)


def test_an_unknown_name_is_one_clear_line():
    command = [sys.executable, "-m", "xoe_formal", "nothing"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 2
    assert finished.stderr.splitlines()[-1].startswith(
        "python -m xoe_formal: error: there is no proof nothing; there are order, "
    )
