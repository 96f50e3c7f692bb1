"""The requester's model, by cases written by hand."""

import dataclasses

import pytest

from xoe.cam import Cam, Page, Translation
from xoe.command import Command, Completion, Request, traffic_class
from xoe.config import NicConfig
from xoe.operation import Operation
from xoe.parser import Route
from xoe.requester import Event, Requester
from xoe.wire import Opcode, Rights, Status, TrafficClass

MAC, NODE, QP = 0x020000000007, 7, 5
ALL = Rights.READ | Rights.WRITE | Rights.ATOMIC
READ = Command(Opcode.READ, 1, 2, 3, 0x10040, 100)
WRITE = dataclasses.replace(READ, opcode=Opcode.WRITE, data=bytes(range(100)))
ADD = dataclasses.replace(READ, opcode=Opcode.ADD, length=8, data=bytes(8))


def make(timeout=0, mtu=4096, rights=ALL, **config):
    cam = Cam(4)
    cam.write(0, Page(3, 0x10000, 12, Translation(0xABCDE000, MAC, NODE, QP, rights)))
    return Requester(NicConfig(**config), cam, mtu, timeout)


def test_a_read_and_its_data():
    requester = make()
    request = requester.submit(READ)
    assert request == Request(
        Operation(Opcode.READ, 64, 0xABCDE040, 100), Route(MAC, NODE, QP, 2, TrafficClass.REQUEST)
    )
    assert requester.in_flight == 1
    data = bytes(range(100, 200))
    assert requester.respond(Operation(0x41, 64, 0, 100, data)) == Completion(1, Opcode.READ, Status.DONE, data)
    assert requester.in_flight == 0
    assert not any(requester.counters.values())


def test_what_a_write_and_an_atomic_carry():
    requester = make()
    assert requester.submit(WRITE).operation.data == bytes(range(100))
    short = dataclasses.replace(WRITE, data=bytes(range(99)))  # as many beats as 100 bytes take
    assert requester.submit(short).operation.data == bytes(range(99)) + b"\0"
    request = requester.submit(dataclasses.replace(ADD, length=4, data=b"\1\2\3\4\5\6\7\x08"))
    assert request.operation.data == b"\1\2\3\4\5\6\7\x08"
    assert request.route.traffic_class == TrafficClass.ATOMIC
    swap = dataclasses.replace(ADD, opcode=Opcode.COMPARE_SWAP, data=bytes(range(16)))
    assert requester.submit(swap).operation.data == bytes(range(16))


def test_a_four_byte_atomic_returns_four_bytes():
    requester = make()
    tag = requester.submit(dataclasses.replace(ADD, length=4)).operation.tag
    answer = Operation(0x50, tag, 0, 4, b"\1\2\3\4\0\0\0\0")
    assert requester.respond(answer) == Completion(1, Opcode.ADD, Status.DONE, b"\1\2\3\4")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"opcode": Opcode.FLOAT_ADD}, Status.UNSUPPORTED),
        ({"opcode": 0x41}, Status.UNSUPPORTED),
        ({"opcode": 0}, Status.UNSUPPORTED),
        ({"opcode": Opcode.PROBE_SHARED, "length": 0, "qp": 4095}, Status.UNSUPPORTED),
        ({"length": 0}, Status.MALFORMED),
        ({"length": 257}, Status.MALFORMED),
        ({"qp": 16}, Status.MALFORMED),
        ({"data": bytes(9)}, Status.MALFORMED),
        ({"opcode": Opcode.FENCE, "length": 1}, Status.MALFORMED),
        ({"opcode": Opcode.WRITE, "data": bytes(96)}, Status.MALFORMED),
        ({"opcode": Opcode.WRITE, "data": bytes(105)}, Status.MALFORMED),
        ({"opcode": Opcode.ADD, "length": 2}, Status.MALFORMED),
        ({"opcode": Opcode.COMPARE_SWAP, "length": 8, "data": bytes(8)}, Status.MALFORMED),
        ({"opcode": Opcode.ADD, "length": 8, "address": 0x10044}, Status.MISALIGNED),
        ({"opcode": Opcode.ADD, "length": 4, "address": 0x2}, Status.MISALIGNED),
        ({"length": 209}, Status.OUT_OF_RANGE),
        ({"length": 209, "address": 0}, Status.OUT_OF_RANGE),
        ({"opcode": Opcode.WRITE, "length": 209, "data": bytes(209)}, Status.OUT_OF_RANGE),
        ({"address": 0xFFFF}, Status.TRANSLATION_FAULT),
        ({"address_space": 2}, Status.TRANSLATION_FAULT),
        ({"opcode": Opcode.FENCE, "length": 0, "address": 0}, Status.TRANSLATION_FAULT),
        ({"address": 0x10F9D}, Status.OUT_OF_RANGE),
    ],
)
def test_refusals(change, status):
    requester = make(mtu=256)  # 256 - 42 = 214, on the grid 208 bytes of data
    command = dataclasses.replace(READ, **change)
    assert requester.submit(command) == Completion(1, command.opcode, status)
    assert requester.counters[Event[status.name]] == sum(requester.counters.values()) == 1
    assert requester.in_flight == 0


