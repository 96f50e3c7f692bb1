import pytest

from xoe.config import DATA_WIDTHS, ConfigError, NicConfig
from xoe.wire import GRID, OperationHeader
from xoe_hdl.nic import Nic
from xoe_hdl.queues import WORDS_MAX, OperationQueue
from xoe_sim.build import run_bench


@pytest.mark.parametrize(
    ("width", "operations", "beats", "sim"),
    [
        (64, 4, 256, "verilator"),
        (64, 64, 256, "icarus"),
        (512, 16, 32, "verilator"),
        (512, 4, 64, "icarus"),
    ],
)
def test_operation_queue(width, operations, beats, sim):
    queue = OperationQueue(width, operations, beats)
    params = {"width": width, "operations": operations, "beats": beats}
    run_bench(queue, f"operation_queue_{width}_{operations}", "bench_operation_queue", params, sim)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((64, 3, 256), "operations must be an integer from 4 to 131072, not 3"),
        ((64, 131073, 256), "operations must be an integer from 4 to 131072, not 131073"),
        ((64, 4, 254), "beats must be an integer from 255 to 131072, not 254"),
        ((512, 4, 31), "beats must be an integer from 32 to 131072, not 31"),
    ],
)
def test_depths_out_of_bounds(arguments, message):
    with pytest.raises(ConfigError, match=f"^{message}$"):
        OperationQueue(*arguments)


@pytest.mark.parametrize("width", DATA_WIDTHS)
@pytest.mark.parametrize("tags", [4, 4096])
def test_a_nic_is_built_with_the_fewest_and_the_most_tags(width, tags):
    config = NicConfig(data_width=width, tags=tags)
    queue = Nic(config).ingress.queue
    assert queue.operations >= 3 * config.payload_max // OperationHeader.SIZE, "three frames of requests fit"
    assert queue.beats * width >= max(3 * config.payload_max // 2, WORDS_MAX * GRID) * 8
    queue.elaborate(None)
