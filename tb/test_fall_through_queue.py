import pytest

from xoe.config import ConfigError
from xoe_hdl.queues import FallThroughQueue
from xoe_sim.build import run_bench


@pytest.mark.parametrize(("depth", "margin", "sim"), [(2, 0, "verilator"), (8, 3, "icarus")])
def test_fall_through_queue(depth, margin, sim):
    queue = FallThroughQueue(16, depth, margin)
    params = {"depth": depth, "margin": margin}
    run_bench(queue, f"fall_through_queue_{depth}", "bench_fall_through_queue", params, sim)


@pytest.mark.parametrize(
    ("depth", "margin", "message"),
    [
        (1, 0, "depth must be an integer from 2 to 64, not 1"),
        (65, 0, "depth must be an integer from 2 to 64, not 65"),
        (8, 8, "margin must be an integer from 0 to 7, not 8"),
    ],
)
def test_parameters_out_of_bounds(depth, margin, message):
    with pytest.raises(ConfigError, match=f"^{message}$"):
        FallThroughQueue(16, depth, margin)


@pytest.mark.parametrize(("sim", "file"), [("verilator", "dump.vcd"), ("icarus", "dump.fst")])
def test_waves_are_left_in_the_folder_of_the_run(sim, file):
    queue = FallThroughQueue(16, 2)
    folder = run_bench(queue, "waves", "bench_fall_through_queue", {"depth": 2, "margin": 0}, sim, waves=True)
    assert (folder / file).stat().st_size > 1000
