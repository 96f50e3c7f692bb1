"""Every way in which two ends of a connection can get along, over a network that may do anything with a frame.

Frames are never taken off the network: each may arrive any number of times, in any order, or never.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from xoe.config import NicConfig
from xoe.connection import Connection, Control, Notice, State
from xoe.offer import make_offer
from xoe.transport import TransportSettings

OFFER = make_offer(NicConfig())
SETTINGS = TransportSettings()
FIRST = (7, 20)  # epochs


class EndState(NamedTuple):
    """What is remembered of an end: ``opened`` has the pairs of epochs that it was open with, own epoch first."""

    state: State = State.CLOSED
    epoch: int = 0
    peer_epoch: int = 0
    opened: tuple[tuple[int, int], ...] = ()


class World(NamedTuple):
    """Both ends; the frames that each has sent (controls, and epochs of data); what the users may still do."""

    ends: tuple[EndState, EndState]
    sent: tuple[frozenset, frozenset]
    left: int


def start(left):
    return World(tuple(EndState(epoch=epoch) for epoch in FIRST), (frozenset(), frozenset()), left)


def wake(end):
    connection = Connection(OFFER, SETTINGS, end.epoch)
    connection.state, connection.peer_epoch = end.state, end.peer_epoch
    return connection


def apply(world, index, action):
    """The world after one thing has happened to an end; ``action`` is given its connection."""
    connection = wake(world.ends[index])
    action(connection)
    opened = world.ends[index].opened
    if Notice.OPENED in connection.notices:
        pair = (connection.epoch, connection.peer_epoch)
        assert pair not in opened, f"end {index} opens {pair} again"
        opened = (*opened, pair)
    sent = {
        (control.body.message, control.body.epoch, control.echo, control.body.is_open) for control in connection.outbox
    }
    if connection.state is State.OPEN:
        sent.add(("data", connection.peer_epoch, connection.epoch))
    end = EndState(connection.state, connection.epoch, connection.peer_epoch, opened)
    ends = tuple(end if at == index else world.ends[at] for at in (0, 1))
    frames = tuple(world.sent[at] | sent if at == index else world.sent[at] for at in (0, 1))
    return World(ends, frames, world.left)


def deliver(frame):
    """What the arrival of a frame does."""

    def arrive(connection):
        if frame[0] == "data":
            is_taken = connection.accepts(frame[1], frame[2])
            is_present = frame[1:] == (connection.epoch, connection.peer_epoch)
            assert is_taken == (is_present and connection.state is State.OPEN)
            return
        message, epoch, echo, is_open = frame
        body = dataclasses.replace(
            OFFER, message=message, epoch=epoch, echo_valid=int(echo is not None), is_open=is_open
        )
        connection.receive(Control(body, echo))

    return arrive


def reset(connection):
    connection.state, connection.peer_epoch = State.CLOSED, 0


def give_up(connection):
    """As after the last repetition of OPEN or CLOSE."""
    if connection.state in (State.OPENING, State.CLOSING):
        connection.state = State.LISTENING if connection.state is State.OPENING else State.CLOSED


def lose(connection):
    if connection.state is State.OPEN:
        connection.lose()


USER = (
    lambda connection: connection.open(0),
    lambda connection: connection.close(0),
    lambda connection: connection.listen(),
    reset,
    lose,
    give_up,
)


def successors(world):
    """All worlds that may come next."""
    for index in (0, 1):
        for frame in world.sent[1 - index]:
            yield apply(world, index, deliver(frame))
        if world.left:
            for action in USER:
                yield apply(world, index, action)._replace(left=world.left - 1)


def explore(left, most=None):
    """All worlds that can be reached with so many actions of users, or ``most`` of them."""
    seen, fresh = {start(left)}, [start(left)]
    while fresh:
        following = []
        for world in fresh:
            for later in successors(world):
                if later not in seen:
                    seen.add(later)
                    following.append(later)
            if most is not None and len(seen) > most:
                return seen
        fresh = following
    return seen


def settle(world):
    """Whether both ends get open with each other if the network works from now on, and their users want it.

    The first end opens whenever it can, the second one listens. A round is a sync interval: open ends say something,
    and what nobody answered in it is given up. An end that has heard nothing for four of them gives its connection up.
    """
    connections, silent = [wake(end) for end in world.ends], [0, 0]
    for _ in range(12):
        connections[1].listen()
        connections[0].open(0)
        heard = [False, False]
        for index, connection in enumerate(connections):
            if connection.state in (State.OPENING, State.CLOSING):
                connection._ask(0)
            if connection.state is State.OPEN:  # an acknowledgement, as after each sync interval
                heard[1 - index] = connections[1 - index].accepts(connection.peer_epoch, connection.epoch)
        _exchange(connections)
        if all(heard):
            return True
        for index, connection in enumerate(connections):
            give_up(connection)
            silent[index] = 0 if heard[index] or connection.state is not State.OPEN else silent[index] + 1
            if silent[index] == 4:
                lose(connection)
    return False


def _exchange(connections):
    """Hand control frames to and fro until there are none."""
    while any(connection.outbox for connection in connections):
        for index, connection in enumerate(connections):
            while connection.outbox:
                connections[1 - index].receive(connection.outbox.popleft())
