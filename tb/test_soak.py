import subprocess
import sys

import pytest

from xoe.config import NicConfig
from xoe_sim.soak import main, parse, run_soak


def soak(tmp_path, *arguments, **config):
    options = parse([*map(str, arguments), "--output", str(tmp_path)])
    return run_soak(options, NicConfig(data_width=options.width, **config))


@pytest.mark.parametrize(
    ("width", "ends", "ops", "done"),
    # Of few operations most are under way when one of the ends is reset.
    [(64, "hardware", 20_000, 0.8), (512, "hardware", 1_500, 0.3), (64, "mixed", 1_500, 0.3)],
)
def test_nothing_is_lost_and_nothing_comes_twice(tmp_path, width, ends, ops, done):
    result = soak(tmp_path, "--ops", ops, "--width", width, "--ends", ends, "--resets", ops // 8)
    assert result["operations"] == ops
    assert sum(result["ended"].values()) + result["forgotten"] == ops
    assert result["ended"]["done"] > done * ops
    assert result["resets"] >= 7
    assert all(result["injected"].values())
    assert result["counters"]["egress.sender.resent"]


def test_two_models():
    command = [sys.executable, "-m", "xoe_sim.soak", "--ends", "models", "--ops", "3000"]
    assert "passed" in subprocess.run(command, capture_output=True, check=True, text=True).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--ops", "0"], "argument --ops: must be 1 or more, not 0"),
        (["--each", "0.5"], "argument --each: must be 0 to 0.1, not 0.5"),
        (["--resets", "-1"], "argument --resets: must be 0 or more, not -1"),
        (["--ends", "nobody"], "invalid choice: 'nobody'"),
    ],
)
def test_bad_options_end_with_a_line(monkeypatch, capsys, arguments, words):
    monkeypatch.setattr("sys.argv", ["xoe_sim.soak", *arguments])
    with pytest.raises(SystemExit):
        main()
    assert words in capsys.readouterr().err
