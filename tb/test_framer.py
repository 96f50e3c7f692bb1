import pytest

from xoe.config import NicConfig
from xoe_hdl.framer import Framer
from xoe_sim.build import run_bench

LAST_SEQUENCE = (1 << 24) - 2
SHORT = ["anything_passes", "frames_are_filled_to_the_mtu", "short_frames_are_padded", "the_wire_is_full"]


def run(width, counter_width=32, first_sequence=0, mtu=4096, **options):
    config = NicConfig(data_width=width, mtu=mtu, queue_pairs=8, counter_width=counter_width)
    params = {
        "mtu": config.mtu,
        "queue_pairs": config.queue_pairs,
        "counter_width": counter_width,
        "first_sequence": first_sequence,
    }
    run_bench(Framer(config, first_sequence), f"framer_{width}", "bench_framer", params, **options)


@pytest.mark.parametrize("width", [64, 512])
def test_framer(width):
    run(width)
