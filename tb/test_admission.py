import dataclasses

import pytest

from xoe.config import NicConfig
from xoe_hdl.transport.admission import Admission
from xoe_sim.build import run_bench


@pytest.mark.parametrize(
    ("queue_pairs", "window", "pages", "sim"),
    [(1, 8, 4, "icarus"), (2, 64, 32, "icarus"), (16, 128, 256, "verilator")],
)
def test_admission(queue_pairs, window, pages, sim):
    config = NicConfig(queue_pairs=queue_pairs, window=window, counter_width=2)
    params = {"config": dataclasses.asdict(config), "pages": pages, "events": 150}
    run_bench(Admission(config, pages), f"admission_{queue_pairs}_{window}", "bench_admission", params, sim)
