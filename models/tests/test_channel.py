"""One incarnation of a connection: headers and bodies that its two ends exchange."""

import dataclasses

import pytest

from xoe.channel import Channel, Incoming, Outgoing
from xoe.config import NicConfig
from xoe.offer import make_offer
from xoe.operation import Operation
from xoe.receiver import Verdict
from xoe.transport import TransportSettings
from xoe.wire import AckBody, FrameHeader, Kind, Opcode, TrafficClass

SETTINGS = TransportSettings(ack_every=64, ack_delay=50)
REQUEST, RESPONSE, ATOMIC = TrafficClass.REQUEST, TrafficClass.RESPONSE, TrafficClass.ATOMIC
READ = Operation(Opcode.READ, 1, 2, 3)


def make(now=0, settings=SETTINGS, resend_buffer=1 << 20, **config):
    """Both ends of a connection; what they offer differs in its epoch, first PSN and first credit."""
    offer = make_offer(NicConfig(credit_size=32, credit_request=600, **config))
    offers = (
        dataclasses.replace(offer, epoch=7, first_seq=(1 << 24) - 3, first_credit=(1 << 20) - 3),
        dataclasses.replace(offer, epoch=21, first_seq=100, first_credit=200),
    )
    return [Channel(own, peer, resend_buffer, settings, now) for own, peer in (offers, offers[::-1])]


def send(channel, traffic_class=REQUEST, size=16, atomics=0, now=0):
    """Send a new frame; its header, and the frame as the other end has it."""
    seq = channel.send(Outgoing(traffic_class, (READ,), size, atomics), now)
    return header(channel, seq, traffic_class), Incoming(traffic_class, (READ,), -(-(size + 32) // 32))


def header(channel, seq, traffic_class=REQUEST):
    return FrameHeader(traffic_class=traffic_class, **channel.data_fields(seq))


def take(channel, sent, now=0):
    channel.take_header(sent[0], now)
    return channel.take_data(sent[0].seq, sent[1], now)


def acknowledge(source, target, now=0):
    """Send an acknowledgement; its header and body."""
    fields, body = source.acknowledgement(now)
    target.take_acknowledgement(FrameHeader(**fields), body, now)
    return FrameHeader(**fields), AckBody.unpack(body)


def test_what_headers_say():
    here, there = make()
    sent = send(here)[0]
    assert (sent.seq, sent.ack, sent.ack_valid, sent.epoch, sent.src_epoch) == ((1 << 24) - 3, 100, 1, 21, 7)
    assert [(sent.credit_class, sent.credit)] + [
        (found.credit_class, found.credit) for found in (send(here)[0] for _ in range(3))
    ] == [(0, 200), (1, 200), (2, 200), (0, 200)]
    fields, body = there.acknowledgement(0)
    assert fields["kind"] == Kind.ACK
    assert (fields["seq"], fields["ack"], fields["epoch"], fields["src_epoch"]) == (100, (1 << 24) - 3, 7, 21)
    assert AckBody.unpack(body) == AckBody(0, *[(1 << 20) - 3] * 3)


@pytest.mark.parametrize(("window", "size"), [(1, 16), (64, 16), (65, 24), (128, 24)])
def test_the_body_has_a_word_for_each_64_frames(window, size):
    here, there = make(window=window)
    frames = [send(here) for _ in range(window)]
    for sent in frames[1:]:
        assert take(there, sent) is Verdict.NEW
    fields, body = there.acknowledgement(0)
    assert len(body) == size
    assert fields["ack"] == (1 << 24) - 3
    assert int.from_bytes(body[:8], "big") == (1 << min(window - 1, 64)) - 1
    assert int.from_bytes(body[16:], "big") == (1 << max(0, window - 1 - 64)) - 1
    here.take_acknowledgement(FrameHeader(**fields), body, 10)
    assert here.sender.outstanding == [(1 << 24) - 3]


@pytest.mark.parametrize("number", [1, 63, 64, 65, 66, 127])
def test_a_single_frame_in_the_largest_window(number):
    here, there = make(window=128)
    frames = [send(here) for _ in range(128)]
    take(there, frames[number])
    acknowledge(there, here)
    missing = {sent.seq for sent, _ in frames} - set(here.sender.outstanding)
    assert missing == {frames[number][0].seq}


def test_the_smaller_window_counts():
    here, there = make()
    small = dataclasses.replace(there.offer, window=5)
    channel = Channel(here.offer, small, 1 << 20, SETTINGS, 0)
    assert (channel.sender.window, channel.receiver.window) == (5, 64)


def test_room_in_the_retransmit_buffer():
    here, there = make(resend_buffer=200)
    assert here.most(REQUEST) == 168
    assert here.has_room(REQUEST, 168)
    assert not here.has_room(REQUEST, 176)
    send(here, size=100)
    assert here.unacknowledged == 132
    assert here.has_room(REQUEST, 36)
    assert not here.has_room(REQUEST, 40)
    frame = send(here, size=36)
    assert not here.has_room(REQUEST, 0)
    assert here.sender.room == 62
    take(there, frame)
    acknowledge(there, here)
    assert here.unacknowledged == 132


def test_credits_hold_back_their_class_alone():
    here, _ = make(atomic_slots=1)
    assert here.most(ATOMIC) == 32
    send(here, ATOMIC, 32, 1)
    assert not here.has_room(ATOMIC, 24)
    assert here.has_room(REQUEST, 24)
    assert here.has_room(RESPONSE, 24)
    assert here.atomics == 1
    here.answered(Operation(0x41, 1))
    assert here.atomics == 1
    here.answered(Operation(0x50, 1))
    here.answered(Operation(0x50, 1))
    assert here.atomics == 0


def test_credits_are_held_until_they_are_freed():
    here, there = make()
    take(there, send(here, size=100))
    assert (there.used, there.credit_receivers[0].held) == ([5, 0, 0], 0)
    (frame,) = there.deliver()
    assert (there.used, there.credit_receivers[0].held) == ([5, 0, 0], 5)
    acknowledge(there, here)
    assert here.credit_senders[0].in_use == 5
    there.free(frame, 0)
    assert (there.used, there.credit_receivers[0].held) == ([0, 0, 0], 0)
    acknowledge(there, here)
    assert here.credit_senders[0].in_use == 0


def test_each_class_is_told_in_its_turn_by_data():
    here, there = make()
    for traffic_class in (REQUEST, RESPONSE, ATOMIC):
        take(there, send(here, traffic_class))
    for frame in there.deliver():
        there.free(frame, 0)
    for expected in ([0, 2, 2], [0, 0, 2], [0, 0, 0]):
        here.take_header(header(there, 100), 0)
        assert [credits.in_use for credits in here.credit_senders] == expected


def test_an_old_acknowledgement_does_not_undo_counts():
    """It was sent before a frame that has come since, out of order: both ends must not compare now."""
    here, there = make()
    fields, body = here.acknowledgement(0)
    send(here)
    take(there, send(here))  # the one before it is missing
    there.take_acknowledgement(FrameHeader(**fields), body, 0)
    assert there.credits_reconciled == 0
    assert there.credit_receivers[0].consumed == (1 << 20) - 3


def test_counts_are_compared_only_when_both_ends_are_level():
    here, there = make()
    late = send(here)
    acknowledge(here, there)  # says a count with the frame that has not come
    assert there.credits_reconciled == 0
    take(there, late)
    list(there.deliver())
    for _ in range(3):
        acknowledge(here, there)
    assert there.credits_reconciled == 0
    here.credit_senders[1].consumed = (here.credit_senders[1].consumed + 9) % (1 << 20)
    for _ in range(3):
        acknowledge(here, there)
    assert there.credits_reconciled == 1
    assert there.acknowledger.is_urgent
    acknowledge(there, here)
    assert here.credit_senders[1].in_use == 0


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 1, 0]])
def test_frames_out_of_order_are_acknowledged_at_once(order):
    here, there = make()
    frames = [send(here) for _ in range(3)]
    urgent = []
    for number in order:
        take(there, frames[number])
        list(there.deliver())
        urgent.append(there.acknowledger.is_urgent)
        there.acknowledger.pay(0)
    assert urgent == [order != [0, 1, 2]] * 2 + [order == [2, 1, 0]]
    take(there, frames[0])
    assert there.acknowledger.is_urgent


