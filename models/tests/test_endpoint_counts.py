"""Two endpoints: PSNs, credits and acknowledgements at their bounds, lost, and out of step."""

import dataclasses

import pytest

from endpoints import CONFIG, LARGE, MODES, WIDE, Pair, all_done, counted, opened, settings, write_message
from xoe.command import Command
from xoe.faults import Rates, shape
from xoe.tags import Tags
from xoe.traffic import Traffic
from xoe.wire import Opcode, Status


@MODES
@pytest.mark.parametrize("offset", [0, 1, 3, 60])
def test_all_counts_pass_their_end_with_loss(transport, offset):
    pair = Pair(
        rates=Rates(drop=0.03, duplicate=0.02),
        seed=offset,
        transport=transport,
        first_seq={"A": (1 << 24) - offset if offset else 0, "B": (1 << 24) - 3},
        first_credit={"A": (1 << 20) - 3, "B": (1 << 20) - offset if offset else 0},
        epochs={"A": {0: 253}, "B": {1: 255}},
    )
    for end in pair.ends.values():
        end.tags = Tags(64, generation=1024 - 3)
        end.requester._tags = end.tags
    pair.open()
    adds = []
    for number in range(300):
        adds.append(pair.add("A", 0, 1))
        pair.add("B", 0, 1)
        pair.write("A", 64 + number, bytes([number % 256]))
        pair.read("B", 64, 100)
    pair.finish()
    assert [pair.value("A", number) for number in adds] == list(range(300))
    assert pair.b.memory.read(64, 300) == bytes(number % 256 for number in range(300))
    assert all_done(pair)
    assert counted(pair, Traffic.RESENT) > 0
    assert counted(pair, Traffic.CREDITS_RECONCILED) == 0


@MODES
@pytest.mark.parametrize("shift", [100, 1 << 22, (1 << 23) + 64])
def test_numbers_that_are_out_of_step_end_in_an_error(transport, shift):
    """As after a fault in a register: more than a window apart, ahead (refused) or behind (taken for copies)."""
    pair = opened(transport=transport)
    sender = pair.a.pairs.get(0).channel.sender
    sender.first_outstanding = sender.next_seq = (sender.next_seq + shift) % (1 << 24)
    number = pair.add("A", 0, 1)
    pair.finish()
    assert pair.status("A", number) == Status.CONNECTION_LOST
    assert pair.b.memory.read(0, 1) == b"\0"
    sent = pair.links["A>B"].injector.frames
    assert sent < 30
    pair.connect()
    pair.run_until(pair.is_open)
    pair.add("A", 0, 1)
    pair.finish()
    assert pair.b.memory.read(0, 1) == b"\1"


