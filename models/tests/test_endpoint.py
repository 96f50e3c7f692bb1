"""The endpoint's interface, and what it does without any loss."""

import dataclasses

import pytest

from endpoints import CONFIG, Pair
from xoe.channel import Outgoing
from xoe.connection import State
from xoe.frame import Frame
from xoe.operation import Operation
from xoe.responder import Outcome
from xoe.traffic import Traffic
from xoe.wire import ControlBody, Kind, Message, Opcode, Status, TrafficClass

OUTGOING = Outgoing(TrafficClass.REQUEST, (Operation(Opcode.READ, 1, 2, 3),), 16)


@pytest.fixture
def pair():
    pair = Pair()
    pair.open()
    return pair


def count(end, *events):
    return sum(end.counters[event] for event in events)


def test_three_frames_open_a_connection():
    pair = Pair()
    pair.listen()
    pair.connect()
    (first,) = pair.a.transmit(0)
    assert Frame.decode(first).header.kind == Kind.CONTROL
    pair.b.receive(first, 1)
    (second,) = pair.b.transmit(1)
    pair.a.receive(second, 2)
    (third,) = pair.a.transmit(2)
    pair.b.receive(third, 3)
    assert pair.is_open()
    assert pair.b.transmit(3) == []
    body = ControlBody.unpack(Frame.decode(third).body)
    assert (body.message, body.is_open, body.echo_valid, body.credit_size, body.window) == (Message.OPEN, 1, 1, 9, 64)
    assert (body.credit_request, body.credit_response, body.credit_atomic) == CONFIG.credits == (16, 16, 16)


def test_a_write_a_read_an_atomic_and_a_fence(pair):
    write, read = pair.write("A", 0x1003, b"to and fro"), pair.read("A", 0x1000, 16)
    adds = [pair.add(name, 0x2000, number) for name, number in (("A", 5), ("A", 7), ("B", 9))]
    fence = pair.submit("A", Opcode.FENCE, 0, 0)
    pair.finish()
    assert pair.b.memory.read(0x1003, 10) == b"to and fro"
    assert pair.done["A"][read].data == b"\0\0\0to and fro\0\0\0"
    assert [pair.value(name, number) for name, number in zip("AAB", adds, strict=True)] == [0, 5, 0]
    assert pair.b.memory.read(0x2000, 8) == (12).to_bytes(8, "little")
    assert pair.a.memory.read(0x2000, 8) == (9).to_bytes(8, "little")
    assert pair.status("A", write) == pair.status("A", fence) == Status.DONE
    assert pair.a.counters[Traffic.RESENT] == pair.b.counters[Traffic.RESENT] == 0


def test_order_across_classes(pair):
    """Write, atomic, write, read: each of another frame than the one before, in their order."""
    for number in range(20):
        pair.write("A", 0x100, bytes([number] * 8))
        value = pair.add("A", 0x100, 1)
        pair.write("A", 0x108, bytes([number] * 8))
        read = pair.read("A", 0x100, 16)
        pair.finish()
        assert pair.value("A", value) == int.from_bytes(bytes([number] * 8), "little")
        assert pair.done["A"][read].data[8:] == bytes([number] * 8)


def test_operations_share_frames(pair):
    for number in range(15):
        pair.write("A", 256 * number, bytes([number] * 256))
    pair.finish()
    assert pair.a.counters[Traffic.DATA_SENT] == 2  # the first at once, then 14 x 272 bytes in 4064
    assert all(pair.b.memory.read(256 * number, 256) == bytes([number] * 256) for number in range(15))


def test_a_frame_at_a_time():
    pair = Pair()
    pair.open()
    for number in range(40):
        pair.write("A", 256 * number, bytes(256))
    frames = []
    while found := pair.a.transmit(pair.now, 1):
        frames += found
    assert len(frames) == 2  # of the largest size: that is what the credits hold
    assert pair.a.transmit(pair.now) == []


def test_closing(pair):
    answered = pair.write("A", 0, b"1")
    pair.finish()
    pair.b.is_stalled = True
    unanswered = pair.write("A", 8, b"2")
    pair.run(5000)
    pair.a.close(0, pair.now)
    assert pair.a.state(0) is State.CLOSING
    pair.run(5000)
    assert (pair.a.state(0), pair.b.state(1)) == (State.CLOSED, State.LISTENING)
    assert pair.status("A", answered) == Status.DONE
    assert pair.status("A", unanswered) == Status.CONNECTION_LOST
    assert (pair.notices["A"], pair.notices["B"]) == (
        [(0, "OPENED"), (0, "CLOSED")],
        [(1, "OPENED"), (1, "PEER_CLOSED")],
    )
    assert pair.b.memory.read(8, 1) == b"\0"
    pair.b.is_stalled = False
    pair.run(10)
    assert pair.b.memory.read(8, 1) == b"2"  # delivered before, and so carried out
    assert pair.b.counters[Traffic.OLD_ANSWER] == 1


def test_a_connection_can_be_opened_again_and_again():
    pair = Pair(epochs={0: 250, 1: 3})
    for number in range(10):
        pair.open()
        write = pair.write("A", number, bytes([number + 1]))
        pair.finish()
        assert pair.status("A", write) == Status.DONE
        pair.ends["AB"[number % 2]].close(number % 2, pair.now)
        pair.run(3000)
    assert pair.b.memory.read(0, 10) == bytes(range(1, 11))


