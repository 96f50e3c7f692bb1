import dataclasses

import pytest

from xoe.config import NicConfig
from xoe_hdl.transport.notes import Notes
from xoe_sim.build import run_bench


@pytest.mark.parametrize(("queue_pairs", "window", "width"), [(1, 8, 64), (2, 64, 512), (16, 128, 512)])
def test_notes(queue_pairs, window, width):
    config = NicConfig(queue_pairs=queue_pairs, window=window, data_width=width)
    firsts = {"first_seq": (1 << 24) - 3, "first_credit": 0x54321}
    params = {"config": dataclasses.asdict(config), **firsts, "events": 60}
    run_bench(Notes(config, **firsts), f"notes_{queue_pairs}_{window}", "bench_notes", params, "icarus")
