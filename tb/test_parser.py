from pathlib import Path

import pytest

from lossless_parser import LosslessParser
from xoe.config import NicConfig
from xoe_sim.build import run_bench

INPUTS = Path(__file__).resolve().parents[2] / "shared" / "inputs"
LATENCY = {64: 22, 128: 21, 256: 20, 512: 20}  # clocks at most


def run(width, bench, sim="verilator", testcase=None, mtu=1504, **params):
    """Counters are narrow, so that they wrap all the time."""
    config = {"data_width": width, "mtu": mtu, "counter_width": 4}
    parser, params = LosslessParser(NicConfig(**config)), {"config": config, **params}
    run_bench(parser, f"parser_{width}", bench, params, sim, testcase=testcase)


@pytest.mark.parametrize("width", [64, 512])
def test_parser(width):
    run(width, "bench_parser")


@pytest.mark.parametrize("testcase", ["anything_at_any_pace", "truncation_at_every_byte", "every_size_at_every_offset"])
@pytest.mark.parametrize("width", [128, 256])
def test_between_the_extremes(width, testcase):
    run(width, "bench_parser", testcase=testcase)


def test_jumbo_frames():
    """More words of operations in a frame than a beat can say."""
    run(64, "bench_parser_speed", testcase="no_clock_is_lost_on_packed_writes", mtu=9000)


@pytest.mark.parametrize("width", LATENCY)
def test_pace(width):
    run(width, "bench_parser_speed", latency=LATENCY[width])


@pytest.mark.skipif(not INPUTS.exists(), reason="the folder of inputs from outside, ../shared/inputs, is not here")
@pytest.mark.parametrize("width", LATENCY)
def test_captures(width):
    run(width, "bench_pcap", inputs=str(INPUTS))


@pytest.mark.parametrize("sim", ["icarus"])
def test_parser_in_icarus(sim):
    run(64, "bench_parser", sim=sim, testcase="every_cause_is_met")
