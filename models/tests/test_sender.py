"""The sending end: window, loss by order, probe and time-outs, with PSNs that pass their end."""

import dataclasses

import pytest

from xoe.config import ConfigError
from xoe.cyclic import after
from xoe.sender import Sender
from xoe.transport import TransportSettings

SEQS = 1 << 24
STARTS = [0, SEQS - 3]
SETTINGS = TransportSettings(resend_timeout=1000, probe_timeout=300, retries=3, reorder=3)


def make(window=8, first=0, **changes):
    return Sender(window, dataclasses.replace(SETTINGS, **changes), first)


def send(sender, count, now=0):
    """Send frames that are their own numbers, counted from the first that the sender ever sent."""
    return [sender.send(index, now) for index in range(count)]


def resends(sender, now):
    found = []
    while (entry := sender.resend(now)) is not None:
        found.append(entry[1])
    return found


def seq(first, steps):
    return after(first, steps, 24)


def bits(*numbers, ack):
    """SACK bits for frames, counted from the first, after a cumulative ``ack`` counted likewise."""
    return sum(1 << number - ack - 1 for number in numbers)


@pytest.mark.parametrize("first", STARTS)
@pytest.mark.parametrize("window", [1, 2, 8, 127, 128])
def test_the_window(first, window):
    sender = make(window, first)
    assert sender.room == window
    assert send(sender, window) == [seq(first, number) for number in range(window)]
    assert sender.room == 0
    assert sender.acknowledge(seq(first, 1), 0, 5) == [0]
    assert sender.room == 1
    assert sender.send("next", 5) == seq(first, window)
    assert sender.room == 0
    assert sender.acknowledge(seq(first, window + 1), 0, 9) == [*range(1, window), "next"]
    assert sender.room == window
    assert sender.outstanding == []


def test_selective_acknowledgements_do_not_open_the_window():
    sender = make(4)
    send(sender, 4)
    assert sender.acknowledge(0, bits(2, 3, ack=0), 5) == [2, 3]
    assert sender.room == 0
    assert sender.outstanding == [0, 1]


@pytest.mark.parametrize("first", STARTS)
def test_acknowledgements_that_say_nothing(first):
    sender = make(8, first)
    send(sender, 5)
    sender.acknowledge(seq(first, 3), 0, 1)
    for ack in (0, 1, 2, 6, 7, 1 << 23, -1, 3 - (1 << 23)):
        assert sender.acknowledge(seq(first, ack), (1 << 64) - 1, 1) == []
    assert sender.acks_refused == 8
    assert sender.outstanding == [seq(first, 3), seq(first, 4)]
    assert sender.acknowledge(seq(first, 3), 0, 1) == []
    assert sender.acks_refused == 8  # the same again is not refused


def test_acknowledgements_before_anything_was_sent():
    sender = make()
    assert sender.acknowledge(0, (1 << 127) - 1, 0) == []
    assert sender.acks_refused == 0
    assert sender.acknowledge(1, 0, 0) == sender.acknowledge(SEQS - 1, 0, 0) == []
    assert sender.acks_refused == 2
    assert sender.deadline is None


def test_bits_of_frames_never_sent_are_ignored():
    sender = make()
    send(sender, 3)
    assert sender.acknowledge(0, (1 << 127) - 1, 0) == [1, 2]
    assert sender.acknowledge(3, (1 << 127) - 1, 0) == [0]
    assert sender.send("next", 0) == 3
    assert sender.outstanding == [3]


@pytest.mark.parametrize("first", STARTS)
def test_the_bit_of_the_last_frame_in_the_largest_window(first):
    sender = make(128, first)
    send(sender, 128)
    assert sender.acknowledge(first, 1 << 126, 9) == [127]
    assert sender.acknowledge(first, 1, 9) == [1]


@pytest.mark.parametrize("reorder", [0, 1, 3, 63])
def test_loss_by_order(reorder):
    """A frame is lost when one that was sent more than ``reorder`` frames later has arrived, and not before."""
    sender = make(128, reorder=reorder)
    send(sender, 100)
    sender.acknowledge(0, bits(reorder, ack=0) if reorder else 0, 50)
    assert resends(sender, 50) == []
    sender.acknowledge(0, bits(reorder + 1, ack=0), 50)
    assert resends(sender, 50) == [0]
    sender.acknowledge(0, bits(reorder + 4, ack=0), 60)
    assert resends(sender, 60) == [number for number in (1, 2, 3) if number not in (reorder, reorder + 1)]


