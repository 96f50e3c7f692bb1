"""Two endpoints: how connections begin and end, and what of one life must not come into the next."""

import pytest

from endpoints import CONFIG, GO_BACK, LARGE, MODES, Pair, counted, opened, write_message
from xoe.connection import State
from xoe.faults import Rates
from xoe.traffic import Traffic
from xoe.wire import Status


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
