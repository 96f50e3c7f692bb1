"""From a trace to what each NIC is told to do: addresses, pages, windows, commands.

Ranks are placed on the NICs in equal blocks. A rank's memory is a region padded to a power of two, the regions of a
NIC laid end to end, as in an xGMI hive. A region begins with counters that say how many messages of each sender have
arrived, and then has the rank's receive buffers, message after message.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from xoe.command import Command
from xoe.wire import DATA_MAX, Opcode, Rights

from .trace import Message, RecordedRead, Trace, TraceError

RANKS = 8
PAGE_MIN = 12  # log2 of the smallest page that the CAM can hold
MEMORY_MAX = 1 << 27  # bytes of a NIC's memory that a run fills and compares
COUNTERS = 0  # offset of a rank's counters in its region, 8 bytes for each sender
BUFFERS = 4096  # offset of its receive buffers
VIRTUAL_BASE = 1 << 44
ALL_RIGHTS = Rights.READ | Rights.WRITE | Rights.ATOMIC


@dataclass(frozen=True)
class Page:
    """A translation of NIC ``nic``: 2^``size_log2`` bytes at ``address`` in ``space`` lie on ``target`` at ``base``."""

    nic: int
    space: int
    address: int
    size_log2: int
    target: int
    qp: int
    base: int


@dataclass(frozen=True)
class Step:
    """A command for a NIC, and the message that it is for (None for a recorded read)."""

    command: Command
    message: Message | None = None


@dataclass
class Workload:
    """Everything that a run needs but the hardware.

    Attributes:
        phases: for each phase, for each NIC, its steps in order.
        pages: every NIC's translations.
        memory: for each NIC what its memory holds before the run; its size is a power of two.
        reads: the recorded data, by virtual address, where the trace has any.
    """

    name: str
    nics: int
    phases: list[list[list[Step]]]
    pages: list[Page]
    memory: list[bytearray]
    messages: int
    reads: dict[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True, order=True)
class Connection:
    """A queue pair of NIC ``nic`` is joined to one of NIC ``target``."""

    nic: int
    qp: int
    target: int
    remote_qp: int


def connections(work: Workload) -> list[Connection]:
    """All that the commands need, each once, seen from the NIC whose commands need it first."""
    found: dict[Connection, None] = {}
    for nic, steps in ((nic, steps) for phase in work.phases for nic, steps in enumerate(phase)):
        for command in (step.command for step in steps):
            for page in work.pages:
                is_in = page.nic == nic and page.space == command.address_space
                if is_in and page.address <= command.address < page.address + (1 << page.size_log2):
                    connection = Connection(nic, command.qp, page.target, page.qp)
                    if Connection(page.target, page.qp, nic, command.qp) not in found:
                        found[connection] = None
    return sorted(found)


def build(trace: Trace, seed: int, nics: int = 2) -> Workload:
    """Lay out a trace's memory and turn it into commands.

    Raises:
        TraceError: a rank that does not exist, more memory than a run can fill, or nothing that crosses the link.
    """
    return _from_messages(trace, seed, nics) if trace.messages else _from_reads(trace, seed)


def _log2_size(size: int) -> int:
    return max(PAGE_MIN, (size - 1).bit_length())


def _from_messages(trace: Trace, seed: int, nics: int) -> Workload:
    place = _Placement(trace, nics)
    rng = random.Random(seed)
    memory = [bytearray(rng.randbytes(place.ranks_per_nic << place.region_log2)) for _ in range(nics)]
    for nic in memory:
        for rank in range(place.ranks_per_nic):
            counters = (rank << place.region_log2) + COUNTERS
            nic[counters : counters + 8 * RANKS] = bytes(8 * RANKS)
    phases = []
    crossing = [message for message in trace.messages if place.crosses(message)]
    if not crossing:
        raise TraceError(f"{trace.name}: no message has bytes for a rank on another NIC")
    for phase in sorted({message.phase for message in crossing}):
        steps: list[list[Step]] = [[] for _ in range(nics)]
        for message in crossing:
            if message.phase == phase:
                steps[place.nic(message.src_rank)] += _steps(message, place, rng)
        phases.append(steps)
    return Workload(trace.name, nics, phases, place.pages(), memory, len(crossing))


class _Placement:
    """Which rank is where, and where each message lands."""

    def __init__(self, trace: Trace, nics: int) -> None:
        self.nics = nics
        self.ranks_per_nic = RANKS // nics
        used = [BUFFERS] * RANKS
        self.offsets: dict[Message, int] = {}
        for message in trace.messages:
            for column in ("src_rank", "dst_rank"):
                rank = getattr(message, column)
                if rank >= RANKS:
                    raise TraceError(f"{trace.name}:{message.line}: {column} must be below {RANKS}, not {rank}")
            self.offsets[message] = used[message.dst_rank]
            used[message.dst_rank] += message.size
        self.region_log2 = _log2_size(max(used))
        if self.ranks_per_nic << self.region_log2 > MEMORY_MAX:
            most = MEMORY_MAX // self.ranks_per_nic - BUFFERS
            raise TraceError(f"{trace.name}: one rank may get {most} bytes, not {max(used) - BUFFERS}")

    def nic(self, rank: int) -> int:
        return rank // self.ranks_per_nic

    def crosses(self, message: Message) -> bool:
        return message.size > 0 and self.nic(message.src_rank) != self.nic(message.dst_rank)

    def region(self, rank: int) -> int:
        """Virtual address of a rank's memory, the same for every rank that looks at it."""
        return VIRTUAL_BASE + (rank << self.region_log2)

    def address(self, message: Message) -> int:
        return self.region(message.dst_rank) + self.offsets[message]

    def qp(self, rank: int, peer: int) -> int:
        """The queue pair that ``rank`` uses towards ``peer``, on the NIC of ``rank``."""
        return rank % self.ranks_per_nic * self.ranks_per_nic + peer % self.ranks_per_nic

    def pages(self) -> list[Page]:
        return [
            Page(
                nic=self.nic(src),
                space=src,
                address=self.region(dst),
                size_log2=self.region_log2,
                target=self.nic(dst),
                qp=self.qp(dst, src),
                base=dst % self.ranks_per_nic << self.region_log2,
            )
            for src in range(RANKS)
            for dst in range(RANKS)
            if self.nic(src) != self.nic(dst)
        ]


