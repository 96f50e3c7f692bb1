import json

import pytest

from xoe.config import NicConfig
from xoe_sim import goodput

RESULT = {
    "opcode": "write",
    "rtt_us": 1.0,
    "go_back_n": False,
    "loss": 0.0,
    "goodput": 50.0,
    "latency_median": 200,
    "latency_p99": 400,
    "resent": 0,
}


def test_a_measurement(tmp_path):
    """The wire is well filled, loss costs little, and going back more than repeating what is lost."""
    options = goodput.parse(
        ["--loss", "0.03", "--rtt", "1", "--clocks", "60000", "--warm", "10000", "--output", str(tmp_path)]
    )
    config = NicConfig(queue_pairs=1, credit_request=256, resend_buffer=32 * 4096, tags=1024)
    results = [each for each in goodput.measure(options, config) if each["opcode"] == "write"]
    share = {(each["go_back_n"], each["loss"]): each["share"] for each in results}
    best = max(each["goodput"] for each in results)
    assert 0.8 * 8 < best < 8 * 256 / 272
    assert share[False, 0.03] > 0.85
    assert share[True, 0.03] < share[False, 0.03]
    assert all(each["resent"] > 0 for each in results if each["loss"])
    goodput.plot(goodput._with_shares(results), tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()


def test_the_table_and_what_is_missed():
    lossy = RESULT | {"loss": 0.01, "goodput": 45.0, "resent": 7}
    both = [each | {"go_back_n": go_back_n} for each in (RESULT, lossy) for go_back_n in (False, True)]
    results = goodput._with_shares(json.loads(json.dumps(both)))
    assert [round(each["share"], 3) for each in results] == [1, 0.909, 1, 0.909]
    lines = goodput.table(results).splitlines()
    assert lines[2].split() == ["write", "1", "0.00", "%", *["78.1", "1.000", "1.02", "2.05", "0"] * 2]
    assert lines[3].split()[:6] == ["write", "1", "1.00", "%", "70.3", "0.909"]
    assert goodput.misses(results) == ["writes at 1 us and 1 % loss: 0.909 of the ideal, not 0.95"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--loss", "0.5"], "argument --loss: must be 0 to 0.2, not 0.5"),
        (["--rtt", "0"], "argument --rtt: must be 0.1 to 20, not 0.0"),
        (["--clocks", "1"], "argument --clocks: must be 1000 to 100000000, not 1"),
    ],
)
def test_bad_options_end_with_a_line(capsys, arguments, words):
    with pytest.raises(SystemExit):
        goodput.parse(arguments)
    assert words in capsys.readouterr().err
