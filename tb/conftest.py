"""What all benches share: the simulators, and what happens when one is not installed."""

from __future__ import annotations

import pytest

from xoe_sim.tools import has_icarus

LONGEST = ("test_workload.py", "test_script.py", "test_soak.py", "test_nic.py")  # so that none is alone at the end


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests come first."""
    order = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(LONGEST)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests parametrized with ``sim`` run on Icarus Verilog only where it is."""
    chosen = getattr(item, "callspec", None)
    if chosen and chosen.params.get("sim") == "icarus" and not has_icarus():
        pytest.skip("Icarus Verilog is not installed: apt-get install iverilog")
