"""The responder's model, by cases written by hand."""

import pytest

from xoe.cam import Cam, Page, Window
from xoe.memory import Memory
from xoe.operation import Operation, split
from xoe.responder import Outcome, Responder
from xoe.wire import Opcode, OperationHeader, Rights, Status

NODE, READ_ONLY = 3, 4
ALL = Rights.READ | Rights.WRITE | Rights.ATOMIC


@pytest.fixture
def responder():
    windows = Cam(4)
    windows.write(0, Page(NODE, 0x10000, 16, Window(ALL)))
    windows.write(1, Page(READ_ONLY, 0x10000, 12, Window(Rights.READ)))
    return Responder(Memory(0x18000), windows)


def test_a_write_then_a_read(responder):
    data = bytes(range(1, 101))
    written = responder.execute(Operation(Opcode.WRITE, 7, 0x10FFD, 100, data), NODE)
    assert written == Operation(0x42, 7, 0, 100)
    assert responder.execute(Operation(Opcode.READ, 8, 0x10FFC, 102), NODE) == Operation(
        0x41, 8, 0, 102, b"\0" + data + b"\0"
    )
    assert responder.counters[Outcome.WRITE] == responder.counters[Outcome.READ] == 1


def test_an_add_in_little_endian(responder):
    responder.memory.write(0x10008, bytes.fromhex("0807060504030201"))
    answer = responder.execute(Operation(Opcode.ADD, 1, 0x10008, 8, bytes.fromhex("0100000000000010")), NODE)
    assert answer == Operation(0x50, 1, 0, 8, bytes.fromhex("0807060504030201"))
    assert responder.memory.read(0x10008, 8).hex() == "0907060504030211"


def test_four_bytes_leave_their_neighbours_alone(responder):
    responder.memory.write(0x10000, bytes.fromhex("ffffffffaabbccdd11223344"))
    answer = responder.execute(Operation(Opcode.ADD, 1, 0x10004, 4, bytes.fromhex("0200000099999999")), NODE)
    assert answer == Operation(0x50, 1, 0, 4, bytes.fromhex("aabbccdd00000000"))
    assert responder.memory.read(0x10000, 12).hex() == "ffffffffacbbccdd11223344"


def test_compare_swap_takes_what_to_compare_with_first(responder):
    operands = bytes([5]) + bytes(7) + bytes([9]) + bytes(7)
    responder.memory.write(0x10010, bytes([5]))
    responder.execute(Operation(Opcode.COMPARE_SWAP, 1, 0x10010, 8, operands), NODE)
    assert responder.memory.read(0x10010, 8) == bytes([9]) + bytes(7)


FAULTS = [
    (Operation(Opcode.WRITE, 1, 0x10000, 1, b"x", Status.MALFORMED), NODE, Outcome.MALFORMED, Status.MALFORMED),
    (Operation(Opcode.WRITE, 1, 0x10000, 0, b""), NODE, Outcome.MALFORMED, Status.MALFORMED),
    (Operation(Opcode.WRITE, 1, 0x10000, 257, bytes(257)), NODE, Outcome.MALFORMED, Status.MALFORMED),
    (Operation(Opcode.WRITE, 1, 0x10000, 9, bytes(8)), NODE, Outcome.MALFORMED, Status.MALFORMED),
    (Operation(Opcode.READ, 1, 0x10000, 8, bytes(8)), NODE, Outcome.MALFORMED, Status.MALFORMED),
    (Operation(Opcode.ADD, 1, 0x10000, 2, bytes(8)), NODE, Outcome.MALFORMED, Status.MALFORMED),
    (Operation(Opcode.COMPARE_SWAP, 1, 0x10000, 8, bytes(8)), NODE, Outcome.MALFORMED, Status.MALFORMED),
    (Operation(Opcode.FENCE, 1, 0, 1), NODE, Outcome.MALFORMED, Status.MALFORMED),
    (Operation(Opcode.FLOAT_ADD, 1, 0x10000, 4, bytes(8)), NODE, Outcome.UNSUPPORTED, Status.UNSUPPORTED),
    (Operation(0x81, 1, 0x10000, 4, bytes(80)), NODE, Outcome.UNSUPPORTED, Status.UNSUPPORTED),
    (Operation(Opcode.ADD, 1, 0x10004, 8, bytes(8)), NODE, Outcome.MISALIGNED, Status.MISALIGNED),
    (Operation(Opcode.ADD, 1, 0x10002, 4, bytes(8)), NODE, Outcome.MISALIGNED, Status.MISALIGNED),
    (Operation(Opcode.READ, 1, 0xFFFF, 1), NODE, Outcome.WINDOW_MISS, Status.OUT_OF_RANGE),
    (Operation(Opcode.READ, 1, 0x10000, 1), 9, Outcome.WINDOW_MISS, Status.OUT_OF_RANGE),
    (Operation(Opcode.READ, 1, 0x10FFF, 2), READ_ONLY, Outcome.WINDOW_CROSSED, Status.OUT_OF_RANGE),
    (Operation(Opcode.WRITE, 1, 0x10000, 1, b"x"), READ_ONLY, Outcome.PERMISSION, Status.PERMISSION),
    (Operation(Opcode.ADD, 1, 0x10000, 4, bytes(8)), READ_ONLY, Outcome.PERMISSION, Status.PERMISSION),
    (Operation(Opcode.READ, 1, 0x17FFF, 2), NODE, Outcome.MEMORY_ERROR, Status.OUT_OF_RANGE),
    (Operation(Opcode.WRITE, 1, 0x17FFF, 2, b"xy"), NODE, Outcome.MEMORY_ERROR, Status.OUT_OF_RANGE),
    (Operation(Opcode.ADD, 1, 0x18000, 8, bytes(8)), NODE, Outcome.MEMORY_ERROR, Status.OUT_OF_RANGE),
]


@pytest.mark.parametrize(("request_", "node", "outcome", "status"), FAULTS)
def test_a_fault_is_answered_counted_and_changes_nothing(responder, request_, node, outcome, status):
    answer = responder.execute(request_, node)
    assert answer == Operation(request_.opcode | 0x40, 1, 0, request_.length, b"", status)
    assert {found for found, count in responder.counters.items() if count} == {outcome}
    assert responder.memory.pages() == []


def test_a_fence_is_answered(responder):
    assert responder.execute(Operation(Opcode.FENCE, 5), NODE) == Operation(0x43, 5)


def test_a_response_is_ignored_and_counted(responder):
    assert responder.execute(Operation(0x42, 1, 0, 4), NODE) is None
    assert responder.counters[Outcome.NOT_A_REQUEST] == 1


def test_words_that_do_not_match_the_length_survive_the_frame(responder):
    payload = OperationHeader(opcode=Opcode.WRITE, words=2, tag=1, length=5, address=0x10000).pack() + bytes(16)
    (request_,), is_whole = split(payload)
    assert is_whole
    assert responder.execute(request_, NODE).status == Status.MALFORMED
