import pytest

from xoe.config import ConfigError
from xoe_hdl.crc import FrameCrc, PayloadCrc, payload_latency
from xoe_sim.build import run_bench

LATENCIES = {64: 2, 128: 3, 256: 3, 512: 3, 1024: 3}


@pytest.mark.parametrize(("width", "sim"), [*((width, "verilator") for width in LATENCIES), (64, "icarus")])
def test_crc(width, sim):
    run_bench(FrameCrc(width), f"crc_{width}", "bench_crc", {"latency": LATENCIES[width]}, sim=sim)


def test_latency_is_told():
    assert {width: payload_latency(width) for width in LATENCIES} == LATENCIES


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((96,), "width must be one of 64, 128, 256, 512, 1024, not 96"),
        ((64, 5), "lead must be an integer from 0 to 4, not 5"),
    ],
)
def test_impossible_parameters_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        PayloadCrc(*arguments)
