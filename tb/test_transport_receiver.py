import pytest

from xoe.config import ConfigError
from xoe_hdl.transport.receiver import Receiver
from xoe_sim.build import run_bench

GRANTED = (40, 0, 4095)


@pytest.mark.parametrize(
    ("queue_pairs", "window", "pages", "events", "sim"),
    [
        (1, 8, 64, 800, "verilator"),
        (4, 64, 128, 1000, "verilator"),
        (16, 128, 256, 1000, "verilator"),
        (4, 8, 16, 300, "icarus"),
    ],
)
def test_receiver(queue_pairs, window, pages, events, sim):
    parameters = {"queue_pairs": queue_pairs, "window": window, "pages": pages, "credit_words": 16, "granted": GRANTED}
    block = Receiver(**parameters, counter_width=3)
    name = f"transport_receiver_{queue_pairs}_{window}"
    for part in ("", "_cases", "_ends"):
        bench = f"bench_transport_receiver{part}"
        run_bench(block, name, bench, {**parameters, "counter_width": 3, "events": events}, sim)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("queue_pairs", 3),
        ("queue_pairs", 512),
        ("window", 4),
        ("window", 256),
        ("pages", 2),
        ("pages", 100),
        ("credit_words", 2),
        ("credit_words", 512),
        ("granted", (1, 2)),
        ("granted", (1, 2, 4096)),
        ("counter_width", 1),
    ],
)
def test_parameters_out_of_bounds(name, value):
    good = {"queue_pairs": 4, "window": 8, "pages": 16, "credit_words": 16, "granted": GRANTED, "counter_width": 3}
    Receiver(**good)
    with pytest.raises(ConfigError):
        Receiver(**{**good, name: value})
