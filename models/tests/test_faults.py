"""Faults at random and by script, and the links and the loop that carry frames."""

import dataclasses

import pytest

from xoe.fault_script import Action, Event, Rule, Script, ScriptError
from xoe.faults import HOLD, Injector, Rates, flip, shape
from xoe.framer import Settings, build_frame
from xoe.network import HangError, Link, run
from xoe.operation import Operation
from xoe.parser import Route
from xoe.wire import AckBody, ControlBody, Kind, Message, Opcode, TrafficClass

TEXT = """\
A>B drop data psn=5 nth=3
B>A delay=3000 response nth=2
A>B drop frame nth=10..20
B>A flip=77 ack nth=1
A>B duplicate=500 atomic qp=3
A>B reorder=2 open nth=2..
A>B truncate=20 closed
A>B drop other
at 5000 A reset
at 6000 B write qp=1 address=64
"""


def frame(traffic_class=TrafficClass.REQUEST, body=b"", kind=Kind.DATA, seq=0, qp=3):
    route = Route(2, 2, qp, 4, traffic_class)
    operations = (Operation(Opcode.READ, 1, 2, 3),) if kind == Kind.DATA else ()
    return build_frame(Settings(1, 1), route, operations, body, kind=kind, seq=seq)


def control(message):
    return frame(body=ControlBody(message=message).pack(), kind=Kind.CONTROL)


ACK = frame(body=AckBody().pack(), kind=Kind.ACK)


def test_a_script_is_what_its_text_says():
    script = Script.parse(TEXT)
    assert script.rules[0] == Rule("A>B", Action.DROP, 0, "data", 3, 3, psn=5)
    assert script.rules[2] == Rule("A>B", Action.DROP, 0, "frame", 10, 20)
    assert script.rules[5] == Rule("A>B", Action.REORDER, 2, "open", 2, 0)
    assert script.events == (Event(5000, "A", "reset"), Event(6000, "B", "write", (("qp", 1), ("address", 64))))
    assert str(script) == TEXT
    assert Script.parse(str(script)) == script


def test_comments_defaults_and_hexadecimal():
    script = Script.parse("\n# nothing\nA>B duplicate data psn=0x10  # once more\n  A>B reorder data\n")
    assert script.rules == (Rule("A>B", Action.DUPLICATE, 0, "data", psn=16), Rule("A>B", Action.REORDER, 1, "data"))
    assert Script.parse("") == Script()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A>B drop", "line 1: a rule is DIRECTION ACTION FRAMES, such as A>B drop data nth=1, not 'A>B drop'"),
        ("\nAB drop data", "line 2: a direction is two names with > between, such as A>B, not 'AB'"),
        (
            "A>B lose data",
            "line 1: an action must be one of drop, duplicate, reorder, delay, flip, truncate, not",
        ),
        ("A>B drop=3 data", "line 1: drop takes no number, not 'drop=3'"),
        ("A>B delay data", "line 1: delay needs a number, such as delay=100"),
        ("A>B delay=x data", "line 1: delay must be a number from 0 on, not 'x'"),
        ("A>B flip=-1 data", "line 1: flip must be a number from 0 on, not '-1'"),
        ("A>B drop frames", "line 1: frames must be one of frame, data, request"),
        ("A>B drop data nth=0", "line 1: nth must be a number from 1 on, or a range of them such as 10..20, not '0'"),
        ("A>B drop data nth=5..4", "line 1: nth must be a number from 1 on, or a range of them"),
        ("A>B drop data nth=..4", "line 1: nth must be a number from 0 on, not ''"),
        ("A>B drop data seq=4", "line 1: nth= or psn= or qp= may follow, not 'seq=4'"),
        ("A>B drop data 4", "line 1: nth= or psn= or qp= may follow, not '4'"),
        ("at 5 A", "line 1: an event is at TIME END VERB, such as at 5000 A reset, not 'at 5 A'"),
        ("at soon A reset", "line 1: a time must be a number from 0 on, not 'soon'"),
        ("at 5 A reset qp", "line 1: name=number may follow, not 'qp'"),
    ],
)
def test_bad_scripts(text, message):
    with pytest.raises(ScriptError) as raised:
        Script.parse(text)
    assert str(raised.value).startswith(message)


