import pytest

from xoe.cam import PAGE_LOG2_MAX, PAGE_LOG2_MIN
from xoe.config import ConfigError
from xoe_hdl.cam import Cam
from xoe_hdl.layouts import TRANSLATION, WINDOW
from xoe_sim.build import run_bench

PAYLOADS = {"translation": TRANSLATION, "window": WINDOW}


EVERY_SIZE = range(PAGE_LOG2_MIN, PAGE_LOG2_MAX + 1)
SOME_SIZES = (12, 13, 21, 30)


@pytest.mark.parametrize(
    ("entries", "payload", "sim", "pair_sizes"),
    [
        (1, "translation", "verilator", SOME_SIZES),
        (3, "translation", "verilator", EVERY_SIZE),
        (3, "translation", "icarus", SOME_SIZES),
        (64, "translation", "verilator", SOME_SIZES),
        (3, "window", "verilator", SOME_SIZES),
    ],
)
def test_cam(entries, payload, sim, pair_sizes):
    name = f"cam_{payload}_{entries}"
    params = {"entries": entries, "payload": payload, "pair_sizes": list(pair_sizes)}
    run_bench(Cam(entries, PAYLOADS[payload]), name, "bench_cam", params, sim)


@pytest.mark.parametrize("entries", [0, 257, "64"])
def test_entries_out_of_bounds(entries):
    with pytest.raises(ConfigError, match=f"^entries must be an integer from 1 to 256, not {entries!r}$"):
        Cam(entries, TRANSLATION)
