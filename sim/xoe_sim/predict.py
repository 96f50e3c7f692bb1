"""What the golden models say that a workload leads to."""

from __future__ import annotations

from dataclasses import dataclass

from xoe.cam import Cam, Page, Translation, Window
from xoe.memory import Memory
from xoe.operation import Operation
from xoe.responder import Responder
from xoe.wire import Status

from .workload import ALL_RIGHTS, Command, Workload

MAC_BASE = 0x020000000000  # locally administered


def mac(nic: int) -> int:
    """The Ethernet address of a NIC."""
    return MAC_BASE + node(nic)


def node(nic: int) -> int:
    """The node id of a NIC."""
    return nic + 1


@dataclass(frozen=True)
class Expected:
    """How a command has to end."""

    status: int
    data: bytes


@dataclass(frozen=True)
class Prediction:
    """For each phase, NIC and command how it ends; for each NIC what its memory holds in the end."""

    completions: list[list[list[Expected]]]
    memory: list[bytes]


def translations(work: Workload, nic: int) -> list[Page[Translation]]:
    """The pages of a NIC's translation CAM, entry by entry."""
    return [
        Page(
            page.space,
            page.address,
            page.size_log2,
            Translation(page.base, mac(page.target), node(page.target), page.qp, ALL_RIGHTS),
        )
        for page in work.pages
        if page.nic == nic
    ]


def windows(work: Workload, nic: int) -> list[Page[Window]]:
    """The pages of a NIC's table of windows: every other NIC may touch all of its memory."""
    size_log2 = len(work.memory[nic]).bit_length() - 1
    return [Page(node(peer), 0, size_log2, Window(ALL_RIGHTS)) for peer in range(work.nics) if peer != nic]


def predict(work: Workload) -> Prediction:
    """Run the workload on the models.

    Within a phase the NICs touch different memory, so it does not matter which is first.
    """
    memories = [Memory(len(content)) for content in work.memory]
    cams: list[Cam[Translation]] = []
    responders = []
    for nic, memory in enumerate(memories):
        memory.write(0, bytes(work.memory[nic]))
        cams.append(_filled(translations(work, nic)))
        responders.append(Responder(memory, _filled(windows(work, nic))))
    completions = [
        [[_execute(command, nic, cams[nic], responders) for command in commands] for nic, commands in enumerate(phase)]
        for phase in work.phases
    ]
    return Prediction(completions, [memory.read(0, memory.size) for memory in memories])


def _filled(pages: list[Page]) -> Cam:
    cam: Cam = Cam(max(1, len(pages)))
    for index, page in enumerate(pages):
        if error := cam.write(index, page):
            raise ValueError(f"page {index} at {page.address:#x}: {error.name}")
    return cam


def _execute(command: Command, nic: int, cam: Cam[Translation], responders: list[Responder]) -> Expected:
    found = cam.lookup(command.space, command.address, command.length)
    if not found.hit or found.crosses or found.payload is None:
        return Expected(Status.OUT_OF_RANGE if found.hit else Status.TRANSLATION_FAULT, b"")
    request = Operation(command.opcode, 0, found.address, command.length, command.data)
    response = responders[found.payload.node - node(0)].execute(request, node(nic))
    return Expected(response.status, response.data)