def test_what_a_frame_is():
    assert shape(frame(seq=7)).names == {"frame", "data", "request"}
    assert (shape(frame(seq=7)).psn, shape(frame(qp=9)).qp) == (7, 9)
    assert "response" in shape(frame(TrafficClass.RESPONSE)).names
    assert "atomic" in shape(frame(TrafficClass.ATOMIC)).names
    assert shape(frame(TrafficClass.PROBE)).names == {"frame", "data"}
    assert (shape(ACK).names, shape(ACK).psn) == ({"frame", "ack"}, None)
    for message in Message:
        assert shape(control(message)).names == {"frame", "control", message.name.lower()}
    assert shape(control(9)).names == {"frame", "control"}
    assert shape(ACK[:9]).names == shape(ACK[:20]).names == shape(b"").names == {"frame", "other"}


def carry(injector, frames):
    """What arrives, and when, of frames sent 10 clocks apart."""
    for number, data in enumerate(frames):
        injector.send(data, 10 * number)
    arrived = []
    while injector.deadline is not None:
        now = injector.deadline
        arrived += [(now, data) for data in injector.receive(now)]
    return arrived


def injected(text, frames):
    """An injector with a script, and what it lets arrive."""
    injector = Injector(Script.parse(text).rules)
    return injector, carry(injector, frames)


FRAMES = [frame(seq=number) for number in range(5)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [(0, 0), (10, 1), (20, 2), (30, 3), (40, 4)]),
        ("A>B drop data nth=2..3", [(0, 0), (30, 3), (40, 4)]),
        ("A>B drop data psn=4", [(0, 0), (10, 1), (20, 2), (30, 3)]),
        ("A>B delay=25 data psn=0", [(10, 1), (20, 2), (25, 0), (30, 3), (40, 4)]),
        ("A>B duplicate=15 data nth=1", [(0, 0), (10, 1), (15, 0), (20, 2), (30, 3), (40, 4)]),
        ("A>B duplicate frame nth=1", [(0, 0), (0, 0), (10, 1), (20, 2), (30, 3), (40, 4)]),
        ("A>B reorder data nth=2", [(0, 0), (20, 2), (20, 1), (30, 3), (40, 4)]),
        ("A>B reorder=3 data nth=1..2", [(10 * number, number) for number in (2, 3)] + [(30, 0), (40, 4), (40, 1)]),
        ("A>B reorder data nth=5", [(0, 0), (10, 1), (20, 2), (30, 3), (40 + HOLD, 4)]),
        ("A>B drop atomic\nA>B drop data qp=4", [(0, 0), (10, 1), (20, 2), (30, 3), (40, 4)]),
    ],
)
def test_what_each_fault_does(text, expected):
    _, arrived = injected(text, FRAMES)
    assert [(time, FRAMES.index(data)) for time, data in arrived] == expected


def test_damage():
    _, arrived = injected("A>B flip=77 data nth=1\nA>B truncate=20 data nth=2", FRAMES[:2])
    assert arrived[0][1][9] == FRAMES[0][9] ^ 1 << 5
    assert arrived[1][1] == FRAMES[1][:20]
    assert flip(b"ab", 16) == b"`b"
    assert flip(b"", 3) == b""


def test_the_first_rule_wins_and_all_of_them_count():
    injector, arrived = injected("A>B drop data nth=2\nA>B delay=5 request nth=2..3", FRAMES)
    assert [FRAMES.index(data) for _, data in arrived] == [0, 2, 3, 4]
    assert arrived[1][0] == 25
    assert injector.counts == {**dict.fromkeys(Action, 0), Action.DROP: 1, Action.DELAY: 1}


def test_copies_of_one_number_are_counted():
    frames = [frame(seq=5), frame(seq=6), frame(seq=5), frame(seq=5), frame(seq=5)]
    _, arrived = injected("A>B drop data psn=5 nth=3", frames)
    assert [time for time, _ in arrived] == [0, 10, 20, 40]


def test_faults_at_random_can_be_replayed_by_their_log():
    rates = Rates(drop=0.1, duplicate=0.1, reorder=0.1, delay=0.1, flip=0.1, truncate=0.1, burst=0.05)
    frames = [frame(seq=number) for number in range(500)]
    wild = Injector(rates=rates, seed=3)
    arrived = carry(wild, frames)
    assert carry(Injector(Script.parse(str(Script(tuple(wild.log)))).rules), frames) == arrived
    assert all(count > 20 for action, count in wild.counts.items() if action is not Action.DROP)
    assert wild.counts[Action.DROP] > 100
    assert sum(wild.counts.values()) == len(wild.log)


