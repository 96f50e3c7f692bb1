"""How much data gets through in a clock, over links of several lengths that lose frames: points that are measured.

Two NICs; A asks for as much as it may at any time, for a fixed number of clocks, and what completes is counted. Each
point is a test, and adds a line to the file that the parameters name.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import cocotb
from cocotb.clock import Clock
from cocotb.utils import get_sim_time

from xoe.command import Command
from xoe.config import NicConfig
from xoe.connection import Notice
from xoe.faults import Injector, Rates
from xoe.pair import PEERS, local_qp
from xoe.transport import TransportSettings
from xoe.wire import DATA_MAX, Opcode, Status
from xoe_hdl.nic import Nic
from xoe_sim.report import percentile
from xoe_tb import params
from xoe_tb.bench import CLOCK_NS
from xoe_tb.ends import Cable, make_ends

IDS = 1 << 16
OPEN_CLOCKS = 100_000  # opening takes no longer, however many of its frames are lost
SPAN = 1 << 18  # bytes that are written and read, round and round


class Point:
    """A measurement.

    ``point`` has ``opcode`` ("read" or "write"), ``loss`` (0..1), ``delay`` (clocks each way), ``go_back_n``,
    ``under_way`` (commands at a time), ``transport`` (settings) and ``clocks``: those before the measurement and those
    of it.
    """

    def __init__(self, dut, point: dict) -> None:
        self.point = point
        nic = Nic(NicConfig(**params()["config"]))
        transport = TransportSettings(**point["transport"], go_back_n=point["go_back_n"])
        rng = Random(params()["seed"])
        # Frames are as large as can be.
        self.ends = make_ends(dut, ["hardware"] * 2, nic, transport, gather=nic.config.mtu)
        injectors = {
            name: Injector(rates=Rates(drop=point["loss"]), seed=rng.getrandbits(32), keep_log=False) for name in PEERS
        }
        self.cable = Cable(dut, self.ends, injectors, point["delay"])
        self.opcode, self.data = Opcode[point["opcode"].upper()], rng.randbytes(DATA_MAX)
        self.asked = self.under_way = self.bytes = 0
        self.latencies: list[int] = []

    async def run(self) -> dict:
        """Measure; the point with its figures."""
        await self._open()
        warm, measured = self.point["clocks"]
        await self._carry(warm)
        self.bytes, before = 0, self._counters()
        self.latencies.clear()
        await self._carry(measured)
        after = self._counters()
        return {
            **self.point,
            "goodput": self.bytes / measured,
            "latency_median": percentile(self.latencies, 0.5),
            "latency_p99": percentile(self.latencies, 0.99),
            "completed": len(self.latencies),
            **{name: after[name] - before[name] for name in after},
        }

    async def _open(self) -> None:
        """Loss there is from the beginning, so that openings are repeated too."""
        await self.cable.reset()
        for name, end in self.ends.items():
            end.join(local_qp(name, 0, end.queue_pairs))
        opened: set[str] = set()
        for _ in range(OPEN_CLOCKS):
            await self.cable.step()
            for name, end in self.ends.items():
                while end.notices:
                    opened |= {name} if end.notices.popleft()[1] is Notice.OPENED else set()
            if len(opened) == len(PEERS):
                return
        raise TimeoutError(f"the connection did not open in {OPEN_CLOCKS} clocks")

    async def _carry(self, clocks: int) -> None:
        end = self.ends["A"]
        for _ in range(clocks):
            await self.cable.step()
            while end.completions:
                completion = end.completions.popleft()
                assert completion.status == Status.DONE, f"{completion}"
                self.under_way -= 1
                self.bytes += DATA_MAX
                taken = end.side.commands.taken.pop(completion.id)
                self.latencies.append((round(get_sim_time("ns")) - taken) // CLOCK_NS)
            while self.under_way < self.point["under_way"]:
                self._ask()

    def _ask(self) -> None:
        address = self.asked * DATA_MAX % SPAN
        data = self.data if self.opcode is Opcode.WRITE else b""
        self.ends["A"].submit(Command(self.opcode, self.asked % IDS, 0, 0, address, DATA_MAX, data))
        self.asked += 1
        self.under_way += 1

    def _counters(self) -> dict[str, int]:
        sender = "A" if self.opcode is Opcode.WRITE else "B"
        counters = self.ends[sender].side.counters()["egress"]
        return {
            "frames": counters["framer"]["frames"],
            "wire_bytes": counters["framer"]["bytes"],
            "resent": counters["sender"]["resent"],
            "timeouts": counters["sender"]["timeouts"],
        }


@cocotb.test()
@cocotb.parametrize(number=list(range(len(params()["points"]))))
async def point(dut, number: int) -> None:
    """Measure a point, and keep it."""
    Clock(dut.clk, CLOCK_NS, unit="ns").start()
    result = await Point(dut, params()["points"][number]).run()
    with open(Path(params()["output"]), "a") as output:
        output.write(json.dumps(result) + "\n")
    with open(params()["progress"], "a") as progress:
        kind = "go-back-N" if result["go_back_n"] else "selective repeat"
        where = f"{result['opcode']}s, {result['rtt_us']:g} us, {100 * result['loss']:g} % loss, {kind}"
        progress.write(f"  {where}: {result['goodput']:.1f} bytes a clock\n")
