"""Credits, slots, and when an acknowledgement is due."""

import dataclasses

import pytest

from xoe.acknowledger import Acknowledger
from xoe.config import CREDIT_SIZES, ConfigError, credits_needed
from xoe.credit import CreditReceiver, CreditSender
from xoe.slots import AtomicSlots
from xoe.transport import TransportSettings

COUNTS = 1 << 20
STARTS = [0, COUNTS - 3]
SETTINGS = TransportSettings(ack_every=4, ack_delay=50, sync_interval=1000, silence_timeout=4000)


def test_what_a_frame_takes():
    for size in CREDIT_SIZES:
        assert credits_needed(0, size) == 1
        for count in (1, 2, 7):
            if size * count >= 40:
                assert credits_needed(size * count - 32, size) == count
                assert credits_needed(size * count - 24, size) == count + 1
    assert credits_needed(8, 32) == 2


@pytest.mark.parametrize("first", STARTS)
def test_what_is_sent_and_freed(first):
    sender, receiver = CreditSender(8, first), CreditReceiver(first)
    for _ in range(20):
        assert sender.available == 8
        sender.consume(5)
        sender.consume(3)
        assert (sender.available, sender.in_use) == (0, 8)
        receiver.accept(5)
        receiver.accept(3)
        receiver.free(5)
        assert receiver.held == 3
        assert sender.update(receiver.freed)
        assert sender.available == 5
        receiver.free(3)
        assert sender.update(receiver.freed)
        assert sender.consumed == sender.freed == receiver.freed == receiver.consumed


@pytest.mark.parametrize("first", STARTS)
def test_updates_lost_late_and_repeated(first):
    sender = CreditSender(8, first)
    sender.consume(8)
    told = [(first + freed) % COUNTS for freed in range(10)]
    assert sender.update(told[4])  # those before it are lost
    assert not sender.update(told[4])
    for old in (told[0], told[3], (first - 1) % COUNTS, (first + (1 << 19)) % COUNTS):
        assert not sender.update(old)
    assert not sender.update(told[9])  # more than was consumed
    assert sender.available == 4
    assert sender.update(told[8])
    assert sender.available == 8
    assert not sender.update(told[8])


def test_no_update_before_anything_was_sent():
    sender = CreditSender(8)
    assert not sender.update(0)
    assert not sender.update(1)
    assert sender.available == 8


@pytest.mark.parametrize("first", STARTS)
def test_counts_that_differ_are_reconciled(first):
    sender, receiver = CreditSender(8, first), CreditReceiver(first)
    sender.consume(6)
    receiver.accept(4)
    receiver.free(4)
    assert receiver.reconcile(sender.consumed) == 2
    assert (receiver.held, receiver.reconcile(sender.consumed)) == (0, 0)
    assert sender.update(receiver.freed)
    assert sender.available == 8
    receiver.accept(3)  # the other way round: more than the sender knows of
    receiver.free(3)
    assert not sender.update(receiver.freed)
    assert receiver.reconcile(sender.consumed) == COUNTS - 3
    sender.consume(2)
    receiver.accept(2)
    receiver.free(2)
    assert sender.update(receiver.freed)
    assert sender.available == 8


def test_arguments_are_checked():
    for limit, first in ((-1, 0), (4096, 0), (8, -1), (8, COUNTS)):
        with pytest.raises(ConfigError):
            CreditSender(limit, first)
    with pytest.raises(ConfigError):
        CreditReceiver(COUNTS)
    for slots in (0, 256):
        with pytest.raises(ConfigError):
            AtomicSlots(slots)


@pytest.mark.parametrize("slots", [1, 2, 255])
def test_slots(slots):
    atomics = AtomicSlots(slots)
    assert all(atomics.take() for _ in range(slots))
    assert not atomics.take()
    assert atomics.used == slots
    atomics.confirm(1)
    assert atomics.take()
    assert not atomics.take()
    atomics.confirm(slots)
    with pytest.raises(ValueError, match="1 results confirmed, but there are 0"):
        atomics.confirm(1)


def make(**changes):
    return Acknowledger(dataclasses.replace(SETTINGS, **changes), (16, 8, 4), 100)


def test_nothing_is_owed():
    assert make().deadline == 1100


@pytest.mark.parametrize("every", [1, 2, 4, 64])
def test_so_many_frames_are_acknowledged_at_once(every):
    acknowledger = make(ack_every=every)
    for count in range(1, every + 1):
        acknowledger.take(200 + count)
        assert acknowledger.is_urgent == (count == every)
        assert acknowledger.deadline == (201 if count == every else 251)
    acknowledger.pay(300)
    assert (acknowledger.is_urgent, acknowledger.deadline) == (False, 1300)


def test_one_frame_waits():
    acknowledger = make()
    acknowledger.take(200)
    acknowledger.take(240)
    assert acknowledger.deadline == 250
    acknowledger.pay_with_data(0)
    assert acknowledger.deadline == 1100
    acknowledger.take(1080)
    assert acknowledger.deadline == 1100  # the sync comes first


def test_what_is_urgent_is_not_paid_by_data():
    acknowledger = make()
    acknowledger.take(200, urgent=True)
    acknowledger.free(200, 0, 1)
    acknowledger.pay_with_data(0)
    assert acknowledger.is_urgent
    acknowledger.pay(210)
    assert acknowledger.deadline == 1210


@pytest.mark.parametrize(("traffic_class", "quarter"), [(0, 4), (1, 2), (2, 1)])
def test_a_quarter_of_the_credits_is_told_at_once(traffic_class, quarter):
    acknowledger = make()
    for count in range(1, quarter + 1):
        acknowledger.free(200, traffic_class, 1)
        assert acknowledger.is_urgent == (count == quarter)
    acknowledger.pay(200)
    acknowledger.free(200, traffic_class, quarter)
    assert acknowledger.is_urgent


def test_data_pays_for_the_credits_that_it_tells_and_no_others():
    acknowledger = make()
    acknowledger.take(200)
    acknowledger.free(210, 0, 3)
    acknowledger.free(220, 1, 1)
    acknowledger.pay_with_data(0)
    assert acknowledger.deadline == 250
    acknowledger.free(230, 0, 1)
    assert not acknowledger.is_urgent
    acknowledger.pay_with_data(1)
    acknowledger.pay_with_data(2)
    assert acknowledger.deadline == 250
    acknowledger.pay_with_data(0)
    assert acknowledger.deadline == 1100


def test_freed_credits_are_no_frames():
    acknowledger = make(ack_every=2)
    acknowledger.take(200)
    acknowledger.free(200, 0, 1)
    assert not acknowledger.is_urgent