def test_completions_that_nobody_fetches_hold_commands_back_but_not_the_peer(pair):
    pair.fetch["A"] = False
    for number in range(3 * CONFIG.tags):
        pair.write("A", number, b"x")
    refused = [pair.submit("A", Opcode.READ, 0, 0) for _ in range(5)]
    pair.run(20_000)
    assert len(pair.a.completions) == CONFIG.tags
    assert pair.b.memory.read(0, CONFIG.tags + 1) == b"x" * CONFIG.tags + b"\0"
    theirs = [pair.read("B", 0, 8) for _ in range(3 * CONFIG.tags)]
    pair.run(100_000)
    assert {pair.status("B", number) for number in theirs} == {Status.DONE}
    pair.fetch["A"] = True
    pair.finish()
    assert len(pair.done["A"]) == 3 * CONFIG.tags + 5
    assert {pair.status("A", number) for number in refused} == {Status.MALFORMED}


def test_a_stalled_responder_holds_credits_and_goes_on(pair):
    pair.b.is_stalled = True
    writes = [pair.write("A", 256 * number, bytes([1] * 256)) for number in range(60)]
    back = pair.read("B", 0, 8)
    pair.run(10_000)
    assert pair.status("B", back) == Status.DONE  # answers pass
    assert pair.b.buffer.used == CONFIG.credit_request * CONFIG.credit_size
    assert pair.a.pairs.get(0).channel.credit_senders[0].available == 0
    assert not pair.a.pairs.get(0).channel.sender.outstanding  # acknowledged though nothing was taken
    assert not pair.done["A"]
    pair.b.is_stalled = False
    pair.finish()
    assert {pair.status("A", number) for number in writes} == {Status.DONE}
    assert count(pair.a, Traffic.RESENT, Traffic.TIMEOUTS) == 0


def test_commands_can_time_out():
    pair = Pair(timeout={"A": 5000, "B": 0})
    pair.open()
    pair.b.is_stalled = True
    number, atomics = pair.read("A", 0, 8), [pair.add("A", 0, 1) for _ in range(16)]
    pair.run(6000)
    assert pair.status("A", number) == Status.TIMED_OUT
    late = pair.add("A", 0, 1)
    pair.b.is_stalled = False
    pair.run(900)
    assert pair.b.memory.read(0, 1) == b"\x10"  # slots belong to answers, not to commands
    pair.finish()
    assert pair.status("A", late) == Status.DONE
    assert {pair.status("A", number) for number in atomics} == {Status.TIMED_OUT}


def test_counts_that_begin_before_their_end():
    pair = Pair(first_seq=(1 << 24) - 3, first_credit=(1 << 20) - 3, epochs={0: 254, 1: 255})
    pair.open()
    for _ in range(20):
        numbers = [pair.add(name, 0, 1) for name in "AB"] + [pair.write("A", 8, bytes(256))]
        pair.finish()
    assert pair.status("A", numbers[2]) == Status.DONE
    assert pair.a.memory.read(0, 1) == pair.b.memory.read(0, 1) == b"\x14"


def test_several_queue_pairs_take_turns():
    pair = Pair(config=dataclasses.replace(CONFIG, tags=256))
    for qp in range(4):
        pair.open(qp)
    for qp in range(4):
        for number in range(28):
            pair.write("A", 0x1000 * qp + 8 * number, bytes(256), qp)
    order = [Frame.decode(data).header.src_qp for data in pair.a.transmit(pair.now)]  # two frames from each
    assert sorted(order[:4]) == [0, 1, 2, 3]
    assert order[4:] == order[:4]


def test_requests_wait_while_their_answers_cannot_be_sent(pair):
    for number in range(60):
        pair.read("A", 256 * number, 256)
    (frame,) = pair.a.transmit(pair.now)
    pair.b.receive(frame, pair.now)
    assert pair.b.responder.counters[Outcome.READ] == 15  # answers of 272 bytes, until 4064 are full
    assert pair.b.buffer.used == 2 * 512
    assert len(pair.b.transmit(pair.now, 1)) == 1
    assert pair.b.responder.counters[Outcome.READ] == 29  # 14 of them went out
    pair.finish()
    assert len(pair.done["A"]) == 60


def kinds(frames):
    headers = [Frame.decode(data).header for data in frames]
    return [(Kind(header.kind).name, header.traffic_class, header.seq) for header in headers]


def test_what_is_sent_first(pair):
    """Control, what is urgent, what is sent again, responses, requests."""
    pair.open(2)
    for number in (0, 1):
        pair.write("A", number, b"x", 0)
        (frame,) = pair.a.transmit(pair.now)
        pair.b.receive(frame, pair.now) if number else None  # the first is lost: an acknowledgement is urgent
    pair.read("A", 0, 8, 2)
    pair.b.receive(*pair.a.transmit(pair.now), pair.now)  # something to answer
    pair.write("B", 0, b"y", 3)
    pair.b.pairs.get(3).channel.sender._lose(pair.b.pairs.get(3).channel.sender.send(OUTGOING, pair.now))
    pair.b.connect(5, *pair.peer("B", 5), pair.now)
    frames = []
    while found := pair.b.transmit(pair.now, 1):
        frames += found
    assert kinds(frames) == [("CONTROL", 1, 0), ("ACK", 1, 0), ("DATA", 0, 0), ("DATA", 1, 1), ("DATA", 0, 2)]


def test_data_pays_for_an_acknowledgement_that_is_not_urgent(pair):
    pair.write("A", 0, b"x")
    (frame,) = pair.a.transmit(pair.now)
    pair.b.receive(frame, pair.now)
    assert kinds(pair.b.transmit(pair.now)) == [("DATA", 1, 0)]
    assert pair.b.transmit(pair.now + 300) == []
    pair.b.is_stalled = True
    pair.write("A", 0, b"x")
    (frame,) = pair.a.transmit(pair.now)
    pair.b.receive(frame, pair.now)
    assert pair.b.transmit(pair.now + 255) == []
    assert pair.b.deadline == pair.now + 256
    assert kinds(pair.b.transmit(pair.now + 256)) == [("ACK", 1, 1)]
