import pytest

from xoe.config import ConfigError
from xoe_hdl.transport.connections import Connections
from xoe_sim.build import run_bench


@pytest.mark.parametrize(
    ("queue_pairs", "events", "sim"), [(1, 500, "verilator"), (4, 200, "icarus"), (16, 300, "verilator")]
)
def test_connections(queue_pairs, events, sim):
    parameters = {"queue_pairs": queue_pairs, "events": events, "counter_width": 3}
    block = Connections(queue_pairs, counter_width=3)
    run_bench(block, f"transport_connections_{queue_pairs}", "bench_transport_connections", parameters, sim)


@pytest.mark.parametrize(("queue_pairs", "counter_width"), [(0, 8), (3, 8), (512, 8), (4, 1), (4, 65)])
def test_parameters_out_of_bounds(queue_pairs, counter_width):
    with pytest.raises(ConfigError):
        Connections(queue_pairs, counter_width)
