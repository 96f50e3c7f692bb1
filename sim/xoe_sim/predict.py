"""What the golden models say that a workload leads to."""

from __future__ import annotations

import dataclasses

from xoe.cam import Cam, Page, Translation, Window
from xoe.command import Completion
from xoe.config import NicConfig
from xoe.framer import Settings
from xoe.memory import Memory
from xoe.nic import Nic, exchange

from .workload import ALL_RIGHTS, Step, Workload

VID = 1
PCP = (1, 2, 3, 4, 0, 0, 0, 0)  # by traffic class
MAC_BASE = 0x020000000000  # locally administered


def mac(nic: int) -> int:
    """The Ethernet address of a NIC."""
    return MAC_BASE + node(nic)


def node(nic: int) -> int:
    """The node id of a NIC."""
    return nic + 1


@dataclasses.dataclass(frozen=True)
class Prediction:
    """For each phase, NIC and step how it ends; for each NIC what its memory holds in the end."""

    completions: list[list[list[Completion]]]
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


def settings(nic: int, config: NicConfig) -> Settings:
    """What the registers of a NIC hold."""
    return Settings(mac(nic), node(nic), mtu=config.mtu, tagged=True, vid=VID, pcp=PCP)


def predict(work: Workload, config: NicConfig) -> Prediction:
    """Run the workload on two model NICs.

    Within a phase the NICs touch different memory, so it does not matter which is first.
    """
    memories = [Memory(len(content)) for content in work.memory]
    nics = []
    for number, memory in enumerate(memories):
        memory.write(0, bytes(work.memory[number]))
        nic = Nic(config, settings(number, config), memory)
        fill(nic.translations, translations(work, number))
        fill(nic.windows, windows(work, number))
        nics.append(nic)
    completions = [_carry_phase(phase, nics) for phase in work.phases]
    return Prediction(completions, [memory.read(0, memory.size) for memory in memories])


def fill(cam: Cam, pages: list[Page]) -> None:
    """Write pages to a CAM, from entry 0 on.

    Raises:
        ValueError: one is refused.
    """
    for index, page in enumerate(pages):
        if error := cam.write(index, page):
            raise ValueError(f"page {index} at {page.address:#x} is refused: {error.name}")


def _carry_phase(phase: list[list[Step]], nics: list[Nic]) -> list[list[Completion]]:
    """The completions of a phase's steps, whose commands' ids are their places."""
    for nic, steps in zip(nics, phase, strict=True):
        for number, step in enumerate(steps):
            nic.submit(dataclasses.replace(step.command, id=number))
    exchange(*nics)
    found = []
    for nic in nics:
        by_id = {completion.id: completion for completion in nic.completions}
        nic.completions.clear()
        found.append([by_id[number] for number in range(len(by_id))])
    return found
