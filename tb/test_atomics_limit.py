import pytest

from xoe.config import ConfigError
from xoe_hdl.requester.atomics_limit import AtomicsLimit
from xoe_sim.build import run_bench


@pytest.mark.parametrize(("queue_pairs", "sim"), [(1, "icarus"), (16, "icarus")])
def test_atomics_limit(queue_pairs, sim):
    params = {"queue_pairs": queue_pairs, "clocks": 1000}
    run_bench(AtomicsLimit(queue_pairs), f"atomics_limit_{queue_pairs}", "bench_atomics_limit", params, sim)


@pytest.mark.parametrize("queue_pairs", [0, 3, 512])
def test_parameters_out_of_bounds(queue_pairs):
    with pytest.raises(ConfigError):
        AtomicsLimit(queue_pairs)
