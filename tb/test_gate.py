import pytest

from xoe_hdl.transport.gate import Gate
from xoe_sim.build import run_bench


@pytest.mark.parametrize(("queue_pairs", "sim"), [(1, "verilator"), (16, "icarus")])
def test_gate(queue_pairs, sim):
    params = {"queue_pairs": queue_pairs, "clocks": 10_000}
    run_bench(Gate(queue_pairs), f"gate_{queue_pairs}", "bench_gate", params, sim)
