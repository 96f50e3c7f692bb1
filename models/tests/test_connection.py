"""Opening and closing, frame by frame, and in every order whatever."""

import dataclasses

import pytest

from explore_connection import explore, settle
from xoe.config import NicConfig
from xoe.connection import Connection, Control, Notice, State
from xoe.offer import LARGEST, is_sound, make_offer
from xoe.transport import TransportSettings
from xoe.wire import Message

SETTINGS = TransportSettings(open_timeout=100, retries=2)
OFFER = make_offer(NicConfig())


def make(epoch=0, **offer):
    return Connection(dataclasses.replace(OFFER, **offer), SETTINGS, epoch)


@pytest.fixture
def ends():
    first, second = make(6), make(20)
    second.listen()
    first.open(0)
    return first, second


def hand_over(source, target, keep=lambda number: True):
    """Hand over the frames in an outbox; how many there were."""
    count = len(source.outbox)
    for number in range(count):
        control = source.outbox.popleft()
        if keep(number):
            target.receive(control)
    return count


def exchange(first, second):
    while hand_over(first, second) + hand_over(second, first):
        pass


def are_open(first, second):
    pairs = (first.epoch, first.peer_epoch), (second.peer_epoch, second.epoch)
    return first.state is second.state is State.OPEN and pairs[0] == pairs[1]


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
