"""Two ends of a connection, and what they say to each other."""

import dataclasses

from xoe.config import NicConfig
from xoe.connection import Connection, State
from xoe.offer import make_offer
from xoe.transport import TransportSettings

SETTINGS = TransportSettings(open_timeout=100, retries=2)
OFFER = make_offer(NicConfig())


def make(epoch=0, **offer):
    return Connection(dataclasses.replace(OFFER, **offer), SETTINGS, epoch)


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
