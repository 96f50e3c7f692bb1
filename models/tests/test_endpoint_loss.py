"""Two endpoints, and a particular frame that is lost, late or damaged between them."""

import dataclasses

import pytest

from endpoints import CONFIG, GO_BACK, LARGE, MODES, WIDE, all_done, counted, opened, write_message
from xoe.connection import State
from xoe.faults import Rates
from xoe.traffic import Traffic
from xoe.wire import Status


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


@pytest.mark.parametrize(("by", "is_taken"), [(3, False), (4, False), (8, True)])
def test_reordering_is_taken_for_loss_only_beyond_its_limit(by, is_taken):
    rules = "".join(f"A>B reorder={by} data nth={number}\n" for number in range(5, 205, 10))
    small = dataclasses.replace(WIDE, mtu=320)  # an operation in a frame
    pair = opened(rules, rate=8, config=small)
    for number in range(300):
        pair.write("A", 256 * number, bytes(256))
    pair.finish()
    assert (pair.a.counters[Traffic.RESENT] > 0) == is_taken
