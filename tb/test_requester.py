import dataclasses

import pytest

from xoe.config import NicConfig
from xoe_hdl.requester import Requester
from xoe_sim.build import run_bench

CAM_ENTRIES, COUNTER_WIDTH = 8, 3


def run(bench, width, tags, sim, **params):
    config = NicConfig(data_width=width, cam_entries=CAM_ENTRIES, tags=tags, counter_width=COUNTER_WIDTH)
    params["config"] = dataclasses.asdict(config)
    run_bench(Requester(config), f"requester_{width}_{tags}", bench, params, sim)


@pytest.mark.parametrize("bench", ["bench_requester", "bench_requester_connections"])
@pytest.mark.parametrize(("width", "tags", "sim"), [(64, 64, "verilator"), (512, 64, "verilator"), (64, 4, "icarus")])
def test_requester(bench, width, tags, sim):
    run(bench, width, tags, sim)


@pytest.mark.parametrize(
    ("width", "tags", "sim", "commands"),
    [
        (64, 64, "verilator", 400),
        (512, 64, "verilator", 400),
        (128, 16, "verilator", 100),
        (256, 8, "verilator", 100),
        (64, 4, "icarus", 100),
    ],
)
def test_requester_traffic(width, tags, sim, commands):
    run("bench_requester_traffic", width, tags, sim, commands=commands)
