import pytest

from xoe.config import ConfigError
from xoe_hdl.transport.page_store import PageStore
from xoe_sim.build import run_bench


@pytest.mark.parametrize(
    ("width", "rows", "pages", "margin", "sim"),
    [
        (64, 4, 4, 1, "verilator"),
        (64, 32, 32, 6, "verilator"),
        (512, 4, 64, 8, "verilator"),
        (512, 8, 16, 4, "verilator"),
        (64, 4, 8, 2, "icarus"),
    ],
)
def test_page_store(width, rows, pages, margin, sim):
    store = PageStore(width, rows, pages, margin)
    params = {"width": width, "rows": rows, "pages": pages, "margin": margin}
    run_bench(store, f"page_store_{width}_{rows}_{pages}", "bench_page_store", params, sim)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 4, 4, 1), "width must be an integer from 1 to 1024, not 0"),
        ((64, 2, 4, 1), "rows must be one of 4, 8, 16, 32, 64, 128, 256, not 2"),
        ((64, 4, 48, 1), "pages must be one of 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, not 48"),
        ((64, 4, 4, 0), "margin must be an integer from 1 to 4, not 0"),
        ((64, 4, 4, 5), "margin must be an integer from 1 to 4, not 5"),
    ],
)
def test_parameters_out_of_bounds(arguments, message):
    with pytest.raises(ConfigError, match=f"^{message}$"):
        PageStore(*arguments)


def test_the_largest_store_is_built():
    PageStore(1024, 256, 4096, 4096).elaborate(None)
