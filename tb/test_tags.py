import pytest

from xoe_hdl.requester.tags import Tags
from xoe_sim.build import run_bench


@pytest.mark.parametrize(
    ("tags", "given", "sim"),
    [
        (4, 5_000, "verilator"),
        (64, 2_000, "icarus"),
        (4096, 68_000, "verilator"),  # through all generations
    ],
)
def test_tags(tags, given, sim):
    run_bench(Tags(tags, 4), f"tags_{tags}", "bench_tags", {"tags": tags, "given": given}, sim)