def test_a_seed_is_a_run():
    def counts(seed):
        injector = Injector(rates=Rates.each(0.05), seed=seed)
        for data in FRAMES * 50:
            injector.send(data, 0)
        return list(injector.log)

    assert counts(1) == counts(1) != counts(2)


def test_no_faults_without_rates():
    injector = Injector(rates=Rates())
    for data in FRAMES:
        injector.send(data, 5)
    assert injector.receive(4) == []
    assert injector.receive(5) == FRAMES
    assert injector.deadline is None


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ({"drop": -0.1}, "drop must be 0 to 1, not -0.1"),
        ({"burst": 2}, "burst must be 0 to 1, not 2"),
        ({"drop": 0.6, "delay": 0.6}, "the rates must be 1 or less together, not 1.2"),
        ({"clocks": 0}, "clocks must be 1 or more, not 0"),
    ],
)
def test_bad_rates(rates, message):
    with pytest.raises(ValueError, match=message):
        Rates(**rates)


def test_a_link_has_a_delay_and_a_rate():
    link = Link(delay=100, rate=8)
    for data in (bytes(76), bytes(77)):
        link.send(data, 1000)  # 100 and 101 bytes on the wire: 13 clocks each
    assert link.free_at == 1026
    assert link.deadline == 1113
    assert link.receive(1112) == []
    assert link.receive(1126) == [bytes(76), bytes(77)]
    link.send(b"x", 2000)
    assert link.deadline == 2000 + 4 + 100
    assert link.bytes == 154
    fast = Link(delay=0)
    fast.send(b"x", 5)
    assert (fast.deadline, fast.free_at) == (5, 5)
    for arguments, message in (({"delay": -1}, "delay must be 0 or more"), ({"rate": 0}, "rate must be above 0")):
        with pytest.raises(ValueError, match=message):
            Link(**arguments)


@dataclasses.dataclass
class Echo:
    """Sends what it is told to, and sends back what comes, so many times."""

    outbox: list
    bounces: int = 0
    deadline: int | None = None
    completed: int = 0
    log: list = dataclasses.field(default_factory=list)

    def transmit(self, now, most=None):
        found, self.outbox = self.outbox[:most], self.outbox[len(self.outbox[:most]) :]
        return found

    def receive(self, data, now):
        self.log.append((now, data))
        if self.bounces:
            self.bounces -= 1
            self.completed += 1
            self.outbox.append(data)


def make(rate=None, **ends):
    ends = {"A": Echo([]), "B": Echo([]), **ends}
    return ends, {"A>B": Link(100, rate), "B>A": Link(50, rate)}


def test_time_goes_from_one_arrival_to_the_next():
    ends, links = make(A=Echo([b"x"], 2), B=Echo([], 2))
    assert run(ends, links, lambda now: len(ends["A"].log) == 2, now=7) == 307
    assert ends["B"].log == [(107, b"x"), (257, b"x")]


def test_events_come_at_their_time():
    ends, links = make()
    seen = []
    events = [(30, lambda now: ends["A"].outbox.append(b"y")), (10, seen.append)]
    assert run(ends, links, lambda now: bool(ends["B"].log), events=events) == 130
    assert seen == [10]


def test_a_busy_link_is_waited_for():
    ends, links = make(1, A=Echo([bytes(76)] * 3))
    run(ends, links, lambda now: len(ends["B"].log) == 3)
    assert [time for time, _ in ends["B"].log] == [200, 300, 400]


def test_a_hang_is_found():
    ends, links = make()
    with pytest.raises(HangError, match="nothing was completed between clocks 0 and 0"):
        run(ends, links, lambda now: False)
    with pytest.raises(HangError, match="between clocks 0 and 1100"):
        run({"A": Forever(), "B": Forever()}, links, lambda now: False, patience=1000)
    stuck = Echo([], deadline=0)
    with pytest.raises(HangError, match="time stands still at 0"):
        run({"A": stuck, "B": Echo([])}, links, lambda now: False)


class Forever(Echo):
    """Has something to do every hundred clocks, and gets nowhere."""

    def __init__(self):
        super().__init__([])
        self.now = 0

    def transmit(self, now, most=None):
        self.deadline = now + 100
        return []
