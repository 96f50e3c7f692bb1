import pytest

from xoe_hdl.transport.sender import Sender
from xoe_sim.build import run_bench


@pytest.mark.parametrize(
    ("queue_pairs", "window", "pages", "page_words", "mtu", "counter_width"),
    [(1, 8, 32, 16, 512, 2), (4, 64, 128, 64, 1024, 6), (16, 128, 1024, 64, 4096, 32)],
)
def test_sender(queue_pairs, window, pages, page_words, mtu, counter_width):
    config = {
        "queue_pairs": queue_pairs,
        "window": window,
        "pages": pages,
        "page_words": page_words,
        "mtu": mtu,
        "counter_width": counter_width,
    }
    sender = Sender(**config, most_pages=pages // 2)
    run_bench(sender, f"sender_{queue_pairs}_{window}", "bench_sender", {**config, "frames": 60})
