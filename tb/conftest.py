"""What all benches share: the simulators, and what happens when one is not installed."""

from __future__ import annotations

import pytest

from xoe_sim.tools import has_icarus


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests parametrized with ``sim`` run on Icarus Verilog only where it is."""
    chosen = getattr(item, "callspec", None)
    if chosen and chosen.params.get("sim") == "icarus" and not has_icarus():
        pytest.skip("Icarus Verilog is not installed: apt-get install iverilog")
