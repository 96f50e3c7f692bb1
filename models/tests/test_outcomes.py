"""Outcomes sees what is wrong by completions and memory alone."""

import pytest

from xoe.command import Command, Completion
from xoe.outcomes import OutcomeError, Outcomes
from xoe.stimulus import counter_address, slot_address
from xoe.wire import Opcode, Status

COUNTER, SLOT = counter_address(1, 2), slot_address(1, 3)
LOST = [Status.CONNECTION_LOST, Status.TIMED_OUT]


def number(value):
    return value.to_bytes(8, "little")


def add(outcomes, identity, value):
    outcomes.submit(Command(Opcode.ADD, identity, 1, 1, COUNTER, 8, number(value)))


def done(outcomes, identity, opcode=Opcode.ADD, data=b""):
    outcomes.completed(Completion(identity, opcode, Status.DONE, data))


def judge(outcomes, counter, slot=bytes(256)):
    outcomes.judge(lambda address, size: (number(counter) if address == COUNTER else slot)[:size])


def test_additions_in_order_of_their_commands_not_of_their_completions():
    outcomes = Outcomes()
    add(outcomes, 1, 5)
    add(outcomes, 2, 7)
    done(outcomes, 2, data=number(5))
    done(outcomes, 1, data=number(0))
    judge(outcomes, 12)
    with pytest.raises(OutcomeError, match="memory holds 0x11 at 0x7010, not one of 0xc"):
        judge(outcomes, 17)


@pytest.mark.parametrize("status", LOST)
def test_a_lost_addition_was_carried_out_once_or_not(status):
    for found in (100, 105):
        outcomes = Outcomes()
        add(outcomes, 0, 100)
        add(outcomes, 1, 5)
        add(outcomes, 2, 7)
        done(outcomes, 0, data=number(0))
        outcomes.completed(Completion(1, Opcode.ADD, status))
        done(outcomes, 2, data=number(found))
        judge(outcomes, found + 7)
    outcomes = Outcomes()
    add(outcomes, 1, 5)
    add(outcomes, 2, 7)
    outcomes.completed(Completion(1, Opcode.ADD, status))
    with pytest.raises(OutcomeError, match="returned 0xa at 0x7010, not one of 0x0, 0x5"):
        done(outcomes, 2, data=number(10))  # twice


def test_what_a_reset_takes_away_is_lost():
    outcomes = Outcomes()
    add(outcomes, 1, 5)
    assert outcomes.under_way == 1
    assert outcomes.forget() == outcomes.forgotten == 1
    judge(outcomes, 0)
    judge(outcomes, 0)
    outcomes = Outcomes()
    add(outcomes, 1, 5)
    outcomes.forget()
    judge(outcomes, 5)
    with pytest.raises(OutcomeError):
        judge(outcomes, 0)  # it is known by now


def test_a_refused_one_was_not_carried_out():
    outcomes = Outcomes()
    add(outcomes, 1, 5)
    outcomes.completed(Completion(1, Opcode.ADD, Status.NOT_CONNECTED))
    with pytest.raises(OutcomeError):
        judge(outcomes, 5)


def test_a_write_that_is_lost_may_be_there_in_part():
    outcomes = Outcomes()
    outcomes.submit(Command(Opcode.WRITE, 1, 1, 1, SLOT + 2, 3, b"abc"))
    done(outcomes, 1, Opcode.WRITE)
    outcomes.submit(Command(Opcode.WRITE, 2, 1, 1, SLOT + 1, 3, b"xyz"))
    outcomes.forget()
    outcomes.submit(Command(Opcode.READ, 3, 1, 1, SLOT, 6))
    done(outcomes, 3, Opcode.READ, b"\0xybc\0")
    with pytest.raises(OutcomeError, match="memory holds 0x61 at 0x4302, not one of 0x79"):
        judge(outcomes, 0, b"\0xabc\0".ljust(256, b"\0"))
    judge(outcomes, 0, b"\0xybc\0".ljust(256, b"\0"))


def test_completions_that_must_not_be():
    outcomes = Outcomes()
    with pytest.raises(OutcomeError, match="completes nothing that is under way"):
        done(outcomes, 1)
    add(outcomes, 1, 5)
    with pytest.raises(OutcomeError, match="1 commands did not complete"):
        judge(outcomes, 0)
    with pytest.raises(OutcomeError, match="ended as"):
        outcomes.completed(Completion(1, Opcode.ADD, Status.MALFORMED))


def test_a_fence_touches_nothing():
    outcomes = Outcomes()
    outcomes.submit(Command(Opcode.FENCE, 1, 1, 1, SLOT))
    done(outcomes, 1, Opcode.FENCE)
    outcomes.judge(lambda address, size: b"?" * size)
    assert outcomes.counts == {Status.DONE: 1}
