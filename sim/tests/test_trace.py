from pathlib import Path

import pytest

from xoe.wire import DATA_MAX, Opcode
from xoe_sim.trace import Message, Trace, TraceError, generate, read_trace
from xoe_sim.workload import VIRTUAL_BASE, build

INPUTS = Path(__file__).parents[3] / "shared" / "inputs" / "traces"
HEAD = "phase,op,src_rank,dst_rank,bytes\n"


def given(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def external(name: str) -> Path:
    path = INPUTS / name
    if not path.exists():
        pytest.skip(f"{name} is not there")
    return path


def test_the_dlrm_trace():
    trace = read_trace(external("dlrm_8gpu_alltoall_messages.csv"))
    crossing = [message for message in trace.messages if message.src_rank != message.dst_rank and message.size]
    assert len(trace.messages) == 320
    assert (len(crossing), sum(message.size for message in crossing)) == (280, 451_136)
    work = build(trace, 1)
    assert work.messages == 160
    assert len(work.phases) == 5


def test_the_boot_reads():
    trace = read_trace(external("omnixtend_boot_reads.csv"))
    assert len(trace.reads) == 42
    assert trace.reads[0].address == 0x100000080000000
    assert trace.reads[0].data.hex().startswith("42014181")
    work = build(trace, 1)
    page = work.pages[0]
    for step in work.phases[0][0]:
        command = step.command
        start = command.address - page.address
        assert work.memory[1][start : start + 64] == work.reads[command.address]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs the columns phase, op, src_rank, dst_rank, bytes or op, source, addr, data_hex"),
        (HEAD, "and at least one row"),
        ("a,b\n1,2\n", "needs the columns"),
        (HEAD + "0,put,0,5,many\n", ":2: bytes must be a whole number below 2^64, not 'many'"),
        (HEAD + "0,put,0,5,-1\n", ":2: bytes must be a whole number below 2^64, not '-1'"),
        (HEAD + "0,put,0,5\n", ":2: bytes must be a whole number below 2^64, not None"),
        (HEAD + "0,put,0,5,1\n0,shout,0,5,1\n", ":3: op must be one of all_to_all, all_to_allv, put, get, not 'shout'"),
        ("op,source,addr,data_hex\nAccessAckData,3,,00\n", ":2: data for source 3, which asked for none"),
        (
            "op,source,addr,data_hex\nGet,3,0x10,\nAccessAckData,3,,0g\n",
            ":3: data_hex must be hexadecimal, 1 to 256 bytes",
        ),
        ("op,source,addr,data_hex\nGet,3,0x10,\nAccessAckData,3\n", ":3: data_hex must be hexadecimal, 1 to 256 bytes"),
        ("op,source,addr,data_hex\nGet,3,ffffffffffffffff,\nAccessAckData,3,,0000\n", ":3: the data must end below"),
        ("op,source,addr,data_hex\nGet,3,ten,\n", ":2: addr must be a whole number below 2^64, not 'ten'"),
    ],
)
def test_a_trace_that_is_not_sound_is_refused(tmp_path, text, message):
    with pytest.raises(TraceError) as raised:
        read_trace(given(tmp_path / "trace.csv", text))
    assert message in str(raised.value)


def test_a_missing_trace_is_refused(tmp_path):
    with pytest.raises(TraceError, match=r"none\.csv: cannot be read"):
        read_trace(tmp_path / "none.csv")


def test_a_rank_that_is_not_there_is_refused():
    with pytest.raises(TraceError, match="t:7: dst_rank must be below 8, not 8"):
        build(Trace("t", (Message(0, "put", 0, 8, 1, 7),)), 1)


def test_too_much_memory_is_refused():
    most = (1 << 25) - 4096
    build(Trace("t", (Message(0, "put", 0, 7, most),)), 1)
    with pytest.raises(TraceError, match=f"t: one rank may get {most} bytes, not {most + 1}"):
        build(Trace("t", (Message(0, "put", 0, 7, most + 1),)), 1)


@pytest.mark.parametrize("message", [Message(0, "put", 0, 3, 9), Message(0, "put", 0, 7, 0)])
def test_a_trace_in_which_nothing_crosses_is_refused(message):
    with pytest.raises(TraceError, match="t: no message has bytes for a rank on another NIC"):
        build(Trace("t", (message,)), 1)


def test_reads_without_data_are_refused(tmp_path):
    with pytest.raises(TraceError, match="no Get has its AccessAckData"):
        build(read_trace(given(tmp_path / "t.csv", "op,source,addr,data_hex\nGet,0,0x0,\n")), 1)


def test_lines_are_those_of_the_file_and_a_byte_order_mark_is_none_of_the_columns(tmp_path):
    with pytest.raises(TraceError, match=":4: bytes must be"):
        read_trace(given(tmp_path / "t.csv", "\ufeff" + HEAD + "0,put,0,5,1\n\n0,put,0,5,x\n"))


def test_reads_too_far_apart_are_refused(tmp_path):
    text = "op,source,addr,data_hex\nGet,0,0x0,\nAccessAckData,0,,00\nGet,0,0x80000000,\nAccessAckData,0,,00\n"
    with pytest.raises(TraceError, match="must lie in one page of 134217728 bytes, not of 2\\^32"):
        build(read_trace(given(tmp_path / "trace.csv", text)), 1)


def test_every_message_is_written_whole_and_signalled_once():
    work = build(generate(3), 3)
    for phase in work.phases:
        for nic, steps in enumerate(phase):
            for message in {step.message for step in steps}:
                *moves, signal = [step.command for step in steps if step.message == message]
                assert sum(command.length for command in moves) == message.size
                assert all(command.length <= DATA_MAX for command in moves)
                assert signal.opcode == Opcode.ADD
                assert (message.src_rank // 4, message.dst_rank // 4) == (nic, 1 - nic)


def test_receive_buffers_do_not_overlap():
    work = build(generate(4), 4)
    written: set[int] = set()
    for command in (step.command for phase in work.phases for nic in phase for step in nic):
        if command.opcode == Opcode.WRITE:
            span = set(range(command.address, command.address + command.length))
            assert not span & written
            written |= span
    assert min(written) >= VIRTUAL_BASE


def test_the_same_seed_gives_the_same_workload():
    assert build(generate(5), 5) == build(generate(5), 5)
    assert build(generate(5), 5).memory != build(generate(5), 6).memory
