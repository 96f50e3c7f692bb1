"""The endpoint's interface, and what it does without any loss."""

import dataclasses

import pytest

from endpoints import CONFIG, MACS, NODES, Pair, settings
from xoe.channel import Outgoing
from xoe.command import Command
from xoe.config import ConfigError, NicConfig
from xoe.connection import State
from xoe.endpoint import Endpoint, EndpointError
from xoe.frame import Frame
from xoe.framer import Settings, build_frame
from xoe.memory import Memory
from xoe.operation import Operation
from xoe.parser import Route
from xoe.traffic import Traffic
from xoe.transport import TransportSettings
from xoe.wire import AckBody, ControlBody, Kind, Message, Opcode, Status, TrafficClass

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


def test_faults_are_answered(pair):
    pair.b.windows.write(0, None)
    denied = pair.write("A", 0, b"x")
    assert not pair.a.translations.write(7, None)
    missing = pair.submit("A", Opcode.READ, 0x100000, 8)
    malformed = pair.submit("A", Opcode.READ, 0, 0)
    pair.finish()
    assert pair.status("A", denied) == Status.OUT_OF_RANGE
    assert pair.status("A", missing) == Status.TRANSLATION_FAULT
    assert pair.status("A", malformed) == Status.MALFORMED


def test_commands_without_a_connection():
    pair = Pair()
    first = pair.read("A", 0, 8)
    pair.listen("A", 0)
    second = pair.read("A", 0, 8)
    pair.connect("A", 0)
    third = pair.read("A", 0, 8)
    pair.step(0)
    assert [pair.status("A", number) for number in (first, second, third)] == [Status.NOT_CONNECTED] * 3
    assert pair.a.counters[Traffic.NOT_CONNECTED] == 3


@pytest.mark.parametrize("change", [{"mac": 1}, {"node": 1}, {"qp": 5}])
def test_a_translation_to_somebody_else_than_the_peer(pair, change):
    page = pair.a.translations.pages[0]
    pair.a.translations.write(0, dataclasses.replace(page, payload=dataclasses.replace(page.payload, **change)))
    number = pair.read("A", 0, 8)
    pair.step(pair.now)
    assert pair.status("A", number) == Status.NOT_CONNECTED


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


def test_what_cannot_be_connected(pair):
    with pytest.raises(EndpointError, match="queue pair 0 is open: close it first"):
        pair.a.connect(0, 1, 1, 1, 0)
    with pytest.raises(EndpointError, match="queue pair 0 is open"):
        pair.a.listen(0, 1, 1, 1)
    for arguments, message in (
        ((8, 1, 1, 1), "qp must be an integer from 0 to 7, not 8"),
        ((2, 1 << 48, 1, 1), "mac must be an integer from 0 to 281474976710655"),
        ((2, 1, 65536, 1), "node must be an integer from 0 to 65535, not 65536"),
        ((2, 1, 1, 4096), "remote_qp must be an integer from 0 to 4095, not 4096"),
    ):
        with pytest.raises(ConfigError, match=message):
            pair.a.connect(*arguments, 0)
    pair.a.close(5, 0)  # nothing was there


def test_arguments_are_checked():
    for change, message in (
        ({"first_seq": 1 << 24}, "first_seq must be an integer from 0 to 16777215, not 16777216"),
        ({"first_credit": -1}, "first_credit must be an integer from 0 to 1048575, not -1"),
        ({"settings": Settings(1, 1, mtu=9000)}, "settings.mtu must be an integer from 256 to 4096, not 9000"),
        ({"settings": Settings(1, 1, mtu=255)}, "settings.mtu must be an integer from 256 to 4096, not 255"),
    ):
        arguments = {"settings": Settings(1, 1, mtu=4096), **change}
        with pytest.raises(ConfigError, match=message):
            Endpoint(NicConfig(), transport=TransportSettings(), memory=Memory(), **arguments)


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


def frame_to_a(route=None, operations=(), body=b"", **fields):
    route = route or Route(MACS["A"], NODES["A"], 0, 1, TrafficClass.REQUEST)
    return build_frame(Settings(MACS["B"], NODES["B"]), route, operations, body, **fields)


