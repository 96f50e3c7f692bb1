"""The oracle sees what is wrong, and a soak run says so."""

import pytest

from xoe import soak
from xoe.command import Command, Completion
from xoe.memory import Memory
from xoe.operation import Operation
from xoe.oracle import Oracle, OracleError
from xoe.receiver import Receiver
from xoe.wire import Opcode, Status

ADD = Command(Opcode.ADD, 5, 1, 1, 8, 8, (3).to_bytes(8, "little"))
REQUEST = Operation(Opcode.ADD, 64, 8, 8, (3).to_bytes(8, "little"))
ANSWER = Operation(0x50, 64, 0, 8, bytes(8))
DONE = Completion(5, Opcode.ADD, Status.DONE, bytes(8))


@pytest.fixture
def oracle():
    oracle = Oracle({"A": "B", "B": "A"})
    oracle.submit("A", ADD)
    oracle.started("A", 64, 5)
    return oracle


def test_what_may_be(oracle):
    oracle.carried_out("B", REQUEST, ANSWER)
    oracle.completed("A", DONE)
    memory = Memory()
    memory.write(8, b"\3")
    oracle.judge({"A": Memory(), "B": memory})
    assert oracle.counts == {Status.DONE: 1}


@pytest.mark.parametrize("status", [Status.CONNECTION_LOST, Status.TIMED_OUT])
def test_a_command_without_an_answer_may_be_carried_out_once(oracle, status):
    oracle.completed("A", Completion(5, Opcode.ADD, status))
    oracle.judge({"A": Memory(), "B": Memory()})
    oracle.carried_out("B", REQUEST, ANSWER)
    with pytest.raises(OracleError, match="was carried out again"):
        oracle.carried_out("B", REQUEST, ANSWER)


def test_what_must_not_be(oracle):
    with pytest.raises(OracleError, match="returned"):
        Oracle.completed(oracle, "A", DONE)  # it was not carried out
    oracle.submit("A", ADD)
    with pytest.raises(OracleError, match="which nobody asked for"):
        oracle.carried_out("B", Operation(Opcode.ADD, 65, 8, 8, bytes(8)), ANSWER)
    with pytest.raises(OracleError, match="1 commands did not complete"):
        oracle.judge({})
    assert oracle.forget("A") == 1
    with pytest.raises(OracleError, match="which was not under way"):
        oracle.completed("A", DONE)


def test_wrong_results(oracle):
    with pytest.raises(OracleError, match="had the answer"):
        oracle.carried_out("B", REQUEST, Operation(0x50, 64, 0, 8, b"\1" + bytes(7)))
    with pytest.raises(OracleError, match="returned 01"):
        oracle.completed("A", Completion(5, Opcode.ADD, Status.DONE, b"\1"))
    with pytest.raises(OracleError, match="memory of B is not what it should be at 0x0"):
        oracle.judge({"A": Memory(), "B": Memory()})


def test_wrong_order_and_wrong_ends(oracle):
    oracle.submit("A", Command(Opcode.FENCE, 6, 1))
    oracle.started("A", 65, 6)
    oracle.carried_out("B", Operation(Opcode.FENCE, 65), Operation(0x43, 65))
    with pytest.raises(OracleError, match="was carried out after a later one"):
        oracle.carried_out("B", REQUEST, ANSWER)
    with pytest.raises(OracleError, match="was carried out, and refused"):
        oracle.completed("A", Completion(6, Opcode.FENCE, Status.NOT_CONNECTED))
    with pytest.raises(OracleError, match="ended"):
        oracle.completed("A", Completion(5, Opcode.ADD, Status.OUT_OF_RANGE))


def test_nothing_after_a_refusal(oracle):
    oracle.completed("A", Completion(5, Opcode.ADD, Status.NOT_CONNECTED))
    with pytest.raises(OracleError, match="was carried out after it had completed"):
        oracle.carried_out("B", REQUEST, ANSWER)


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["soak", *arguments])
    return soak.main()


@pytest.mark.parametrize("mode", [[], ["--go-back-n"]])
def test_a_short_run(monkeypatch, capsys, mode):
    assert run(monkeypatch, "--ops", "1500", "--resets", "400", "--loss", "0.02", *mode) == 0
    table = capsys.readouterr().out
    assert table.startswith("verdict")
    rows = {line.split("  ")[0]: line.split()[-1] for line in table.splitlines()}
    assert (rows["verdict"], rows["operations"], rows["resets"]) == ("passed", "1500", "3")


def test_a_run_that_goes_wrong(monkeypatch, capsys):
    deliver = Receiver.deliver
    monkeypatch.setattr(Receiver, "deliver", lambda self: [frame for frame in deliver(self) for _ in range(2)])
    assert run(monkeypatch, "--ops", "500", "--quiet") == 1
    assert "was carried out again" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ops", "0"], "ops must be 1 or more"),
        (["--loss", "2"], "drop must be 0 to 1, not 2.0"),
        (["--each", "0.5"], "the rates must be 1 or less together"),
        (["--queue-pairs", "3"], "queue_pairs must be one of 1, 2, 4"),
        (["--queue-pairs", "16"], "queue_pairs must be 1, 2, 4 or 8, not 16"),
        (["--retries", "16"], "retries must be an integer from 0 to 15, not 16"),
        (["--link-rate", "0"], "rate must be above 0"),
    ],
)
def test_bad_options_are_one_clear_line(monkeypatch, capsys, arguments, message):
    assert run(monkeypatch, *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("xoe.soak: ")
    assert message in line
