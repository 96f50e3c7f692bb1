"""Any workload, any faults, and users who close and reset at any time: everything once, or told that it was not."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from scenario import Scenario
from xoe.fault_script import AMOUNTS, Action, Event, Rule, Script
from xoe.network import HangError

EXAMPLES = int(os.environ.get("EXAMPLES", "120"))
SCRIPTS = Path(__file__).parent / "scripts"
ENDS = st.sampled_from("AB")

AMOUNT = {
    Action.DUPLICATE: st.integers(0, 5000),
    Action.REORDER: st.integers(1, 12),
    Action.DELAY: st.sampled_from([1, 300, 1500, 3000, 9000, 40_000]),
    Action.FLIP: st.integers(0, 700),
    Action.TRUNCATE: st.integers(0, 80),
}
NAMES = ("frame", "frame", "data", "request", "response", "atomic", "ack", "control", "open", "close", "closed")
VERBS = ["add"] * 6 + ["write"] * 4 + ["read"] * 3 + ["fence", "close", "reset", "stall", "resume"]


@st.composite
def rules(draw):
    action = draw(st.sampled_from([Action.DROP, *Action]))
    amount = draw(AMOUNT[action]) if action in AMOUNTS else 0
    first = draw(st.integers(1, 60))
    last = first + draw(st.sampled_from([0, 0, 1, 3, 10]))
    return Rule(draw(st.sampled_from(["A>B", "B>A"])), action, amount, draw(st.sampled_from(NAMES)), first, last)


@st.composite
def schedules(draw, pairs):
    """Events in the order of their times."""
    time, events = 0, []
    for _ in range(draw(st.integers(1, 60))):
        time += draw(st.sampled_from([0, 0, 0, 20, 100, 700, 3000, 20_000]))
        verb = draw(
            st.sampled_from(["add"] * 6 + ["write"] * 4 + ["read"] * 3 + ["fence", "close", "reset", "stall", "resume"])
        )
        arguments = {}
        if verb not in ("reset", "stall", "resume"):
            arguments["qp"] = draw(st.integers(0, pairs - 1))
        if verb in ("add", "write", "read"):
            arguments["slot"] = draw(st.integers(0, 1))
        if verb == "add":
            arguments["value"] = draw(st.integers(1, 3))
        if verb in ("write", "read"):
            arguments["length"] = draw(st.sampled_from([1, 8, 100, 256]))
        if verb == "write":
            arguments["fill"] = draw(st.integers(0, 255))
        events.append(Event(time, draw(ENDS), verb, tuple(arguments.items())))
    return events


@st.composite
def scripts(draw):
    setup = {
        "window": draw(st.sampled_from([1, 2, 7, 64, 128])),
        "mtu": draw(st.sampled_from([256, 512, 4096])),
        "credit_size": draw(st.sampled_from([32, 512, 2048])),
        "slots": draw(st.sampled_from([1, 3, 16])),
        "tags": draw(st.sampled_from([4, 64])),
        "pairs": draw(st.integers(1, 3)),
        "go_back_n": draw(st.sampled_from([0, 0, 0, 1])),
        "retries": draw(st.sampled_from([1, 3, 7])),
        "reorder": draw(st.sampled_from([0, 3])),
        "ack_every": draw(st.sampled_from([1, 4, 16])),
        "rate": draw(st.sampled_from([0, 8, 64])),
        "delay": draw(st.sampled_from([0, 100, 500])),
        "first": draw(st.sampled_from([0, 3])),
        "timeout": draw(st.sampled_from([0, 0, 0, 20_000])),
    }
    events = [Event(0, "A", "setup", tuple(setup.items())), *draw(schedules(setup["pairs"]))]
    return Script(tuple(draw(st.lists(rules(), max_size=10))), tuple(events))


@given(scripts())
@settings(max_examples=EXAMPLES, derandomize="EXAMPLES" not in os.environ, suppress_health_check=list(HealthCheck))
def test_anything(script):
    note(f"replay with models/tests/scenario.py:\n{script}")
    Scenario(script).run_script()


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_scripts_that_once_failed(path):
    Scenario(Script.parse(path.read_text())).run_script()


def test_a_script_that_hangs_is_found():
    scenario = Scenario(Script.parse("at 100 A add qp=0"))
    scenario.b.transmit = lambda now, most=None: []
    with pytest.raises(HangError):
        scenario.run_until(lambda: False, patience=10_000)
