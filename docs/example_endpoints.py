"""Two endpoints, joined by a network that loses frames: one adds to a counter of the other, exactly once each time."""

from xoe.cam import Page, Translation, Window
from xoe.command import Command
from xoe.config import NicConfig
from xoe.endpoint import Endpoint
from xoe.fault_script import Script
from xoe.faults import Injector, Rates
from xoe.framer import Settings
from xoe.memory import Memory
from xoe.network import Link, run
from xoe.transport import TransportSettings
from xoe.wire import Opcode, Rights

MACS, NODES = {"A": 0x02_00_00_00_00_0A, "B": 0x02_00_00_00_00_0B}, {"A": 1, "B": 2}
ALL = Rights.READ | Rights.WRITE | Rights.ATOMIC
SCRIPT = Script.parse("B>A drop response nth=1  # the first answer, and its first copy\nB>A drop response nth=2")


def make(name: str) -> Endpoint:
    """One end, with 64 KB that the other may touch."""
    config = NicConfig(queue_pairs=4)
    end = Endpoint(config, Settings(MACS[name], NODES[name], mtu=4096), TransportSettings(), Memory(1 << 16))
    for node in NODES.values():
        end.windows.write(node, Page(node, 0, 16, Window(ALL)))
    return end


def main() -> list[int]:
    """What the counter was before each of a hundred additions."""
    ends = {name: make(name) for name in MACS}
    links = {
        "A>B": Link(delay=500, rate=8, injector=Injector(rates=Rates(drop=0.05), seed=1)),
        "B>A": Link(delay=500, rate=8, injector=Injector(SCRIPT.rules)),
    }
    # A's addresses from 0x10000 on are B's memory, by queue pair 0 here and there.
    ends["A"].translations.write(0, Page(0, 0x10000, 16, Translation(0, MACS["B"], NODES["B"], 0, ALL)))
    ends["B"].listen(0, MACS["A"], NODES["A"], 0)
    ends["A"].connect(0, MACS["B"], NODES["B"], 0, now=0)
    now = run(ends, links, lambda now: ends["A"].state(0).name == "OPEN")
    for number in range(100):
        ends["A"].submit(Command(Opcode.ADD, number, 0, 0, 0x10008, 8, (1).to_bytes(8, "little")))
    found: dict[int, int] = {}

    def until(now: int) -> bool:
        while ends["A"].completions:
            completion = ends["A"].completions.popleft()
            found[completion.id] = int.from_bytes(completion.data, "little")
        return len(found) == 100

    now = run(ends, links, until, now)
    print(f"{now} clocks; lost: {sum(sum(link.injector.counts.values()) for link in links.values())} frames")
    return [found[number] for number in range(100)]


if __name__ == "__main__":
    assert main() == list(range(100))
