"""Closing, losing and beginning anew, and offers that cannot be used."""

import dataclasses

import pytest

from connections import OFFER, are_open, exchange, hand_over, make
from explore_connection import explore, settle
from xoe.connection import Control, Notice, State
from xoe.offer import LARGEST, is_sound
from xoe.wire import Message


@pytest.fixture
def ends():
    first, second = make(6), make(20)
    second.listen()
    first.open(0)
    return first, second


def test_one_end_was_reset(ends):
    first, second = ends
    exchange(first, second)
    again = make(first.epoch)
    again.open(0)
    hand_over(again, second)
    assert second.incarnation == 1  # still open
    exchange(again, second)
    assert are_open(again, second)
    assert (again.epoch, second.epoch) == (8, 22)
    assert list(second.notices) == [Notice.OPENED, Notice.PEER_RESET, Notice.OPENED]
    assert second.incarnation == 2


def test_closing(ends):
    first, second = ends
    exchange(first, second)
    first.close(1000)
    assert (first.state, first.incarnation, first.deadline) == (State.CLOSING, 2, 1100)
    assert not first.accepts(7, 21)
    lost = first.outbox.popleft()
    assert (lost.body.message, lost.echo, lost.body.epoch) == (Message.CLOSE, 21, 7)
    first.tick(1100)
    hand_over(first, second)
    assert (second.state, second.incarnation) == (State.LISTENING, 2)
    second.outbox.clear()  # CLOSED is lost
    first.tick(1200)
    exchange(first, second)
    assert (first.state, first.deadline, second.incarnation) == (State.CLOSED, None, 2)
    assert list(first.notices) == [Notice.OPENED, Notice.CLOSED]
    assert list(second.notices) == [Notice.OPENED, Notice.PEER_CLOSED]


def test_closing_without_an_answer(ends):
    first, second = ends
    exchange(first, second)
    first.close(0)
    for time in (100, 200, 300):
        assert first.state is State.CLOSING
        first.tick(time)
    assert (first.state, len(first.outbox)) == (State.CLOSED, 1)  # the same thing is not said twice at once
    assert first.notices[-1] is Notice.CLOSED


def test_both_close_at_once(ends):
    first, second = ends
    exchange(first, second)
    first.close(0)
    second.close(0)
    hand_over(first, second)
    closed = second.outbox.pop()  # this CLOSED is lost
    assert closed.body.message == Message.CLOSED
    exchange(first, second)
    assert second.state is State.CLOSED
    assert first.state is State.CLOSING
    first.tick(100)
    exchange(first, second)
    assert first.state is State.CLOSED  # answered by an end that is closed itself


@pytest.mark.parametrize("message", [Message.CLOSE, Message.CLOSED])
@pytest.mark.parametrize("epochs", [(7, 22), (6, 21), (8, 21), (7, None), (21, 7)])
def test_closing_frames_of_other_incarnations(ends, message, epochs):
    first, second = ends
    exchange(first, second)
    if message == Message.CLOSED:
        first.close(0)
        first.outbox.clear()
    state = first.state
    own, peer = epochs
    body = dataclasses.replace(OFFER, message=message, epoch=peer or 21)
    first.receive(Control(body, own if peer else None))
    assert first.state is state
    assert not first.outbox


@pytest.mark.parametrize("state", [State.LISTENING, State.OPENING])
def test_closing_what_is_not_open(state):
    connection = make()
    connection.listen() if state is State.LISTENING else connection.open(0)
    connection.close(0)
    assert (connection.state, connection.deadline, list(connection.notices)) == (State.CLOSED, None, [Notice.CLOSED])
    connection.tick(100)
    assert len(connection.outbox) == (state is State.OPENING)


def test_nothing_opens_before_the_responder_has_taken_what_was_delivered(ends):
    first, second = ends
    exchange(first, second)
    second.is_drained = False
    again = make(first.epoch)
    again.open(0)
    hand_over(again, second)
    assert not second.outbox
    assert not second.accepts(second.proposal, 8)
    assert not second.outbox
    second.is_drained = True
    again.tick(100)
    exchange(again, second)
    assert are_open(again, second)
    second.is_drained = False  # what is open already goes on
    again.receive(Control(dataclasses.replace(OFFER, epoch=second.epoch), None))
    hand_over(again, second)
    assert again.accepts(again.epoch, second.epoch)


def test_the_end_that_opens_waits_for_its_own_responder(ends):
    first, second = ends
    first.is_drained = False
    exchange(first, second)
    assert first.state is State.OPENING
    first.is_drained = True
    first.tick(100)
    exchange(first, second)
    assert are_open(first, second)


def test_a_lost_connection_can_be_opened_again(ends):
    first, second = ends
    exchange(first, second)
    first.lose()
    assert (first.state, first.incarnation, first.notices[-1]) == (State.LISTENING, 2, Notice.LOST)
    first.open(0)
    exchange(first, second)
    assert are_open(first, second)


@pytest.mark.parametrize(
    "change",
    [
        {"credit_size": 4},
        {"credit_size": 12},
        {"window": 0},
        {"window": 129},
        {"atomic_slots": 0},
        {"credit_size": 9, "credit_request": 0},
        {"credit_size": 5, "credit_request": 9},
        {"credit_size": 6, "credit_response": 4},
        {"credit_size": 5, "credit_atomic": 1},
    ],
)
def test_offers_that_cannot_be_used(change):
    offer = dataclasses.replace(OFFER, epoch=9, **change)
    assert not is_sound(offer)
    listener = make()
    listener.listen()
    listener.receive(Control(offer, None))
    assert not listener.outbox
    assert listener.offers_refused == 1


def test_the_smallest_offer_that_can_be_used():
    assert LARGEST == (272, 272, 32)
    smallest = {"credit_size": 5, "credit_request": 10, "credit_response": 10, "credit_atomic": 2}
    assert is_sound(dataclasses.replace(OFFER, window=1, atomic_slots=1, **smallest))
    assert is_sound(dataclasses.replace(OFFER, window=128, credit_size=11))


def test_no_incarnation_begins_twice_and_all_ends_find_together():
    """Whatever the users of both ends do (four things), and in whatever order, and how often, frames arrive.

    ``explore`` checks that no end opens with the same two epochs again: so a frame of an earlier incarnation is never
    taken.
    """
    worlds = explore(4)
    assert len(worlds) > 5000
    assert all(settle(world) for world in worlds)
