import dataclasses

import pytest

from xoe.config import NicConfig
from xoe_hdl.responder import Responder
from xoe_sim.build import run_bench


def run(width, counter_width, sim, full, bench):
    config = NicConfig(data_width=width, counter_width=counter_width)
    settings = {"config": dataclasses.asdict(config), "full": full}
    run_bench(Responder(config), f"responder_{width}_{counter_width}", bench, settings, sim)


@pytest.mark.parametrize(
    ("width", "counter_width", "sim", "full"),
    [
        (64, 3, "verilator", True),
        (512, 3, "verilator", True),
        (128, 2, "verilator", False),
        (256, 4, "verilator", False),
        (64, 3, "icarus", False),
    ],
)
def test_operations(width, counter_width, sim, full):
    run(width, counter_width, sim, full, "bench_responder")


@pytest.mark.parametrize(
    ("width", "counter_width", "full"), [(64, 3, True), (512, 3, True), (128, 2, False), (256, 4, False)]
)
def test_load(width, counter_width, full):
    run(width, counter_width, "verilator", full, "bench_responder_load")
