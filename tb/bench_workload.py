"""Two NICs joined by a link carry a workload; memories and completions are held against the golden models.

Leaves ``result.json`` and ``wire.pcap`` in the folder that the parameters name. What the traffic got wrong is in the
result, not an exception, so that a run can tell everything that it found.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import TextIO

import cocotb
from cocotb.triggers import ClockCycles, Combine
from cocotb.utils import get_sim_time
from scapy.utils import RawPcapWriter

from xoe.command import Completion
from xoe.config import NicConfig
from xoe.connection import Notice
from xoe.fault_script import Action
from xoe.faults import Injector, Rates
from xoe.transport import TransportSettings
from xoe_hdl.nic import Nic
from xoe_hdl.transport.connection_layouts import Action as Wish
from xoe_sim.predict import Prediction, mac, node, predict, settings, translations, windows
from xoe_sim.report import ETHERNET_OVERHEAD, percentile
from xoe_sim.trace import generate, read_trace
from xoe_sim.workload import Step, Workload, build, connections
from xoe_tb import params, start
from xoe_tb.bench import CLOCK_NS
from xoe_tb.lossy_link import LossyLink
from xoe_tb.nic import NicSide

CONNECT_CLOCKS = 400_000
PATIENCE = 50_000  # clocks without a completion that are called a hang
MISMATCHES_MAX = 10  # told one by one; the rest are counted
IDS = 1 << 16
LINKTYPE_ETHERNET = 1
GOOD = frozenset(  # counters of what went well; acknowledgements that are older than the last are no harm
    (
        "frames",
        "operations",
        "bytes",
        "accepted",
        "host",
        "control",
        "read",
        "write",
        "atomic",
        "fence",
        "new",
        "acks_refused",
    )
)


class Run:
    """A workload under way, and what is found out about it."""

    def __init__(
        self, work: Workload, prediction: Prediction, sides: list[NicSide], progress: TextIO = sys.stderr
    ) -> None:
        self.work, self.prediction, self.sides, self.progress = work, prediction, sides, progress
        self.begun = 0  # clock in which the first phase began
        self.mismatches: list[str] = []
        self.latencies: list[int] = []
        self.completed = 0
        self.total = sum(len(steps) for phase in work.phases for steps in phase)
        self.phase_bounds: list[list[int]] = []

    async def carry(self) -> None:
        """Every phase, each when the one before is complete."""
        self.begun = round(get_sim_time("ns")) // CLOCK_NS
        for number, phase in enumerate(self.work.phases):
            before = [len(side.wire.frames) for side in self.sides]
            tasks = [
                cocotb.start_soon(self._carry_one(side, steps, self.prediction.completions[number][nic]))
                for nic, (side, steps) in enumerate(zip(self.sides, phase, strict=True))
            ]
            watch = cocotb.start_soon(self._watch())
            await Combine(*tasks)
            watch.cancel()
            self.phase_bounds.append(before)
        self.phase_bounds.append([len(side.wire.frames) for side in self.sides])

    async def _carry_one(self, side: NicSide, steps: list[Step], expected: list[Completion]) -> None:
        """One NIC's part of a phase: ask for everything, then judge what comes back, in whatever order."""
        for number, step in enumerate(steps):
            side.commands.send(dataclasses.replace(step.command, id=number % IDS))
        waiting = list(range(len(steps)))
        for _ in steps:
            completion = await side.completions.recv()
            # Ids repeat only after 65,536 commands, far more than are in flight.
            index = next((index for index in waiting if index % IDS == completion.id), None)
            self.completed += 1
            self._show_progress()
            if index is None:
                self._mismatch(f"a completion with id {completion.id}, which nobody waits for")
                continue
            waiting.remove(index)
            now = round(get_sim_time("ns"))
            self.latencies.append((now - side.commands.taken.pop(completion.id)) // CLOCK_NS)
            self._judge(steps[index], completion, expected[index])

    def _judge(self, step: Step, found: Completion, expected: Completion) -> None:
        if (found.status, found.data) != (expected.status, expected.data):
            where = f"{_name(step)}, address {step.command.address:#x}"
            self._mismatch(f"{where}: expected {_ending(expected)}, found {_ending(found)}")

    def _mismatch(self, text: str) -> None:
        self.mismatches.append(text)

    async def _watch(self) -> None:
        """Give up when nothing completes any more."""
        while True:
            before = self.completed
            await ClockCycles(self.sides[0].dut.clk, PATIENCE)
            if self.completed == before:
                counts = [f"NIC {nic}: {_nonzero(side)}" for nic, side in enumerate(self.sides)]
                progress = f"{self.completed} of {self.total} operations are complete"
                raise TimeoutError("\n".join([f"nothing completed for {PATIENCE} clocks; {progress}", *counts]))

    def _show_progress(self) -> None:
        step = max(1, self.total // 20)
        if self.completed % step == 0 or self.completed == self.total:
            clock = round(get_sim_time("ns")) // CLOCK_NS
            self.progress.write(f"  {self.completed:>7,} of {self.total:,} operations, clock {clock:,}\n")
            self.progress.flush()

    def compare_memories(self) -> int:
        """Hold every byte against the prediction; returns how many there were."""
        for nic, (side, expected) in enumerate(zip(self.sides, self.prediction.memory, strict=True)):
            found = side.ram.read(0, len(expected))
            if found == expected:
                continue
            wrong = [at for at in range(len(expected)) if found[at] != expected[at]]
            owners = Counter(self._owner(nic, at) for at in wrong)
            first = {self._owner(nic, at): at for at in reversed(wrong)}
            for owner, count in owners.items():
                at = first[owner]
                self._mismatch(
                    f"{owner}, NIC {nic} memory {at:#x}: expected {expected[at]:#04x}, found {found[at]:#04x}"
                    f" ({count} bytes differ)"
                )
        return sum(map(len, self.prediction.memory))

    def _owner(self, nic: int, at: int) -> str:
        """The message that was to write a byte of memory."""
        for step in itertools.chain.from_iterable(itertools.chain.from_iterable(self.work.phases)):
            command = step.command
            for page in self.work.pages:
                start = command.address - page.address + page.base
                is_page = page.space == command.address_space and page.target == nic
                if is_page and start <= at < start + command.length:
                    return _name(step)
        return "no message"


def _name(step: Step) -> str:
    message = step.message
    if message is None:
        return "recorded read"
    return (
        f"message {message.src_rank} to {message.dst_rank} of phase {message.phase} ({message.op}, line {message.line})"
    )


def _ending(completion: Completion) -> str:
    return f"status {completion.status}, {completion.data.hex() or 'no data'}"


def figures(run: Run, width: int, compared: int) -> dict:
    """The result, but for what only the caller of the simulator knows."""
    frames = [frame for side in run.sides for frame in side.wire.frames]
    step = width // 8
    busiest = max(_busy_spans(run, step), key=lambda span: span[0])
    return {
        "workload": run.work.name,
        "width": width,
        "messages": run.work.messages,
        "operations": run.completed,
        "data_bytes": sum(step.command.length for phase in run.work.phases for steps in phase for step in steps),
        "frames": len(frames),
        "frame_bytes": sum(len(data) for data, _, _ in frames),
        "wire_bytes": sum(len(data) + ETHERNET_OVERHEAD for data, _, _ in frames),
        "used_beats": sum(side.wire.beats for side in run.sides),
        "ideal_beats": math.ceil(sum(len(data) for data, _, _ in frames) / step),
        "busiest_ideal": busiest[0],
        "busiest_clocks": busiest[1],
        "cycles": round(get_sim_time("ns")) // CLOCK_NS - run.begun,
        "setup_cycles": run.begun,
        "latency_median": percentile(run.latencies, 0.5),
        "latency_p99": percentile(run.latencies, 0.99),
        "drops": _drops(run.sides),
        "compared_bytes": compared,
        "mismatches": run.mismatches[:MISMATCHES_MAX],
        "mismatches_untold": max(0, len(run.mismatches) - MISMATCHES_MAX),
        "verdict": "failed" if run.mismatches else "passed",
    }


def _busy_spans(run: Run, step: int):
    """For each phase and direction: the beats that its bytes need, and the clocks from its first beat to its last."""
    for begin, end in itertools.pairwise(run.phase_bounds):
        for nic, side in enumerate(run.sides):
            frames = side.wire.frames[begin[nic] : end[nic]]
            if frames:
                clocks = (frames[-1][2] - frames[0][1]) // CLOCK_NS + 1
                yield math.ceil(sum(len(data) for data, _, _ in frames) / step), clocks


def _drops(sides: list[NicSide]) -> dict[str, int]:
    """Everything dropped, refused or faulted, over all NICs."""
    total: Counter = Counter()
    for side in sides:
        counts = side.flat_counters()
        total.update({name: count for name, count in counts.items() if name.split(".")[-1] not in GOOD})
    return dict(total)


def _nonzero(side: NicSide) -> str:
    """Every counter of a NIC that is not 0."""
    return ", ".join(f"{name} {count}" for name, count in side.flat_counters().items() if count)


def write_pcap(path: Path, sides: list[NicSide]) -> None:
    """All frames of the wire in the order in which they ended."""
    frames = sorted((frame for side in sides for frame in side.wire.frames), key=lambda frame: frame[2])
    with RawPcapWriter(str(path), linktype=LINKTYPE_ETHERNET, nano=True) as writer:
        writer.write_header(None)
        for data, _, ended in frames:
            writer.write_packet(data, sec=ended // 10**9, usec=ended % 10**9)


def make_links(dut, options: dict) -> list[LossyLink]:
    """What the bench puts between the NICs, if they are not joined: faults at random."""
    if not options["faults"]:
        return []
    links = []
    for index in range(2):
        direction = f"{index}>{index ^ 1}"
        injector = Injector((), Rates(**options["faults"]), options["seed"] * 2 + index, direction, keep_log=False)
        links.append(LossyLink(dut, f"n{index}_m_axis", f"n{index ^ 1}_s_axis", injector))
    return links


def injected(links: list[LossyLink]) -> dict[str, int]:
    """How often each fault was, in both directions."""
    return {action.value: sum(link.injector.counts[action] for link in links) for action in Action if links}


async def _limit(dut, sides: list[NicSide]) -> None:
    """Opening takes no longer than this, however many of its frames are lost."""
    await ClockCycles(dut.clk, CONNECT_CLOCKS)
    counts = [f"NIC {nic}: {_nonzero(side)}" for nic, side in enumerate(sides)]
    raise TimeoutError("\n".join([f"not all connections are open after {CONNECT_CLOCKS} clocks", *counts]))


async def connect(work: Workload, sides: list[NicSide]) -> None:
    """Open every connection, from one end; wait for both.

    Raises:
        ConnectionError: one did not open.
    """
    expected = [0] * len(sides)
    for each in connections(work):
        ends = ((each.target, each.remote_qp, each.nic, each.qp), (each.nic, each.qp, each.target, each.remote_qp))
        for (nic, qp, peer, remote_qp), wish in zip(ends, (Wish.LISTEN, Wish.OPEN), strict=True):
            sides[nic].connect(wish, qp=qp, mac=mac(peer), node=node(peer), remote_qp=remote_qp)
            expected[nic] += 1
    for side, count in zip(sides, expected, strict=True):
        for _ in range(count):
            qp, notice = await side.notice()
            if notice is not Notice.OPENED:
                raise ConnectionError(f"{side.prefix} queue pair {qp}: {notice.name}")


@cocotb.test()
async def workload(dut) -> None:
    """Carry the workload and leave the result."""
    options = params()
    config, seed, output = NicConfig(**options["config"]), options["seed"], Path(options["output"])
    trace = read_trace(Path(options["trace"])) if options["trace"] else generate(seed)
    work = build(trace, seed)
    nic = Nic(config)
    prediction = predict(work, nic.config)
    for index in range(work.nics):
        getattr(dut, f"n{index}_rst").value = 0
    sides = [NicSide(dut, f"n{index}_", nic, len(content)) for index, content in enumerate(work.memory)]
    links = make_links(dut, options)
    for index, side in enumerate(sides):
        side.ram.write(0, bytes(work.memory[index]))
        transport = dataclasses.asdict(TransportSettings(**options["transport"]))
        side.configure(**dataclasses.asdict(settings(index, nic.config)), **transport)
    await start(dut)
    for index, side in enumerate(sides):
        await side.write_translations(translations(work, index))
        await side.write_windows(windows(work, index))
    with open(options["progress"], "a") as progress:
        run = Run(work, prediction, sides, progress)
        try:
            watch = cocotb.start_soon(_limit(dut, sides))
            await connect(work, sides)
            watch.cancel()
            await run.carry()
        finally:
            write_pcap(output / "wire.pcap", sides)
    compared = run.compare_memories()
    (output / "result.json").write_text(
        json.dumps(figures(run, config.data_width, compared) | {"injected": injected(links)})
    )
