import dataclasses

import pytest

from xoe.config import NicConfig
from xoe_hdl.transport.terms import Terms
from xoe_sim.build import run_bench


@pytest.mark.parametrize(("queue_pairs", "window", "mtu"), [(1, 8, 256), (16, 128, 9000)])
def test_terms(queue_pairs, window, mtu):
    config = NicConfig(queue_pairs=queue_pairs, window=window, mtu=mtu)
    firsts = {"first_seq": (1 << 24) - 3, "first_credit": 0x54321}
    params = {"config": dataclasses.asdict(config), **firsts}
    run_bench(Terms(config, **firsts), f"terms_{queue_pairs}_{mtu}", "bench_terms", params, "icarus")
