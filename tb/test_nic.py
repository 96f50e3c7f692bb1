import pytest

from xoe.config import NicConfig
from xoe_hdl.nic import Nic
from xoe_sim.build import run_bench

SMALL = {"cam_entries": 16, "windows": 2, "tags": 8, "queue_pairs": 4, "mtu": 512, "counter_width": 8}


@pytest.mark.parametrize("width", [64, 512])
@pytest.mark.parametrize("pause", ["never", "random"])
def test_user_peer_and_noise_at_once(width, pause):
    config = {"data_width": width, **SMALL}
    run_bench(Nic(NicConfig(**config)), f"nic_{width}", "bench_nic", {"config": config, "pause": pause, "count": 400})


@pytest.mark.parametrize("width", [64, 512])
def test_reset_in_the_middle(width):
    config = {"data_width": width, **SMALL}
    run_bench(Nic(NicConfig(**config)), f"nic_{width}", "bench_nic_reset", {"config": config, "rounds": 12})
