"""The receiving end: what is new, and what is delivered, with PSNs that pass their end."""

import itertools
import random

import pytest

from xoe.config import ConfigError
from xoe.cyclic import after
from xoe.receiver import Receiver, Verdict

SEQS = 1 << 24
HALF = 1 << 23
STARTS = [0, SEQS - 3]


def seq(first, steps):
    return after(first, steps, 24)


@pytest.mark.parametrize("first", STARTS)
@pytest.mark.parametrize("window", [1, 2, 64, 128])
def test_what_a_number_says(first, window):
    for ahead, verdict in (
        (0, Verdict.NEW),
        (window - 1, Verdict.NEW),
        (window, Verdict.OUTSIDE),
        (HALF - 1, Verdict.OUTSIDE),
        (HALF, Verdict.DUPLICATE),
        (-1, Verdict.DUPLICATE),
    ):
        receiver = Receiver(window, first)
        assert receiver.receive(seq(first, ahead), "x") is verdict
        assert receiver.counters[verdict] == 1
        assert receiver.held == (["x"] if verdict is Verdict.NEW else [])


@pytest.mark.parametrize("first", STARTS)
def test_frames_in_every_order(first):
    for order in itertools.permutations(range(5)):
        receiver, delivered = Receiver(8, first), []
        for place, number in enumerate(order):
            assert receiver.receive(seq(first, number), number) is Verdict.NEW
            assert receiver.receive(seq(first, number), number) is Verdict.DUPLICATE
            delivered += receiver.deliver()
            here = set(order[: place + 1])
            expected = next(count for count in range(6) if count not in here)
            assert receiver.expected == seq(first, expected)
            assert receiver.sack == sum(1 << other - expected - 1 for other in here if other > expected)
        assert delivered == list(range(5))
        assert receiver.deliver() == []
        assert receiver.receive(seq(first, 4), 4) is Verdict.DUPLICATE


@pytest.mark.parametrize("first", STARTS)
def test_the_last_bit_of_the_largest_window(first):
    receiver = Receiver(128, first)
    receiver.receive(seq(first, 127), "x")
    assert receiver.sack == 1 << 126
    receiver.receive(seq(first, 1), "x")
    assert receiver.sack == 1 << 126 | 1


def test_loss_and_repetition_at_random():
    rng = random.Random(5)
    receiver, delivered = Receiver(16, SEQS - 50), []
    missing = list(range(400))
    while missing:
        number = rng.choice(missing[:20])
        index = missing.index(number)
        ahead = number - len(delivered)
        verdict = receiver.receive(seq(SEQS - 50, number), number)
        assert verdict is (Verdict.NEW if ahead < 16 else Verdict.OUTSIDE)
        if verdict is Verdict.NEW:
            del missing[index]
        delivered += receiver.deliver()
    assert delivered == list(range(400))


def test_no_room():
    receiver = Receiver(8)
    assert receiver.receive(0, "x", has_room=False) is Verdict.NO_ROOM
    assert (receiver.held, receiver.sack) == ([], 0)
    assert receiver.receive(1, "y") is Verdict.NEW
    assert receiver.receive(1, "y", has_room=False) is Verdict.DUPLICATE
    assert receiver.receive(8, "z", has_room=False) is Verdict.OUTSIDE
    assert receiver.receive(0, "x") is Verdict.NEW
    assert receiver.deliver() == ["x", "y"]


def test_go_back_n():
    receiver = Receiver(8, 0, go_back_n=True)
    assert receiver.receive(0, "0") is Verdict.NEW
    assert receiver.deliver() == ["0"]
    assert receiver.receive(2, "2") is Verdict.OUT_OF_ORDER
    assert (receiver.owes_nack, receiver.sack, receiver.held) == (True, 0, [])
    receiver.owes_nack = False  # told
    assert receiver.receive(3, "3") is Verdict.OUT_OF_ORDER
    assert not receiver.owes_nack  # once, until the expected one comes
    assert receiver.receive(0, "0") is Verdict.DUPLICATE
    assert receiver.receive(9, "9") is Verdict.OUTSIDE
    assert not receiver.owes_nack
    assert receiver.receive(1, "1") is Verdict.NEW
    assert receiver.deliver() == ["1"]
    assert receiver.receive(3, "3") is Verdict.OUT_OF_ORDER
    assert receiver.owes_nack
    assert receiver.receive(2, "2") is Verdict.NEW


@pytest.mark.parametrize(("window", "first"), [(0, 0), (129, 0), (8, -1), (8, SEQS)])
def test_arguments_are_checked(window, first):
    with pytest.raises(ConfigError):
        Receiver(window, first)
