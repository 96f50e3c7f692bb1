"""What a NIC with transport counts besides what its blocks count."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum

from .channel import Channel
from .receiver import Verdict


class Traffic(IntEnum):
    """Each has a counter of its name in small letters. Those up to NO_ROOM are frames that were dropped, by cause."""

    NO_CONNECTION = 0  # to a queue pair that has no other end
    STRANGER = 1  # not from the connection's other end
    OTHER_EPOCH = 2  # of another incarnation, or of none
    BAD_BODY = 3  # an acknowledgement or a control frame whose body is too short
    BAD_CLASS = 4  # data of a class that has no credits
    BAD_OFFER = 5  # an OPEN that offers what cannot be used
    DUPLICATE = 6
    OUTSIDE = 7  # beyond the window
    OUT_OF_ORDER = 8  # only with go-back-N
    NO_ROOM = 9  # more than was granted
    MISPLACED = 10  # a request in a frame of responses: ignored
    OLD_ANSWER = 11  # an answer whose connection has ended: not sent
    NOT_CONNECTED = 12  # commands
    CONNECTION_LOST = 13  # commands
    DATA_SENT = 14  # for the first time
    RESENT = 15
    ACKS_SENT = 16
    CONTROLS_SENT = 17
    PROBES = 18
    TIMEOUTS = 19
    ACKS_REFUSED = 20  # older than the last one, or of frames never sent
    CREDITS_STALE = 21  # counts of freed credits that are not new
    CREDITS_RECONCILED = 22  # counts of credits that both ends had different
    SLOT_WAITS = 23  # atomics that found no slot


VERDICTS = {
    Verdict.DUPLICATE: Traffic.DUPLICATE,
    Verdict.OUTSIDE: Traffic.OUTSIDE,
    Verdict.OUT_OF_ORDER: Traffic.OUT_OF_ORDER,
    Verdict.NO_ROOM: Traffic.NO_ROOM,
}


def channel_counts(channel: Channel) -> Counter[Traffic]:
    """What one incarnation of a connection has counted itself."""
    sender = channel.sender
    counts = Counter({event: channel.receiver.counters[verdict] for verdict, event in VERDICTS.items()})
    counts[Traffic.RESENT] = sender.resent
    counts[Traffic.PROBES] = sender.probes
    counts[Traffic.TIMEOUTS] = sender.timeouts
    counts[Traffic.ACKS_REFUSED] = sender.acks_refused
    counts[Traffic.CREDITS_STALE] = channel.credits_stale
    counts[Traffic.CREDITS_RECONCILED] = channel.credits_reconciled
    counts[Traffic.SLOT_WAITS] = channel.slot_waits
    return counts