def test_results_of_atomics_are_kept_until_they_are_confirmed():
    here, there = make()
    for _ in range(3):
        assert there.slots.take()
    answers = [send(there, RESPONSE, 24, 2), send(there, RESPONSE, 24, 1)]
    take(here, answers[1])
    acknowledge(here, there)
    assert there.slots.used == 2
    take(here, answers[0])
    list(here.deliver())
    there.take_header(header(here, (1 << 24) - 3), 0)
    assert there.slots.used == 0


def test_silence():
    here, there = make(now=100)
    assert not here.is_lost(100 + SETTINGS.silence_timeout - 1)
    assert here.is_lost(100 + SETTINGS.silence_timeout)
    acknowledge(there, here, 5000)
    assert not here.is_lost(100 + SETTINGS.silence_timeout)
    here.take_header(header(there, 100), 6000)
    assert not here.is_lost(5999 + SETTINGS.silence_timeout)
    assert here.is_lost(6000 + SETTINGS.silence_timeout)


def test_the_earliest_deadline():
    here, _ = make(now=100)
    assert here.deadline == 100 + SETTINGS.sync_interval
    send(here, now=200)
    assert here.deadline == 200 + SETTINGS.probe_timeout
    here.acknowledger.take(300)
    assert here.deadline == 350
    slow = dataclasses.replace(SETTINGS, sync_interval=1000, silence_timeout=4000)
    here, _ = make(settings=slow)
    for now in (1000, 2000, 3000):
        assert here.deadline == now
        here.acknowledgement(now)
    assert here.deadline == 4000


def test_headers_that_say_nothing():
    here, there = make()
    sent = send(here)
    there.take_header(dataclasses.replace(sent[0], ack_valid=0, credit_valid=0, ack=5, credit=9), 0)
    there.take_header(dataclasses.replace(sent[0], credit_class=3), 0)
    there.take_header(dataclasses.replace(sent[0], credit_class=7), 0)
    assert there.sender.acks_refused == there.credits_stale == 0


def test_go_back_n_says_once_what_it_misses():
    here, there = make(settings=dataclasses.replace(SETTINGS, go_back_n=True))
    frames = [send(here) for _ in range(3)]
    assert take(there, frames[1]) is Verdict.OUT_OF_ORDER
    assert there.used == [0, 0, 0]
    sent, body = acknowledge(there, here)
    assert (sent.nack, body.sack) == (1, 0)
    assert [here.sender.resend(0)[0] for _ in range(3)] == [found.seq for found, _ in frames]
    assert take(there, frames[2]) is Verdict.OUT_OF_ORDER
    assert acknowledge(there, here)[0].nack == 0
