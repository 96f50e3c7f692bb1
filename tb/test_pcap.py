from pathlib import Path

import pytest

from test_parser import run

INPUTS = Path(__file__).resolve().parents[2] / "shared" / "inputs"


@pytest.mark.skipif(not INPUTS.exists(), reason="the folder of inputs from outside, ../shared/inputs, is not here")
@pytest.mark.parametrize("width", [64, 128, 256, 512])
def test_captures(width):
    run(width, "bench_pcap", inputs=str(INPUTS))
