import pytest

from xoe_hdl.transport.releases import Releases
from xoe_sim.build import run_bench


@pytest.mark.parametrize("pages", [4, 64])
def test_releases(pages):
    run_bench(Releases(pages), f"releases_{pages}", "bench_releases", {"pages": pages}, "icarus")
