import pytest

from xoe.config import NicConfig
from xoe_hdl.transport.outlet import Outlet
from xoe_sim.build import run_bench


@pytest.mark.parametrize(("queue_pairs", "pages"), [(1, 4), (16, 256)])
def test_outlet(queue_pairs, pages):
    params = {"queue_pairs": queue_pairs, "pages": pages, "events": 150}
    run_bench(
        Outlet(NicConfig(queue_pairs=queue_pairs), pages), f"outlet_{queue_pairs}", "bench_outlet", params, "icarus"
    )
