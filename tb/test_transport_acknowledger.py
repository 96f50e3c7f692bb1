import pytest

from xoe.config import ConfigError
from xoe_hdl.transport.acknowledger import Acknowledger
from xoe_sim.build import run_bench


@pytest.mark.parametrize(
    ("queue_pairs", "events", "sim"), [(1, 600, "verilator"), (4, 300, "icarus"), (16, 1000, "verilator")]
)
def test_acknowledger(queue_pairs, events, sim):
    parameters = {"queue_pairs": queue_pairs, "events": events}
    name = f"transport_acknowledger_{queue_pairs}"
    run_bench(Acknowledger(queue_pairs), name, "bench_transport_acknowledger", parameters, sim)


@pytest.mark.parametrize("queue_pairs", [0, 3, 512])
def test_parameters_out_of_bounds(queue_pairs):
    with pytest.raises(ConfigError):
        Acknowledger(queue_pairs)
