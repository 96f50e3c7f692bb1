"""Two ends, A and B, as they are joined to be tried out: who they are, and how each reaches the other's memory."""

from __future__ import annotations

from .cam import Page, Translation, Window
from .framer import GATHER, Settings
from .wire import Rights

PEERS = {"A": "B", "B": "A"}
MACS = {"A": 0x02_00_00_00_00_0A, "B": 0x02_00_00_00_00_0B}
NODES = {"A": 10, "B": 11}
SIZE_LOG2 = 20  # of each end's memory
ALL = Rights.READ | Rights.WRITE | Rights.ATOMIC


def settings(name: str, mtu: int, gather: int = GATHER) -> Settings:
    """What an end's registers hold."""
    return Settings(MACS[name], NODES[name], mtu=mtu, gather=gather)


def local_qp(name: str, qp: int, queue_pairs: int) -> int:
    """The number that an end has for a connection, which is that of A: B's is one more, so that they differ."""
    return qp if name == "A" else remote_qp("A", qp, queue_pairs)


def remote_qp(name: str, qp: int, queue_pairs: int) -> int:
    """The other end's queue pair that one of this end is joined to."""
    return (qp + 1 if name == "A" else qp - 1) % queue_pairs


def translations(name: str, queue_pairs: int) -> list[Page[Translation]]:
    """An address space for each queue pair, with the number of it, in which the other's memory begins at 0."""
    peer = PEERS[name]
    ends = (remote_qp(name, qp, queue_pairs) for qp in range(queue_pairs))
    return [Page(qp, 0, SIZE_LOG2, Translation(0, MACS[peer], NODES[peer], end, ALL)) for qp, end in enumerate(ends)]


def windows(name: str) -> list[Page[Window]]:
    """The other may touch all of this end's memory."""
    return [Page(NODES[PEERS[name]], 0, SIZE_LOG2, Window(ALL))]
