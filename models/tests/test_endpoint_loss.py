"""Two endpoints, and a particular frame that is lost, late or damaged between them."""

import dataclasses
import random

import pytest

from endpoints import CONFIG, Pair, settings
from xoe.command import Command
from xoe.connection import State
from xoe.faults import Rates, shape
from xoe.tags import Tags
from xoe.traffic import Traffic
from xoe.wire import Opcode, Status

SELECTIVE = settings()
GO_BACK = settings(go_back_n=True)
MODES = pytest.mark.parametrize("transport", [SELECTIVE, GO_BACK], ids=["selective", "go-back-n"])
WIDE = dataclasses.replace(
    CONFIG, credit_request=160, credit_response=160, resend_buffer=80_000, receive_buffer=0, tags=256
)
"""Room for seventeen of the largest frames at once."""

LARGE = 14 * 256  # bytes that are written by one of the largest frames


def opened(script="", **arguments):
    pair = Pair(script, **arguments)
    pair.open()
    return pair


def write_message(pair, size, address=0, name="A", seed=0):
    """Write so many bytes with the largest writes; the bytes."""
    data = random.Random(f"{seed} {size}").randbytes(size)
    for at in range(0, size, 256):
        pair.write(name, address + at, data[at : at + 256])
    return data


def all_done(pair):
    return all(completion.status == Status.DONE for done in pair.done.values() for completion in done.values())


def counted(pair, event):
    return pair.a.counters[event] + pair.b.counters[event]


@MODES
@pytest.mark.parametrize("lost", ["drop", "delay=3000", "duplicate=900", "flip=200", "truncate=40"])
@pytest.mark.parametrize("others", [False, True])
def test_the_answer_of_an_atomic_comes_late_or_never(transport, lost, others):
    pair = opened(f"B>A {lost} response nth=1", transport=transport)
    number = pair.add("A", 0x100, 5)
    if others:
        pair.run(600)
        between = [pair.add("A", 0x100, 7), pair.add("B", 0x100, 1)]
    pair.finish()
    pair.run(5000)
    assert pair.value("A", number) == 0
    if others:
        assert (pair.value("A", between[0]), pair.value("B", between[1])) == (5, 0)
    assert pair.b.memory.read(0x100, 1)[0] == 5 + 7 * others
    assert not pair.b.pairs.get(1).channel.slots.used
    if lost == "delay=3000":
        assert pair.a.counters[Traffic.DUPLICATE] >= 1  # both came


@MODES
@pytest.mark.parametrize("name", ["atomic", "request"])
def test_a_request_comes_twice(transport, name):
    pair = opened(f"A>B duplicate=700 {name}\nA>B delay=2500 {name} nth=2", transport=transport)
    adds = [pair.add("A", 0, 1)]
    pair.run(100)
    adds.append(pair.add("A", 0, 1))
    write = pair.write("A", 8, b"x")
    pair.finish()
    pair.run(5000)
    assert [pair.value("A", number) for number in adds] == [0, 1]
    assert pair.status("A", write) == Status.DONE
    assert pair.b.memory.read(0, 9) == b"\2" + bytes(7) + b"x"


