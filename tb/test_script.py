"""Two NICs, and a NIC and a model, survive every case; those that need hardware of their own are apart."""

from collections import defaultdict

import pytest

from xoe.cases import CASES
from xoe.fault_script import Script
from xoe.scenario import Setup
from xoe_sim.run import run_script

PAIRS = ("hardware", "mixed", "mixed-b")


def groups():
    """Names of cases by what has to be built for them."""
    found = defaultdict(list)
    for name, case in CASES.items():
        setup = Setup.of(Script.parse(case.text))
        found[setup.config(), setup.first].append(name)
    return list(found.values())


@pytest.mark.parametrize("ends", PAIRS)
@pytest.mark.parametrize("names", groups(), ids=lambda names: names[0])
def test_cases(names, ends):
    run_script({"cases": names}, Setup.of(Script.parse(CASES[names[0]].text)), ends)
