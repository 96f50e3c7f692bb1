import json
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest
from scapy.utils import rdpcap

import bench_workload
from xoe import Frame
from xoe.config import NicConfig
from xoe_sim.__main__ import main
from xoe_sim.predict import predict
from xoe_sim.run import run_workload
from xoe_sim.trace import Message, Trace
from xoe_sim.workload import build

TRACES = Path(__file__).parents[2] / "shared" / "inputs" / "traces"
CONFIG = NicConfig()
# For one connection to fill the wire: from the gathering of a frame to the return of its credits.
WIDE = {"tags": 256, "credit_request": 64, "credit_response": 32, "resend_buffer": 12 * 4096}
SMALL = Trace("small", (Message(0, "put", 0, 4, 300, 2), Message(0, "put", 5, 1, 24, 3)))


def run(tmp_path, width, sim, trace=None, faults=None, **parameters):
    trace = TRACES / trace if trace else None  # an absolute path stays as it is
    if trace and not trace.exists():
        pytest.skip(f"{trace.name} is not there")
    options = Namespace(trace=trace, sim=sim, width=width, seed=1, waves=False, output=tmp_path, faults=faults or {})
    result = run_workload(options, NicConfig(data_width=width, **parameters))
    assert result == json.loads((tmp_path / "result.json").read_text())
    assert result["verdict"] == "passed", result["mismatches"]
    assert faults or not any(result["drops"].values())
    return result


@pytest.mark.parametrize("width", [64, 512])
def test_the_dlrm_trace(tmp_path, width):
    result = run(tmp_path, width, "verilator", "dlrm_8gpu_alltoall_messages.csv")
    assert result["messages"] == 160
    frames = [Frame.decode(bytes(packet)) for packet in rdpcap(str(tmp_path / "wire.pcap"))]
    assert len(frames) == result["frames"]
    assert sum(len(frame.operations) for frame in frames) == 2 * result["operations"]


@pytest.mark.parametrize(("width", "sim"), [(64, "verilator"), (512, "verilator"), (64, "icarus")])
def test_the_boot_reads(tmp_path, width, sim):
    assert run(tmp_path, width, sim, "omnixtend_boot_reads.csv")["operations"] == 42


@pytest.mark.parametrize("width", [64, 512])
def test_the_generated_workload(tmp_path, width):
    assert run(tmp_path, width, "verilator")["messages"] == 96


@pytest.mark.parametrize("width", [64, 512])
def test_the_generated_workload_over_a_link_with_faults(tmp_path, width):
    """Memories and returned values are as without them, and what was lost was sent again."""
    rates = dict.fromkeys(("drop", "duplicate", "reorder", "flip"), 0.02)
    result = run(tmp_path, width, "verilator", faults=rates)
    assert all(result["injected"][name] for name in rates)
    assert result["drops"]["egress.sender.resent"]


class WireNotFullError(AssertionError):
    """The aim is missed, though everything arrived and was right."""


SLOWER = pytest.mark.xfail(raises=WireNotFullError, strict=True, reason="small writes do not fill the wire yet")


@pytest.mark.parametrize(
    ("width", "ways", "least", "aim"),
    [
        pytest.param(64, 1, 0.85, 0.95, marks=SLOWER),
        (64, 2, 0.9, 0.9),
        pytest.param(512, 1, 0.4, 0.95, marks=SLOWER),
        pytest.param(512, 2, 0.25, 0.75, marks=SLOWER),
    ],
)
def test_writes_of_256_bytes_fill_the_wire(tmp_path, width, ways, least, aim):
    """Of the clocks from a direction's first beat to its last, those that its bytes would ideally need.

    Both ways at once, at 512 bits, the gatherer is the limit: it takes one write or one response a clock.
    """
    trace = tmp_path / "writes.csv"
    rows = ["phase,op,src_rank,dst_rank,bytes", "0,put,0,4,32768", "0,put,4,0,32768"]
    trace.write_text("\n".join(rows[: 1 + ways]))
    result = run(tmp_path, width, "verilator", trace, **WIDE)
    share = result["busiest_ideal"] / result["busiest_clocks"]
    assert share >= least, "less than it was"
    if share < aim:
        raise WireNotFullError(f"{share:.3f} of the clocks, not {aim}")


def spoilt_run(nic, at):
    """A run whose memories are right, but for one byte."""
    work = build(SMALL, 1)
    prediction = predict(work, CONFIG)
    memories = [bytearray(memory) for memory in prediction.memory]
    memories[nic][at] ^= 0x80
    sides = [
        SimpleNamespace(ram=SimpleNamespace(read=lambda at, size, memory=memory: bytes(memory))) for memory in memories
    ]
    return bench_workload.Run(work, prediction, sides), prediction.memory[nic][at]


def test_a_wrong_byte_is_named_with_its_message():
    run, expected = spoilt_run(1, 4096 + 299)
    run.compare_memories()
    assert run.mismatches == [
        "message 0 to 4 of phase 0 (put, line 2), NIC 1 memory 0x112b: "
        f"expected {expected:#04x}, found {expected ^ 0x80:#04x} (1 bytes differ)"
    ]


def test_a_byte_that_nobody_writes_is_compared_too():
    run, _ = spoilt_run(0, 0x3FFF)
    run.compare_memories()
    assert run.mismatches[0].startswith("no message, NIC 0 memory 0x3fff: ")


def test_a_wrong_completion_is_named_with_its_message():
    run, _ = spoilt_run(0, 0)
    step, expected = run.work.phases[0][0][-1], run.prediction.completions[0][0][-1]
    wrong = SimpleNamespace(status=0, data=b"\x07" + bytes(7))
    run._judge(step, wrong, expected)
    assert run.mismatches == [
        f"message 0 to 4 of phase 0 (put, line 2), address {step.command.address:#x}: "
        "expected status 0, 0000000000000000, found status 0, 0700000000000000"
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--trace", "nowhere.csv"], 2, "xoe_sim: nowhere.csv: cannot be read: "),
        (["--width", "65"], 2, "invalid choice: 65"),
        (["--sim", "spice"], 2, "invalid choice: 'spice'"),
        (["--seed", "many"], 2, "invalid int value: 'many'"),
        (["--loss", "1.5"], 2, "argument --loss: must be 0 to 1, not 1.5"),
        (["--loss", "much"], 2, "invalid float value: 'much'"),
    ],
)
def test_bad_options_end_with_a_line(monkeypatch, capsys, arguments, code, words):
    monkeypatch.setattr("sys.argv", ["xoe_sim", *arguments])
    try:
        found = main()
    except SystemExit as end:
        found = end.code
    assert found == code
    assert words in capsys.readouterr().err