def _steps(message: Message, place: _Placement, rng: random.Random) -> list[Step]:
    """The operations that carry a message, finished by an atomic on the receiver's counter."""

    def step(opcode: Opcode, address: int, length: int, data: bytes = b"") -> Step:
        return Step(Command(opcode, 0, qp, message.src_rank, address, length, data), message)

    qp = place.qp(message.src_rank, message.dst_rank)
    found = []
    for start in range(0, message.size, DATA_MAX):
        length = min(DATA_MAX, message.size - start)
        address = place.address(message) + start
        if message.is_get:
            found.append(step(Opcode.READ, address, length))
        else:
            found.append(step(Opcode.WRITE, address, length, rng.randbytes(length)))
    # A counter for each sender: what an atomic finds depends on those of its own connection alone, whose order is kept.
    counter = place.region(message.dst_rank) + COUNTERS + 8 * message.src_rank
    return [*found, step(Opcode.ADD, counter, 8, (1).to_bytes(8, "little"))]


def _from_reads(trace: Trace, seed: int) -> Workload:
    """NIC 0 reads at the recorded addresses; NIC 1 has the recorded data there."""
    reads = trace.reads
    if not reads:
        raise TraceError(f"{trace.name}: no Get has its AccessAckData")
    low = min(read.address for read in reads)
    size_log2 = _log2_size(max(read.address + len(read.data) for read in reads) - low)
    start = low >> size_log2 << size_log2
    if any(read.address + len(read.data) > start + (1 << size_log2) for read in reads):
        size_log2 += 1
        start = low >> size_log2 << size_log2
    if 1 << size_log2 > MEMORY_MAX:
        raise TraceError(f"{trace.name}: the reads must lie in one page of {MEMORY_MAX} bytes, not of 2^{size_log2}")
    rng = random.Random(seed)
    memory = [bytearray(rng.randbytes(1 << PAGE_MIN)), bytearray(rng.randbytes(1 << size_log2))]
    steps = [_recorded(read, memory[1], start) for read in reads]
    page = Page(nic=0, space=0, address=start, size_log2=size_log2, target=1, qp=0, base=0)
    return Workload(
        trace.name, 2, [[steps, []]], [page], memory, len(reads), {read.address: read.data for read in reads}
    )


def _recorded(read: RecordedRead, memory: bytearray, start: int) -> Step:
    memory[read.address - start : read.address - start + len(read.data)] = read.data
    return Step(Command(Opcode.READ, address=read.address, length=len(read.data)))
