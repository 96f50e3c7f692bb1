import dataclasses

import pytest

from xoe.config import NicConfig
from xoe_hdl.transport.reader import Reader
from xoe_sim.build import run_bench


@pytest.mark.parametrize(("queue_pairs", "width", "pages", "sim"), [(1, 64, 64, "icarus"), (16, 512, 64, "verilator")])
def test_reader(queue_pairs, width, pages, sim):
    config = NicConfig(queue_pairs=queue_pairs, data_width=width)
    params = {"config": dataclasses.asdict(config), "pages": pages, "events": 150}
    run_bench(Reader(config, pages), f"reader_{queue_pairs}_{width}", "bench_reader", params, sim)