@pytest.mark.parametrize("first", STARTS)
def test_a_copy_that_is_lost_is_found_as_the_first_one_was(first):
    sender = make(8, first)
    send(sender, 5)
    sender.acknowledge(first, bits(4, ack=0), 50)
    assert resends(sender, 50) == [0]  # order 5
    for number in range(5, 8):
        sender.send(number, 51)  # orders 6 to 8
    sender.acknowledge(seq(first, 0), bits(4, 5, 6, 7, ack=0), 101)
    assert resends(sender, 101) == [1, 2, 3]  # the copy of 0 is only three orders behind; these are more
    sender.acknowledge(seq(first, 0), bits(1, 4, 5, 6, 7, ack=0), 151)
    assert resends(sender, 151) == [0]  # a copy of 1 arrived, order 9, four behind that of 0
    assert sender.resent == 5


@pytest.mark.parametrize(("time", "lost"), [(199, []), (200, [2])])
def test_an_early_acknowledgement_is_of_the_first_copy(time, lost):
    """RFC 8985, 6.2: sooner than the shortest round trip, and so it says nothing about the copy."""
    sender = make(16, reorder=0)
    send(sender, 2)
    sender.acknowledge(0, bits(1, ack=0), 100)
    assert sender.rtt_min == 100
    sender.send(2, 100)  # order 2
    assert resends(sender, 100) == [0]  # order 3
    sender.acknowledge(1, 0, time)
    assert resends(sender, time) == lost
    assert sender.rtt_min == 100


def test_a_late_acknowledgement_is_of_the_copy():
    sender = make(16, reorder=0)
    for number in range(3):
        sender.send(number, 0)
    sender.acknowledge(0, bits(1, ack=0), 100)
    assert resends(sender, 100) == [0]  # order 3
    sender.acknowledge(1, 0, 200)
    assert resends(sender, 200) == [2]  # order 2, before the copy


def test_a_frame_that_is_acknowledged_while_it_waits_is_not_sent_again():
    sender = make()
    send(sender, 6)
    sender.acknowledge(0, bits(5, ack=0), 50)
    assert sender.acknowledge(1, bits(5, ack=1), 51) == [0]
    assert resends(sender, 52) == [1]
    assert sender.resent == 1


def test_the_probe_sends_the_last_frame_once():
    sender = make()
    send(sender, 3)
    assert sender.deadline == 300
    sender.tick(299)
    assert resends(sender, 299) == []
    sender.tick(300)
    assert (sender.probes, sender.timeouts, resends(sender, 300)) == (1, 0, [2])
    assert sender.deadline == 1300
    sender.acknowledge(0, bits(2, ack=0), 400)
    assert sender.deadline == 700  # progress: from the beginning
    sender.tick(700)
    assert resends(sender, 700) == [1]


def test_the_probe_takes_the_last_that_does_not_wait():
    sender = make()
    send(sender, 6)
    sender.acknowledge(4, 0, 10)
    sender.tick(310)
    sender.tick(1310)
    assert sender.timeouts == 1
    assert resends(sender, 1310) == [5, 4]  # found lost in that order


def test_the_probe_of_a_copy_tells_what_is_missing():
    sender = make(reorder=0)
    send(sender, 4)
    sender.acknowledge(1, 0, 100)
    sender.tick(400)
    assert resends(sender, 400) == [3]
    sender.acknowledge(1, bits(3, ack=1), 500)
    assert resends(sender, 500) == [1, 2]


def test_time_outs_double_up_to_a_limit_and_begin_anew():
    sender = make(probe_timeout=0, retries=15)
    sender.send("x", 0)
    now, waits = 0, []
    for _ in range(9):
        waits.append(sender.deadline - now)
        now = sender.deadline
        sender.tick(now - 1)
        assert resends(sender, now - 1) == []
        sender.tick(now)
        assert resends(sender, now) == ["x"]
    assert waits == [1000 << count for count in (0, 1, 2, 3, 4, 5, 6, 6, 6)]
    sender.send("y", now)
    assert sender.acknowledge(1, 0, now + 1) == ["x"]
    assert sender.deadline == now + 1001
    assert (sender.probes, sender.timeouts) == (0, 9)


