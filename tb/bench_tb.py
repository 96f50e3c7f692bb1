"""The bench classes held against a stream FIFO."""

from __future__ import annotations

from random import Random

import cocotb

from xoe_tb import PAUSES, FrameSink, FrameSource, start


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(source_pause=list(PAUSES), sink_pause=list(PAUSES))
async def frames_pass(dut, source_pause, sink_pause):
    rng = Random(cocotb.RANDOM_SEED)
    source = FrameSource(dut, "s_axis", PAUSES[source_pause](rng))
    sink = FrameSink(dut, "m_axis", PAUSES[sink_pause](rng))
    await start(dut)
    frames = [(rng.randbytes(size), rng.random() < 0.2) for size in range(1, 2 * len(dut.s_axis_tdata) // 8 + 2)]
    for frame, bad in frames:
        source.send(frame, bad)
    for expected in frames:
        assert await sink.recv() == expected
