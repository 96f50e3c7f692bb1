import pytest

from xoe_hdl.responder.atomic import Atomic
from xoe_sim.build import run_bench


@pytest.mark.parametrize("sim", ["verilator", "icarus"])
def test_atomic(sim):
    run_bench(Atomic(), "atomic", "bench_atomic", sim=sim)