@MODES
@pytest.mark.parametrize("every", [1, 4, 16])
@pytest.mark.parametrize("frames", [1, 3, 5, 15, 17])
def test_messages_that_are_no_multiple_of_what_is_acknowledged(transport, every, frames):
    pair = opened(transport=dataclasses.replace(transport, ack_every=every), config=WIDE, rate=512)
    pair.b.is_stalled = True  # so that no answer carries an acknowledgement
    data = write_message(pair, LARGE * frames)
    pair.run(1500)
    assert pair.a.pairs.get(0).channel.sender.outstanding == []
    assert pair.b.counters[Traffic.ACKS_SENT] == -(-frames // every)
    pair.b.is_stalled = False
    pair.finish()
    assert pair.b.memory.read(0, len(data)) == data
    assert counted(pair, Traffic.RESENT) == 0


@MODES
@pytest.mark.parametrize("lost", [{"ack"}, {"ack", "data"}])
def test_credits_that_are_lost_as_the_last_thing_before_silence(transport, lost):
    """Whoever waits for them says nothing by itself: what was lost comes again, or the next sync tells them."""
    pair = opened(transport=transport)
    pair.b.is_stalled = True
    for number in range(14 * 3):
        pair.write("A", 256 * number, bytes([7] * 256))
    pair.run(20_000)
    channel = pair.a.pairs.get(0).channel
    assert (channel.credit_senders[0].available, channel.sender.outstanding) == (0, [])
    link = pair.links["B>A"]
    send, link.send = link.send, lambda data, now: None if shape(data).names & lost else send(data, now)
    pair.b.is_stalled = False
    pair.run(1500)
    link.send = send
    assert pair.b.counters[Traffic.ACKS_SENT] >= 2
    start = pair.now
    pair.finish()
    assert all_done(pair)
    assert pair.now - start < 2 * 65536


@MODES
def test_a_credit_update_alone_is_lost_for_good(transport):
    """Nothing else is under way: only the sync heals it."""
    pair = opened(transport=transport)
    channel, theirs = pair.a.pairs.get(0).channel, pair.b.pairs.get(1).channel
    for channels in (channel.credit_senders[0], theirs.credit_receivers[0]):
        channels.consumed += 16
    theirs.credit_receivers[0].free(16)  # and the acknowledgement that said so is lost
    pair.run(100)
    start = pair.now
    pair.write("A", 0, b"x")
    pair.finish()
    assert all_done(pair)
    assert 50_000 < pair.now - start < 70_000
    assert counted(pair, Traffic.CREDITS_RECONCILED) == 0


@MODES
def test_counts_that_differ_are_put_right(transport):
    """As after a fault in a register."""
    for consumed in (16, 5, -3):
        pair = opened(transport=transport)
        channel = pair.a.pairs.get(0).channel
        channel.credit_senders[0].consumed = (channel.credit_senders[0].consumed + consumed) % (1 << 20)
        pair.run(4 * 65536)  # each class in its turn
        assert pair.b.counters[Traffic.CREDITS_RECONCILED] == 1
        for number in range(50):
            pair.write("A", 256 * number, bytes(256))
        pair.finish()
        assert all_done(pair)
        pair.run(1000)
        assert channel.credit_senders[0].in_use == 0


@MODES
def test_acknowledgements_alone_are_lost(transport):
    pair = opened("B>A drop ack nth=1..8\nA>B drop ack nth=1..8", transport=transport)
    data = write_message(pair, 14_000)
    pair.finish()
    assert pair.b.memory.read(0, 14_000) == data
    assert all_done(pair)


def test_a_window_of_one_and_a_window_of_128():
    for window in (1, 128):
        config = dataclasses.replace(WIDE, window=window, credit_size=64, credit_request=160, receive_buffer=0)
        pair = opened(config=config, rates=Rates(drop=0.02), seed=window)
        for _ in range(300):
            pair.add("A", 0, 1)
            pair.write("A", 8, b"x")
        pair.finish()
        assert all_done(pair)
        assert pair.b.memory.read(0, 8) == (300).to_bytes(8, "little")
        assert counted(pair, Traffic.BAD_BODY) == 0


def test_ends_that_differ():
    configs = {
        "A": dataclasses.replace(CONFIG, window=128, credit_size=32, credit_request=130, credit_response=200, mtu=4096,
                                 credit_atomic=8, atomic_slots=2, receive_buffer=0),
        "B": dataclasses.replace(CONFIG, window=4, credit_size=2048, credit_request=2, credit_response=3,
                                 credit_atomic=1, atomic_slots=8, receive_buffer=0),
    }  # fmt: skip
    transports = {"A": settings(ack_every=1, resend_timeout=3000), "B": settings(ack_every=16, ack_delay=500)}
    pair = opened(config=configs, transport=transports, rates=Rates(drop=0.02), seed=8)
    for number in range(200):
        for name in "AB":
            pair.add(name, 0, 1)
            pair.write(name, 64 + number, b"x")
            pair.read(name, 0, 256)
    pair.finish()
    assert all_done(pair)
    assert pair.a.memory.read(0, 8) == pair.b.memory.read(0, 8) == (200).to_bytes(8, "little")


def test_no_frame_is_larger_than_what_was_granted():
    """As a peer may do whose largest frame is smaller."""
    pair = Pair()
    pair.b.pairs.offer = dataclasses.replace(pair.b.pairs.offer, credit_request=1, credit_response=2)
    pair.open()
    for number in range(20):
        pair.write("A", 256 * number, bytes([number] * 256))
        pair.read("B", 256 * number, 200)
    pair.finish()
    assert all_done(pair)
    assert pair.a.counters[Traffic.DATA_SENT] == 20 + 5  # answers of 216 bytes, four in each frame of 992
    assert counted(pair, Traffic.NO_ROOM) == 0


def test_a_command_that_is_refused_takes_no_credit():
    pair = opened()
    channel = pair.a.pairs.get(0).channel
    pair.a.submit(Command(Opcode.READ, 1, 0, 0, 0, 0))
    assert channel.credit_senders[0].in_use == 0