def test_the_timer_runs_only_while_something_is_outstanding():
    sender = make()
    assert sender.deadline is None
    sender.send("x", 100)
    sender.send("y", 200)
    assert sender.deadline == 400  # the second does not start it anew
    sender.acknowledge(0, 0, 300)
    assert sender.deadline == 400  # nor does what says nothing
    sender.acknowledge(0, 1, 350)
    assert sender.deadline == 650
    sender.acknowledge(2, 0, 360)
    assert sender.deadline is None
    sender.tick(10**9)
    assert sender.timeouts == 0


@pytest.mark.parametrize("retries", [0, 1, 3, 15])
def test_a_frame_is_sent_as_often_as_it_may_be(retries):
    sender = make(retries=retries, probe_timeout=0)
    sender.send("x", 0)
    for _ in range(retries):
        sender.tick(sender.deadline)
        assert resends(sender, sender.deadline) == ["x"]
    assert not sender.is_failed
    sender.tick(sender.deadline)
    assert sender.is_failed
    assert sender.room == 0
    assert sender.resend(10**9) is None
    sender.tick(10**9)
    assert sender.acknowledge(1, 0, 10**9) == ["x"]
    assert sender.is_failed


def test_the_last_copy_may_arrive():
    sender = make(retries=1, probe_timeout=0)
    sender.send("x", 0)
    sender.tick(1000)
    resends(sender, 1000)
    sender.tick(2999)
    assert sender.acknowledge(1, 0, 2999) == ["x"]
    assert not sender.is_failed


def test_a_probe_does_not_give_up():
    sender = make(retries=1)
    sender.send("x", 0)
    sender.tick(300)  # the one copy
    assert resends(sender, 300) == ["x"]
    sender.send("y", 300)
    sender.acknowledge(0, 1, 400)  # y; the probe may come again, but not of x
    sender.tick(700)
    assert (sender.probes, sender.is_failed) == (1, False)
    sender.tick(1700)
    assert sender.is_failed


def test_loss_by_order_gives_up_too():
    sender = make(128, retries=1, reorder=0)
    send(sender, 2)
    sender.acknowledge(0, bits(1, ack=0), 100)
    assert resends(sender, 100) == [0]
    sender.send(2, 100)
    sender.acknowledge(0, bits(1, 2, ack=0), 200)
    assert sender.is_failed


@pytest.mark.parametrize("first", STARTS)
def test_go_back_n(first):
    sender = make(8, first, go_back_n=True)
    send(sender, 6)
    sender.acknowledge(seq(first, 2), 0, 50)
    assert resends(sender, 50) == []
    sender.acknowledge(seq(first, 2), 0, 60, nack=True)
    assert resends(sender, 60) == [2, 3, 4, 5]
    assert sender.deadline == 1060  # no probe
    sender.acknowledge(seq(first, 5), 0, 200)
    sender.tick(1200)
    assert (resends(sender, 1200), sender.timeouts, sender.probes) == ([5], 1, 0)
    assert sender.deadline == 1200 + 2000


def test_go_back_n_blames_only_the_oldest():
    sender = make(8, retries=1, go_back_n=True)
    send(sender, 4)
    sender.acknowledge(1, 0, 10, nack=True)
    resends(sender, 10)
    sender.acknowledge(2, 0, 20, nack=True)
    assert resends(sender, 20) == [2, 3]
    assert not sender.is_failed
    sender.acknowledge(2, 0, 30, nack=True)
    assert sender.is_failed


def test_go_back_n_while_frames_wait():
    sender = make(8, go_back_n=True)
    send(sender, 4)
    sender.acknowledge(1, 0, 10, nack=True)
    assert sender.resend(11) == (1, 1)
    sender.acknowledge(2, 0, 20, nack=True)
    assert resends(sender, 20) == [2, 3]
    sender.acknowledge(2, 0, 30, nack=True)
    assert resends(sender, 30) == [2, 3]
    sender.acknowledge(1, 0, 40, nack=True)  # old
    assert resends(sender, 40) == []


def test_a_nack_means_nothing_without_go_back_n():
    sender = make()
    send(sender, 2)
    sender.acknowledge(0, 0, 10, nack=True)
    assert resends(sender, 10) == []


@pytest.mark.parametrize(("window", "first"), [(0, 0), (129, 0), (8, -1), (8, SEQS)])
def test_arguments_are_checked(window, first):
    with pytest.raises(ConfigError):
        Sender(window, SETTINGS, first)
