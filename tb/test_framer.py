import pytest

from lossless_framer import LosslessFramer
from xoe.config import ConfigError, NicConfig
from xoe_sim.build import run_bench

SIMS = ["verilator", "icarus"]
SHORT = [
    ("bench_framer", "frames_are_filled_to_the_mtu"),
    ("bench_framer_speed", "frames_of_one_operation_are_back_to_back"),
    ("bench_framer_speed", "the_wire_is_full"),
]


def run(width, bench="bench_framer", counter_width=32, first_sequence=0, mtu=4096, **options):
    config = NicConfig(data_width=width, mtu=mtu, queue_pairs=8, counter_width=counter_width)
    params = {"mtu": mtu, "queue_pairs": 8, "counter_width": counter_width, "first_sequence": first_sequence}
    run_bench(LosslessFramer(config, first_sequence), f"framer_{width}", bench, params, **options)


@pytest.mark.parametrize("bench", ["bench_framer", "bench_framer_speed"])
@pytest.mark.parametrize("width", [64, 512])
def test_framer(width, bench):
    run(width, bench)


@pytest.mark.parametrize("width", [128, 256])
@pytest.mark.parametrize(("bench", "testcase"), SHORT)
def test_other_widths(width, bench, testcase):
    run(width, bench, testcase=testcase)


@pytest.mark.parametrize("sim", SIMS)
def test_wraps(sim):
    """Sequence numbers and counters at their end, in the smallest buffers."""
    run(64, counter_width=3, first_sequence=(1 << 24) - 2, mtu=304, sim=sim, testcase="sequence_numbers_wrap")


def test_a_first_sequence_that_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match="first must be an integer from 0 to 16777215, not 16777216"):
        LosslessFramer(NicConfig(), 1 << 24)
