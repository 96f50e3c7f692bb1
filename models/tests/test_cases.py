"""Two models survive every case."""

import pytest

from scenario import Scenario
from xoe.cases import CASES
from xoe.fault_script import Script
from xoe.wire import Status


@pytest.mark.parametrize("name", CASES)
def test_two_models(name):
    case = CASES[name]
    scenario = Scenario(Script.parse(case.text), case.rates)
    scenario.run_script()
    statuses = {completion.status for done in scenario.done.values() for completion in done.values()}
    assert not case.is_clean or statuses == {Status.DONE}
    assert scenario.injected or not scenario.script.rules, "what the rules are about has not happened"