@pytest.mark.parametrize(("command", "right"), [(READ, 1), (WRITE, 2), (ADD, 4)])
def test_rights(command, right):
    assert make(rights=right).submit(command).operation.opcode == command.opcode
    crossing = dataclasses.replace(command, address=0x10FF8 if command is ADD else 0x10FFF)
    refusal = make(rights=ALL - right).submit(crossing)
    assert refusal == Completion(1, command.opcode, Status.PERMISSION)


def test_a_fence_asks_for_no_right():
    fence = Command(Opcode.FENCE, 1, 0, 3, 0x10FFF, 0)
    assert make(rights=0).submit(fence).operation == Operation(Opcode.FENCE, 64, 0xABCDEFFF, 0)


@pytest.mark.parametrize(
    ("response", "status"),
    [
        ({"status": Status.PERMISSION, "data": b""}, Status.PERMISSION),
        ({"status": Status.PERMISSION}, Status.PERMISSION),
        ({"opcode": 0x42}, Status.MALFORMED),
        ({"status": 8}, Status.MALFORMED),
        ({"data": bytes(96)}, Status.MALFORMED),
        ({"data": bytes(105)}, Status.MALFORMED),
    ],
)
def test_responses_without_data_for_the_user(response, status):
    requester = make()
    requester.submit(READ)
    answer = dataclasses.replace(Operation(0x41, 64, 0, 100, bytes(100)), **response)
    assert requester.respond(answer) == Completion(1, Opcode.READ, status)
    is_bad = status == Status.MALFORMED
    assert requester.counters[Event.BAD_RESPONSE] == is_bad


def test_tags_run_out_and_come_back_in_another_generation():
    requester = make(tags=4)
    tags = [requester.submit(READ).operation.tag for _ in range(4)]
    assert tags == [4, 5, 6, 7]
    assert requester.submit(READ) is None
    assert requester.submit(dataclasses.replace(READ, length=0)).status == Status.MALFORMED
    for tag in (6, 4):
        requester.respond(Operation(0x41, tag, 0, 100, bytes(100)))
    assert [requester.submit(READ).operation.tag for _ in range(2)] == [10, 8]
    assert requester.respond(Operation(0x41, 6, 0, 100, bytes(100))) is None
    assert requester.counters[Event.STRAY] == 1


def test_generations_wrap():
    requester = make(tags=1024)
    for generation in [*range(1, 64), 0, 1]:
        for index in range(1024):
            tag = requester.submit(READ).operation.tag
            assert tag == generation * 1024 + index
            assert requester.respond(Operation(0x41, tag, 0, 100, bytes(100))) is not None


def test_time_runs_out():
    requester = make(timeout=10)
    requester.submit(READ)
    assert requester.step(4) == []
    requester.submit(dataclasses.replace(READ, id=2))
    assert requester.step(5) == []
    assert requester.step() == [Completion(1, Opcode.READ, Status.TIMED_OUT)]
    assert requester.respond(Operation(0x41, 64, 0, 100, bytes(100))) is None
    assert requester.respond(Operation(0x41, 65, 0, 100, bytes(100))).status == Status.DONE
    assert requester.step(100) == []
    assert requester.counters[Event.TIMED_OUT] == requester.counters[Event.STRAY] == 1


def test_time_never_runs_out_without_a_time_out():
    requester = make()
    requester.submit(READ)
    assert requester.step(1 << 40) == []


def test_the_next_deadline():
    assert make().deadline is None
    requester = make(timeout=10)
    assert requester.deadline is None
    requester.submit(READ)
    requester.step(4)
    requester.submit(READ)
    assert requester.deadline == 10
    requester.step(6)
    assert requester.deadline == 14


def test_a_command_without_a_connection():
    requester, asked = make(), []
    refusal = requester.submit(READ, lambda route: bool(asked.append(route)))
    assert refusal == Completion(1, Opcode.READ, Status.NOT_CONNECTED)
    assert asked == [Route(MAC, NODE, QP, 2, TrafficClass.REQUEST)]
    assert (
        requester.submit(dataclasses.replace(READ, address=0), lambda route: False).status == Status.TRANSLATION_FAULT
    )
    assert requester.submit(READ, lambda route: True).operation.tag == 64


def test_all_requests_of_a_queue_pair_are_given_up():
    requester = make()
    for number, qp in enumerate((2, 3, 2)):
        requester.submit(dataclasses.replace(READ, id=number, qp=qp))
    assert requester.abandon(2) == [Completion(number, Opcode.READ, Status.CONNECTION_LOST) for number in (0, 2)]
    assert requester.abandon(2) == []
    assert requester.in_flight == 1
    assert requester.respond(Operation(0x41, 64, 0, 100, bytes(100))) is None
    assert requester.respond(Operation(0x41, 65, 0, 100, bytes(100))).id == 1


def test_classes():
    assert traffic_class(Opcode.FENCE) == TrafficClass.REQUEST
    assert traffic_class(Opcode.COMPARE_SWAP) == TrafficClass.ATOMIC
    assert traffic_class(Opcode.PROBE_INVALIDATE) == TrafficClass.PROBE
