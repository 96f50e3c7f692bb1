import pytest

from xoe.config import ConfigError
from xoe.offer import LARGEST
from xoe_hdl.transport.connections import Connections
from xoe_sim.build import run_bench


@pytest.mark.parametrize(
    ("queue_pairs", "events", "largest", "sim"),
    [
        (1, 500, LARGEST, "verilator"),
        (4, 200, LARGEST, "icarus"),
        (16, 300, (200, 136, 24), "verilator"),
    ],
)
def test_connections(queue_pairs, events, largest, sim):
    parameters = {"queue_pairs": queue_pairs, "events": events, "counter_width": 3, "largest": largest}
    block = Connections(queue_pairs, counter_width=3, largest=largest)
    run_bench(block, f"transport_connections_{queue_pairs}", "bench_transport_connections", parameters, sim)


@pytest.mark.parametrize(("queue_pairs", "counter_width"), [(0, 8), (3, 8), (512, 8), (4, 1), (4, 65)])
def test_parameters_out_of_bounds(queue_pairs, counter_width):
    with pytest.raises(ConfigError):
        Connections(queue_pairs, counter_width)


@pytest.mark.parametrize("largest", [(), (64, 64), (64, 64, 32, 8), (0, 64, 32), (64, 64, 9001)])
def test_largest_out_of_bounds(largest):
    with pytest.raises(ConfigError):
        Connections(4, largest=largest)