def test_frames_that_are_not_taken(pair):
    channel = pair.a.pairs.get(0).channel
    epochs = {"epoch": channel.offer.epoch, "src_epoch": channel.peer.epoch}
    route = Route(MACS["A"], NODES["A"], 0, 1, TrafficClass.REQUEST)
    strange = build_frame(Settings(MACS["B"] + 1, NODES["B"]), route, **epochs)
    node = build_frame(Settings(MACS["B"], NODES["B"] + 1), route, **epochs)
    qp = frame_to_a(dataclasses.replace(route, local_qp=2), **epochs)
    for event, data in (
        (Traffic.STRANGER, strange),
        (Traffic.STRANGER, node),
        (Traffic.STRANGER, qp),
        (Traffic.NO_CONNECTION, frame_to_a(dataclasses.replace(route, remote_qp=3), **epochs)),
        (Traffic.OTHER_EPOCH, frame_to_a(**{**epochs, "epoch": epochs["epoch"] - 1})),
        (Traffic.OTHER_EPOCH, frame_to_a(**{**epochs, "src_epoch": epochs["src_epoch"] + 1})),
        (Traffic.BAD_BODY, frame_to_a(body=bytes(AckBody.SIZE - 8), kind=Kind.ACK, **epochs)),
        (Traffic.BAD_BODY, frame_to_a(body=bytes(ControlBody.SIZE - 8), kind=Kind.CONTROL)),
        (Traffic.BAD_OFFER, frame_to_a(body=ControlBody(epoch=1).pack(), kind=Kind.CONTROL)),
        (Traffic.BAD_CLASS, frame_to_a(dataclasses.replace(route, traffic_class=3), **epochs)),
        (Traffic.OUTSIDE, frame_to_a(seq=64, **epochs)),
        (Traffic.DUPLICATE, frame_to_a(seq=(1 << 24) - 1, **epochs)),
    ):
        before = pair.a.counters
        pair.a.receive(data, pair.now)
        changed = {key: value - before[key] for key, value in pair.a.counters.items() if value != before[key]}
        assert changed == {event: 1}, event
    number = pair.add("A", 0, 1)
    pair.finish()
    assert pair.status("A", number) == Status.DONE


def test_more_than_was_granted_is_refused(pair):
    pair.a.is_stalled = True
    channel = pair.a.pairs.get(0).channel
    epochs = {"epoch": channel.offer.epoch, "src_epoch": channel.peer.epoch}
    large = tuple(Operation(Opcode.WRITE, 0, 0, 256, bytes(256)) for _ in range(14))
    for seq in range(3):
        pair.a.receive(frame_to_a(None, large, seq=seq, **epochs), pair.now)
    assert pair.a.counters[Traffic.NO_ROOM] == 1
    assert channel.receiver.expected == 2
    assert pair.a.buffer.used == 16 * 512
    assert pair.a.buffer.high == 24 * 512 <= pair.a.config.receive_buffer


def test_requests_and_responses_where_they_do_not_belong(pair):
    channel = pair.a.pairs.get(0).channel
    epochs = {"epoch": channel.offer.epoch, "src_epoch": channel.peer.epoch}
    answers = Route(MACS["A"], NODES["A"], 0, 1, TrafficClass.RESPONSE)
    write = Operation(Opcode.WRITE, 0, 0, 8, bytes([1] * 8))
    pair.a.receive(frame_to_a(answers, (write,), seq=0, **epochs), pair.now)
    assert pair.a.counters[Traffic.MISPLACED] == 1
    pair.a.receive(frame_to_a(None, (Operation(0x42, 0, 0, 8), write), seq=1, **epochs), pair.now)
    assert pair.a.memory.read(0, 8) == bytes([1] * 8)
    assert pair.a.buffer.used == 0


def test_more_atomics_than_slots_wait(pair):
    channel = pair.a.pairs.get(0).channel
    epochs = {"epoch": channel.offer.epoch, "src_epoch": channel.peer.epoch}
    route = Route(MACS["A"], NODES["A"], 0, 1, TrafficClass.ATOMIC)
    adds = tuple(Operation(Opcode.ADD, tag, 0, 8, (1).to_bytes(8, "little")) for tag in range(17))
    pair.a.receive(frame_to_a(route, adds, seq=0, **epochs), pair.now)
    assert pair.a.memory.read(0, 1) == b"\x10"
    assert pair.a.counters[Traffic.SLOT_WAITS] == 1
    assert pair.a.buffer.used == 512
    pair.run(10_000)
    assert pair.a.memory.read(0, 1) == b"\x11"
    assert pair.a.buffer.used == 0


def test_several_queue_pairs_take_turns():
    pair = Pair(rate=8)
    for qp in range(4):
        pair.open(qp)
    for qp in (0, 1, 2, 3):
        for number in range(14):
            pair.write("A", 0x1000 * qp + 8 * number, bytes(256), qp)
    order = []
    receive = pair.b.receive

    def watched(data, now):
        parsed = receive(data, now)
        order.extend([parsed.route.local_qp] if parsed.header.kind == Kind.DATA else [])
        return parsed

    pair.b.receive = watched
    pair.finish()
    assert sorted(order[:4]) == [1, 2, 3, 4]


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


def test_settings_are_checked():
    for change, message in (
        ({"sync_interval": 0}, "sync_interval must be an integer from 1 to 4194303, not 0"),
        ({"silence_timeout": 3 * 65536}, "silence_timeout must be an integer from 262144 to 16777215, not 196608"),
        ({"retries": 16}, "retries must be an integer from 0 to 15, not 16"),
    ):
        with pytest.raises(ConfigError, match=message):
            settings(**change)


def test_a_command_beyond_the_queue_pairs(pair):
    pair.a.submit(Command(Opcode.READ, 0, 8, 0, 0, 8))
    assert pair.a.completions[0].status == Status.MALFORMED