@MODES
@pytest.mark.parametrize("frames", [1, 2, 8, 17])
@pytest.mark.parametrize("where", ["first", "middle", "last"])
@pytest.mark.parametrize("config", [CONFIG, WIDE], ids=["narrow", "wide"])
def test_a_frame_of_a_message_is_lost(transport, frames, where, config):
    psn = {"first": 0, "middle": frames // 2, "last": frames - 1}[where]
    pair = opened(f"A>B drop data psn={psn} nth=1", transport=transport, config=config)
    size = LARGE * frames - 100
    data = write_message(pair, size)
    pair.finish()
    assert pair.b.memory.read(0, size) == data
    assert all_done(pair)
    assert pair.links["A>B"].injector.counts[next(iter(pair.links["A>B"].injector.counts))] == 1
    assert counted(pair, Traffic.TIMEOUTS) == 0 or transport is GO_BACK


@MODES
def test_every_length_around_every_power_of_two(transport):
    lengths = sorted({(1 << power) + step for power in range(15) for step in (-1, 0, 1)} - {0})
    pair = opened(transport=transport, rates=Rates(drop=0.02), seed=5)
    for number, length in enumerate(lengths):
        data = write_message(pair, length, number % 7, seed=number)
        pair.finish()
        assert pair.b.memory.read(number % 7, length) == data
        reads = [pair.read("A", number % 7 + at, min(256, length - at)) for at in range(0, length, 256)]
        pair.finish()
        assert b"".join(pair.done["A"][read].data for read in reads) == data
    assert all_done(pair)
    assert counted(pair, Traffic.RESENT) >= 5


@MODES
@pytest.mark.parametrize("direction", ["A>B", "B>A"])
@pytest.mark.parametrize("retries", [0, 1, 3, 7])
def test_copies_are_lost_too(transport, direction, retries):
    transport = dataclasses.replace(transport, retries=retries)
    for lost in range(1, retries + 2):
        pair = opened(f"{direction} drop data psn=0 nth=1..{lost}", transport=transport)
        number = pair.add("A", 0, 1)
        pair.finish()
        is_lost = lost == retries + 1
        assert pair.status("A", number) == (Status.CONNECTION_LOST if is_lost else Status.DONE)
        assert pair.b.memory.read(0, 1)[0] == (0 if is_lost and direction == "A>B" else 1)
        assert counted(pair, Traffic.RESENT) >= min(lost, retries)
        if is_lost:
            assert pair.a.state(0) is State.LISTENING
            pair.run(1 << 19)
            assert pair.b.state(1) is State.LISTENING
            assert sorted(pair.notices["A"] + pair.notices["B"]) == [
                (0, "LOST"),
                (0, "OPENED"),
                (1, "LOST"),
                (1, "OPENED"),
            ]
        else:
            assert pair.is_open()


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
@pytest.mark.parametrize("rate", [0.001, 0.01, 0.03, 0.1])
def test_loss_at_random_both_ways(transport, rate):
    pair = opened(transport=transport, rates=Rates(drop=rate), seed=round(1000 * rate))
    for number in range(250):
        for name in "AB":
            pair.add(name, 0, 1)
            pair.write(name, 64 + 8 * number, number.to_bytes(8, "big"))
            pair.read(name, 64, 200)
    pair.finish()
    assert all_done(pair)
    for end in (pair.a, pair.b):
        assert end.memory.read(0, 8) == (250).to_bytes(8, "little")
        assert end.memory.read(64, 2000) == b"".join(number.to_bytes(8, "big") for number in range(250))
    lost = sum(sum(link.injector.counts.values()) for link in pair.links.values())
    assert lost > 0 or rate < 0.01


@MODES
def test_all_faults_at_once(transport):
    pair = opened(transport=dataclasses.replace(transport, retries=15), rates=Rates.each(0.01), seed=11)
    values = []
    for number in range(400):
        values.append(pair.add("A", 0, 1))
        pair.write("A", 64 + number, b"w")
        pair.add("B", 0, 1)
    pair.finish()
    assert all_done(pair)
    assert [pair.value("A", number) for number in values] == list(range(400))
    assert pair.a.memory.read(0, 8) == pair.b.memory.read(0, 8) == (400).to_bytes(8, "little")
    assert pair.b.memory.read(64, 400) == b"w" * 400


@MODES
def test_a_receiver_stops_and_goes_on(transport):
    pair = opened(transport=transport, rates=Rates(drop=0.02), seed=4)
    for round_ in range(4):
        data = write_message(pair, 20_000, seed=round_)
        start = pair.now
        events = [(start + 700, lambda now: stall(pair, True)), (start + 10_700, lambda now: stall(pair, False))]
        pair.finish(events)
        assert pair.b.memory.read(0, 20_000) == data
    assert all_done(pair)


def stall(pair, is_stalled):
    pair.b.is_stalled = is_stalled


@MODES
@pytest.mark.parametrize(
    "lost",
    [
        "A>B drop control nth=1",
        "B>A drop control nth=1",
        "A>B drop control nth=2",
        "A>B drop control nth=1\nB>A drop control nth=1\nA>B drop control nth=2",
        "A>B duplicate=600 control",
        "B>A delay=9000 control nth=1",
        "A>B delay=9000 control nth=1..2",
    ],
)
def test_a_cold_start_that_loses_a_frame(transport, lost):
    pair = Pair(lost, transport=transport)
    pair.listen()
    pair.connect()
    pair.run_until(lambda: pair.a.state(0) is State.OPEN)
    numbers = [pair.add("A", 0, 1), pair.write("A", 8, b"x")]
    pair.finish()
    assert pair.is_open()
    assert [pair.status("A", number) for number in numbers] == [Status.DONE] * 2
    assert pair.b.memory.read(0, 9) == b"\1" + bytes(7) + b"x"


def test_a_cold_start_that_loses_the_last_frame_and_has_nothing_to_say():
    pair = Pair("A>B drop control nth=2")
    pair.listen()
    pair.connect()
    pair.run(60_000)
    assert (pair.a.state(0), pair.b.state(1)) == (State.OPEN, State.LISTENING)
    pair.run(10_000)
    assert pair.is_open()  # the sync was answered


@MODES
@pytest.mark.parametrize("first", ["A", "B"])
@pytest.mark.parametrize("delay", [3000, 9000, 20_000])
def test_old_frames_come_into_the_next_incarnation(transport, first, delay):
    """The connection is closed with traffic in flight, and opened again; what was under way then comes now."""
    script = f"A>B delay={delay} data nth=1..3\nB>A delay={delay} data nth=1..3\nA>B duplicate={delay} ack nth=1..3\n"
    pair = opened(script, transport=transport)
    old = [pair.add("A", 0, 100), pair.write("A", 8, b"old"), pair.add("A", 16, 100), pair.add("B", 0, 100)]
    pair.run(100)
    pair.ends[first].close("AB".index(first), pair.now)
    pair.run_until(lambda: pair.ends[first].state("AB".index(first)) is State.CLOSED)
    pair.open()
    new = [pair.add("A", 0, 1), pair.write("A", 8, b"new"), pair.add("B", 0, 1)]
    pair.finish()
    pair.run(2 * delay)
    assert [pair.status("A", number) for number in new[:2]] == [Status.DONE] * 2
    assert all(pair.done["AB"[number == old[3]]][number].status == Status.CONNECTION_LOST for number in old)
    assert pair.b.memory.read(0, 24) == b"\1" + bytes(7) + b"new" + bytes(5) + bytes(8)
    assert pair.a.memory.read(0, 1) == b"\1"
    assert counted(pair, Traffic.OTHER_EPOCH) > 0


def test_an_incarnation_of_which_one_end_never_heard():
    """A is open, and sends, with what B proposed; B misses that, and proposes the same to A's next incarnation."""
    pair = Pair("A>B drop control nth=2\nA>B delay=30000 data nth=1")
    pair.listen()
    pair.connect()
    pair.run_until(lambda: pair.a.state(0) is State.OPEN)
    old = pair.write("A", 0, b"old")
    pair.run(10)
    pair.a.reset(pair.now)
    pair.set_tables("A")
    pair.connect()
    pair.run_until(pair.is_open)
    assert pair.b.pairs.get(1).connection.epoch == 1
    new = pair.write("A", 0, b"new")
    pair.finish()
    pair.run(40_000)
    assert pair.b.memory.read(0, 3) == b"new"
    assert pair.status("A", new) == Status.DONE
    assert old not in pair.done["A"]
    assert pair.b.counters[Traffic.OTHER_EPOCH] == 1


@MODES
def test_nothing_opens_over_requests_that_wait_in_the_receive_buffer(transport):
    """They would be in the way of what is granted; they are carried out first, and their answers go nowhere."""
    pair = opened(transport=transport)
    pair.b.is_stalled = True
    for number in range(14 * 2):
        pair.write("A", 256 * number, bytes([7] * 256))
    pair.run(5000)
    used = pair.b.buffer.used
    assert used == CONFIG.credit_request * CONFIG.credit_size
    pair.a.reset(pair.now)
    pair.set_tables("A")
    pair.connect()
    pair.run(20_000)
    assert pair.a.state(0) is State.OPENING
    assert pair.b.buffer.used == used
    pair.b.is_stalled = False
    new = pair.write("A", 0, b"new")
    pair.run_until(pair.is_open)
    assert pair.b.memory.read(0, 14 * 512) == bytes([7] * 14 * 512)
    again = pair.write("A", 0, b"new")
    pair.finish()
    assert pair.b.memory.read(0, 4) == b"new\7"
    assert (pair.status("A", new), pair.status("A", again)) == (Status.NOT_CONNECTED, Status.DONE)
    assert pair.b.counters[Traffic.OLD_ANSWER] == 0  # they were given before the new incarnation began
    assert pair.a.counters[Traffic.OTHER_EPOCH] > 0


@MODES
def test_frames_that_were_not_delivered_are_forgotten_with_their_incarnation(transport):
    pair = opened("A>B drop data psn=0", transport=transport)
    write_message(pair, 2 * LARGE)
    pair.run(600)
    assert pair.b.buffer.used == (0 if transport is GO_BACK else 8 * 512)
    pair.b.close(1, pair.now)
    assert pair.b.buffer.used == 0
    pair.run(2000)
    pair.open()
    assert pair.b.buffer.used == 0


def test_tags_go_on_after_a_reset():
    pair = opened()
    pair.read("A", 0, 8)
    pair.finish()
    pair.a.reset(pair.now)
    pair.set_tables("A")
    pair.connect()
    pair.run_until(pair.is_open)
    pair.read("A", 0, 8)
    assert list(pair.a.tags.in_flight) == [128]


@MODES
@pytest.mark.parametrize("name", ["A", "B"])
def test_a_reset_at_any_moment(transport, name):
    for time in (*range(0, 4000, 97), 10_000):
        pair = opened(transport=transport, rates=Rates(drop=0.02), seed=time)
        numbers = [pair.add("A", 0, 1) for _ in range(20)]
        writes = [pair.write("A", 64 + number, b"x") for number in range(20)]
        pair.run(time)
        pair.ends[name].reset(pair.now)
        pair.set_tables(name)
        pair.connect(name, "AB".index(name))
        if name == "B":
            pair.run_until(lambda pair=pair: pair.a.state(0) is not State.OPEN or len(pair.done["A"]) == 40)
        pair.run_until(pair.is_open, patience=10**7)
        again = pair.add("A", 8, 1)
        pair.finish()
        done = [number for number in numbers if number in pair.done["A"] and not pair.status("A", number)]
        assert [pair.value("A", number) for number in done] == list(range(len(done)))
        assert len(done) <= pair.b.memory.read(0, 1)[0] <= 20
        for index, number in enumerate(writes):
            if number in pair.done["A"] and pair.status("A", number) == Status.DONE:
                assert pair.b.memory.read(64 + index, 1) == b"x"
        assert pair.status("A", again) == Status.DONE
        assert pair.b.memory.read(8, 1) == b"\1"
        if name == "B":
            assert len(pair.done["A"]) == 41


@MODES
def test_others_go_on_while_one_dies(transport):
    pair = Pair("A>B drop data qp=1 nth=5..\n", transport=transport)
    for qp in (0, 1, 2):
        pair.open(qp)
    dying = [pair.write("A", 8 * number, bytes(8), 0) for number in range(3)]
    pair.finish()
    assert {pair.status("A", number) for number in dying} == {Status.DONE}
    dying = []
    for number in range(10):
        dying.append(pair.write("A", 8 * number, bytes([1] * 8), 0))
        pair.run(50)
    others = []
    while pair.a.state(0) is State.OPEN:
        others += [pair.add("A", 0x1000 * qp, 1, qp) for qp in (1, 2)] + [pair.add("B", 0, 1, qp) for qp in (2, 3)]
        start = pair.now
        pair.run_until(lambda: all(number in pair.done["A"] | pair.done["B"] for number in others))  # noqa: B023
        assert pair.now - start < 5000
        pair.run(3000)
    assert len(others) > 100
    assert {completion.status for completion in pair.done["B"].values()} == {Status.DONE}
    assert Status.CONNECTION_LOST in {pair.status("A", number) for number in dying}
    assert all(pair.is_open(qp) for qp in (1, 2))


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


@MODES
def test_the_other_end_is_not_there_any_more(transport):
    """It has acknowledged a request, and will never answer it."""
    pair = opened(transport=transport)
    pair.b.is_stalled = True
    number = pair.read("A", 0, 8)
    pair.run(5000)
    assert pair.a.pairs.get(0).channel.sender.outstanding == []
    pair.b.reset(pair.now)
    start = pair.now
    pair.run_until(lambda: number in pair.done["A"])
    assert pair.status("A", number) == Status.CONNECTION_LOST
    assert transport.silence_timeout - 5000 < pair.now - start < transport.silence_timeout + 5000
    assert pair.notices["A"][-1] == (0, "LOST")


def test_commands_of_a_closed_connection_are_refused_after_those_that_are_lost():
    pair = opened()
    numbers = [pair.read("A", 0, 8) for _ in range(100)]
    pair.a.close(0, pair.now)
    pair.run(10)
    statuses = [pair.status("A", number) for number in numbers]
    assert statuses == [Status.CONNECTION_LOST] * 64 + [Status.NOT_CONNECTED] * 36


@pytest.mark.parametrize(("by", "is_taken"), [(3, False), (4, False), (8, True)])
def test_reordering_is_taken_for_loss_only_beyond_its_limit(by, is_taken):
    rules = "".join(f"A>B reorder={by} data nth={number}\n" for number in range(5, 205, 10))
    small = dataclasses.replace(WIDE, mtu=320)  # an operation in a frame
    pair = opened(rules, rate=8, config=small)
    for number in range(300):
        pair.write("A", 256 * number, bytes(256))
    pair.finish()
    assert (pair.a.counters[Traffic.RESENT] > 0) == is_taken


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


def test_a_command_that_is_refused_takes_no_credit():
    pair = opened()
    channel = pair.a.pairs.get(0).channel
    pair.a.submit(Command(Opcode.READ, 1, 0, 0, 0, 0))
    assert channel.credit_senders[0].in_use == 0
