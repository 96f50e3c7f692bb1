import pytest

from xoe.config import NicConfig
from xoe_hdl.parser import Parser
from xoe_sim.build import run_bench

LATENCY = {64: 9, 128: 8, 256: 8, 512: 8}  # clocks at most


def run(width, bench, sim="verilator", **params):
    """Counters are narrow, so that they wrap all the time."""
    config = {"data_width": width, "mtu": 1504, "counter_width": 4}
    run_bench(Parser(NicConfig(**config)), f"parser_{width}", bench, {"config": config, **params}, sim)


@pytest.mark.parametrize("width", LATENCY)
def test_parser(width):
    run(width, "bench_parser")


@pytest.mark.parametrize("width", LATENCY)
def test_pace(width):
    run(width, "bench_parser_speed", latency=LATENCY[width])
