"""Opening and closing, frame by frame, and in every order whatever."""

import dataclasses

import pytest

from connections import OFFER, are_open, exchange, hand_over, make
from xoe.connection import Control, Notice, State
from xoe.wire import Message


@pytest.fixture
def ends():
    first, second = make(6), make(20)
    second.listen()
    first.open(0)
    return first, second


def test_three_frames(ends):
    first, second = ends
    said = []
    for source, target in ((first, second), (second, first), (first, second)):
        (control,) = source.outbox
        said.append((control.body.epoch, control.echo, control.body.echo_valid, control.body.is_open))
        hand_over(source, target)
    assert said == [(7, None, 0, 0), (21, 7, 1, 0), (7, 21, 1, 1)]
    assert are_open(first, second)
    assert (first.epoch, second.epoch) == (7, 21)
    assert not first.outbox
    assert not second.outbox
    assert list(first.notices) == list(second.notices) == [Notice.OPENED]
    assert first.deadline is second.deadline is None


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_frame_of_the_opening_is_lost(ends, lost):
    first, second = ends
    hand_over(first, second, lambda _: lost != 0)
    hand_over(second, first, lambda _: lost != 1)
    hand_over(first, second, lambda _: lost != 2)
    assert not are_open(first, second)
    first.tick(99)
    assert not first.outbox
    first.tick(100)
    if lost == 2:
        assert not first.outbox  # it is open; data tells the other end
        assert not second.accepts(21, 7)
    exchange(first, second)
    assert are_open(first, second)
    assert first.incarnation == second.incarnation == 1


def test_nobody_answers(ends):
    first, _ = ends
    first.outbox.clear()
    for time in (100, 200):
        first.tick(time)
        assert first.outbox.popleft().body.epoch == 7
    first.tick(299)
    assert first.state is State.OPENING
    first.tick(300)
    assert (first.state, first.deadline, list(first.notices)) == (State.LISTENING, None, [Notice.OPEN_FAILED])
    assert not first.outbox
    first.open(400)
    assert first.outbox.popleft().body.epoch == 8


def test_both_open_at_once():
    first, second = make(6), make(20)
    first.open(0)
    second.open(0)
    crossing = first.outbox.popleft(), second.outbox.popleft()
    second.receive(crossing[0])
    first.receive(crossing[1])
    exchange(first, second)
    assert are_open(first, second)
    assert (first.epoch, second.epoch) == (7, 21)
    assert first.incarnation == second.incarnation == 1


def test_epochs_go_round():
    first, second = make(253), make(254)
    for count in range(1, 6):
        second.listen()
        first.open(0)
        exchange(first, second)
        assert (first.epoch, second.epoch) == ((253 + count) % 256, (254 + count) % 256)
        first.close(0)
        exchange(first, second)
        assert (first.state, second.state) == (State.CLOSED, State.LISTENING)


def test_repeated_frames_of_the_opening_change_nothing(ends):
    first, second = ends
    asked = first.outbox[0]
    hand_over(first, second)
    answered = second.outbox[0]
    hand_over(second, first)
    confirmed = first.outbox[0]
    hand_over(first, second)
    second.receive(asked)
    assert (second.outbox[0].body.is_open, second.outbox[0].echo) == (1, 7)
    exchange(first, second)
    first.receive(answered)
    exchange(first, second)
    second.receive(confirmed)
    assert not second.outbox
    assert first.incarnation == second.incarnation == 1


def test_an_incarnation_that_is_over_does_not_begin_again(ends):
    first, second = ends
    hand_over(first, second)
    answered = second.outbox[0]
    hand_over(second, first)
    confirmed = first.outbox[0]
    hand_over(first, second)
    for connection, old in ((first, answered), (second, confirmed)):
        connection.lose()
        connection.receive(old)
        assert connection.state is State.LISTENING
        assert not connection.outbox


def test_an_old_answer_is_ignored(ends):
    first, second = ends
    hand_over(first, second)
    old = second.outbox.popleft()
    first.close(0)
    first.open(0)
    exchange(first, second)
    first.receive(old)
    assert are_open(first, second)
    assert (first.epoch, first.incarnation) == (8, 1)


def test_frames_that_were_sent_to_a_listener_before_it_opened_are_not_of_its_next_incarnation(ends):
    """The first end is open with the second one's proposal, which never hears of it; both begin anew with it."""
    first, second = ends
    hand_over(first, second)
    hand_over(second, first)
    assert first.state is State.OPEN
    old = first.peer_epoch, first.epoch
    first.outbox.clear()
    first.lose()
    first.open(0)
    exchange(first, second)
    assert are_open(first, second)
    assert second.epoch == old[0]
    assert second.accepts(first.peer_epoch, first.epoch)
    assert not second.accepts(*old)


def test_what_is_accepted(ends):
    first, second = ends
    assert not first.accepts(7, 21)  # opening: says so again
    assert first.outbox[-1].echo is None
    exchange(first, second)
    assert first.accepts(7, 21)
    for epochs in ((7, 20), (6, 21), (9, 21)):
        assert not first.accepts(*epochs)
    assert not first.outbox
    assert not first.accepts(8, 22)  # the next incarnation: the other end has it already
    assert (first.outbox[0].body.epoch, first.outbox[0].body.is_open, first.outbox[0].echo) == (8, 0, None)
    first.accepts(8, 22)
    assert len(first.outbox) == 1
    closed = make(6)
    assert not closed.accepts(7, 21)
    assert not closed.outbox


def test_other_messages_and_states(ends):
    first, second = ends
    first.receive(Control(dataclasses.replace(OFFER, message=9), None))
    closed = make(3)
    closed.receive(first.outbox[0])
    assert not closed.outbox
    closed.close(0)
    closed.tick(10**9)
    assert (closed.state, list(closed.notices)) == (State.CLOSED, [])
    exchange(first, second)
    first.open(0)
    first.listen()
    assert first.state is State.OPEN
    first.close(0)
    first.close(0)
    first.open(0)
    assert first.state is State.CLOSING
    second.receive(Control(dataclasses.replace(OFFER, message=Message.CLOSED, epoch=7), 21))
    assert second.state is State.OPEN
