from pathlib import Path

import pytest
from amaranth.hdl import Array, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out

from vectors import VECTORS
from xoe_hdl.layouts import axis
from xoe_sim.build import BenchError, run_bench

DOCS = Path(__file__).parents[1] / "docs"


class Repeater(wiring.Component):
    """Somebody else's design: sends one frame again and again."""

    def __init__(self, frame: bytes, width: int) -> None:
        self.frame, self.width = frame, width
        super().__init__({"m_axis": Out(stream.Signature(axis(width)))})

    def elaborate(self, platform):
        m = Module()
        step = self.width // 8
        chunks = [self.frame[at : at + step] for at in range(0, len(self.frame), step)]
        at = Signal(range(len(chunks)))
        beat = self.m_axis.payload
        m.d.comb += [
            self.m_axis.valid.eq(1),
            beat.data.eq(Array(Const(int.from_bytes(chunk, "little"), self.width) for chunk in chunks)[at]),
            beat.keep.eq(Array(Const((1 << len(chunk)) - 1, step) for chunk in chunks)[at]),
            beat.last.eq(at == len(chunks) - 1),
        ]
        with m.If(self.m_axis.ready):
            m.d.sync += at.eq(0)
            with m.If(~beat.last):
                m.d.sync += at.eq(at + 1)
        return m


@pytest.mark.parametrize("width", [64, 512])
def test_the_documented_bench_takes_a_good_frame(width):
    run_bench(Repeater(VECTORS["atomics"], width), f"repeater_{width}", "example_bench")


def test_the_documented_bench_refuses_a_broken_frame():
    broken = bytearray(VECTORS["atomics"])
    broken[50] ^= 1
    with pytest.raises(BenchError, match="not a frame of ours: the end-to-end CRC is wrong"):
        run_bench(Repeater(bytes(broken), 64), "repeater_broken", "example_bench")


def test_the_document_shows_the_bench_as_it_is():
    assert (DOCS / "example_bench.py").read_text() in (DOCS / "models.md").read_text()
