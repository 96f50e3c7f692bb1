"""What an endpoint refuses: commands, connections, and frames of a peer that keeps to no rule."""

import dataclasses

import pytest

from endpoints import MACS, NODES, Pair, settings
from xoe.channel import Outgoing
from xoe.command import Command
from xoe.config import ConfigError, NicConfig
from xoe.endpoint import Endpoint, EndpointError
from xoe.framer import Settings, build_frame
from xoe.memory import Memory
from xoe.operation import Operation
from xoe.parser import Route
from xoe.traffic import Traffic
from xoe.transport import TransportSettings
from xoe.wire import AckBody, ControlBody, Kind, Opcode, Status, TrafficClass

OUTGOING = Outgoing(TrafficClass.REQUEST, (Operation(Opcode.READ, 1, 2, 3),), 16)


@pytest.fixture
def pair():
    pair = Pair()
    pair.open()
    return pair


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


def test_what_cannot_be_connected(pair):
    with pytest.raises(EndpointError, match="queue pair 0 is open: close it first"):
        pair.a.connect(0, 1, 1, 1, 0)
    with pytest.raises(EndpointError, match="queue pair 0 is open"):
        pair.a.listen(0, 1, 1, 1)
    for arguments, message in (
        ((16, 1, 1, 1), "qp must be an integer from 0 to 15, not 16"),
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


def test_settings_are_checked():
    for change, message in (
        ({"sync_interval": 0}, "sync_interval must be an integer from 1 to 4194303, not 0"),
        ({"silence_timeout": 3 * 65536}, "silence_timeout must be an integer from 262144 to 16777215, not 196608"),
        ({"retries": 16}, "retries must be an integer from 0 to 15, not 16"),
    ):
        with pytest.raises(ConfigError, match=message):
            settings(**change)


def test_a_command_beyond_the_queue_pairs(pair):
    pair.a.submit(Command(Opcode.READ, 0, 16, 0, 0, 8))
    assert pair.a.completions[0].status == Status.MALFORMED
