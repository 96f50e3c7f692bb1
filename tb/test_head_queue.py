import pytest

from xoe.config import ConfigError
from xoe_hdl.queues import HeadQueue
from xoe_sim.build import run_bench


@pytest.mark.parametrize(("depth", "margin", "sim"), [(4, 0, "icarus"), (16, 5, "verilator")])
def test_head_queue(depth, margin, sim):
    queue = HeadQueue(16, depth, margin)
    run_bench(queue, f"head_queue_{depth}", "bench_head_queue", {"depth": depth, "margin": margin}, sim)


@pytest.mark.parametrize(
    ("depth", "margin", "message"),
    [
        (2, 0, "depth must be one of 4, 8, 16, 32, 64, not 2"),
        (8, 8, "margin must be an integer from 0 to 7, not 8"),
    ],
)
def test_parameters_out_of_bounds(depth, margin, message):
    with pytest.raises(ConfigError, match=f"^{message}$"):
        HeadQueue(16, depth, margin)
