import enum

import pytest
from amaranth.hdl import Module, Shape, Signal
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from xoe_hdl.layouts import CFG, axis, operation_beat
from xoe_sim.build import BenchError, BuildError, run_bench
from xoe_tb.layout import pack, unpack

SIMS = ["verilator", "icarus"]


class Fault(enum.IntEnum):
    NONE = 0
    PAYLOAD_CHANGES = 1
    VALID_FALLS = 2
    KEEP_HAS_A_HOLE = 3
    KEEP_IS_PARTIAL = 4
    GAP = 5
    HEADER_CHANGES = 6
    LAST_IS_EARLY = 7


class Queue(wiring.Component):
    """Four payloads deep."""

    def __init__(self, payload):
        super().__init__({"i": In(stream.Signature(payload)), "o": Out(stream.Signature(payload))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = store = fifo.SyncFIFOBuffered(width=Shape.cast(self.i.payload.shape()).width, depth=4)
        m.d.comb += [
            store.w_data.eq(self.i.payload),
            store.w_en.eq(self.i.valid),
            self.i.ready.eq(store.w_rdy),
            self.o.payload.eq(store.r_data),
            self.o.valid.eq(store.r_rdy),
            store.r_en.eq(self.o.ready),
        ]
        return m


class Breaker(wiring.Component):
    """Passes a stream on, but for the rule that it breaks."""

    def __init__(self, payload):
        super().__init__({"i": In(stream.Signature(payload)), "o": Out(stream.Signature(payload)), "fault": In(Fault)})

    def elaborate(self, platform):
        m = Module()
        i, o = self.i, self.o
        stalled, inside = Signal(), Signal()
        m.d.comb += [o.payload.eq(i.payload), o.valid.eq(i.valid), i.ready.eq(o.ready & o.valid)]
        m.d.sync += stalled.eq(o.valid & ~o.ready)
        with m.If(i.ready):
            m.d.sync += inside.eq(~i.payload.last)
        with m.Switch(self.fault):
            with m.Case(Fault.PAYLOAD_CHANGES):
                m.d.comb += o.payload.as_value()[0].eq(i.payload.as_value()[0] ^ stalled)
            with m.Case(Fault.VALID_FALLS):
                m.d.comb += o.valid.eq(i.valid & ~stalled)
            with m.Case(Fault.GAP):
                m.d.sync += stalled.eq(i.ready & ~i.payload.last)
                m.d.comb += o.valid.eq(i.valid & ~stalled)
            with m.Case(Fault.LAST_IS_EARLY):
                m.d.comb += o.payload.last.eq(1)
        if "keep" in i.payload.shape().members:
            with m.If(self.fault == Fault.KEEP_HAS_A_HOLE):
                m.d.comb += o.payload.keep[0].eq(0)
            with m.If((self.fault == Fault.KEEP_IS_PARTIAL) & ~i.payload.last):
                m.d.comb += o.payload.keep[-1].eq(0)
        else:
            with m.If((self.fault == Fault.HEADER_CHANGES) & inside):
                m.d.comb += o.payload.data.route.node.eq(0)
        return m


class Loops(wiring.Component):
    """A stream of frames, one of operations and one of plain numbers, each through a queue."""

    def __init__(self, width):
        self.width = width
        self.frames, self.operations = axis(width), operation_beat(width)
        self.number = data.StructLayout({"low": 4, "high": 5})
        super().__init__(
            {
                "fault": In(Fault),
                "s_axis": In(stream.Signature(self.frames)),
                "m_axis": Out(stream.Signature(self.frames)),
                "i": In(stream.Signature(self.operations)),
                "o": Out(stream.Signature(self.operations)),
                "i_number": In(stream.Signature(self.number)),
                "o_number": Out(stream.Signature(self.number)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for name, payload, i, o in (
            ("frames", self.frames, self.s_axis, self.m_axis),
            ("operations", self.operations, self.i, self.o),
        ):
            m.submodules[name] = queue = Queue(payload)
            m.submodules[f"{name}_breaker"] = breaker = Breaker(payload)
            m.d.comb += breaker.fault.eq(self.fault)
            wiring.connect(m, wiring.flipped(i), queue.i)
            wiring.connect(m, queue.o, breaker.i)
            wiring.connect(m, breaker.o, wiring.flipped(o))
        m.submodules.numbers = numbers = Queue(self.number)
        wiring.connect(m, wiring.flipped(self.i_number), numbers.i)
        wiring.connect(m, numbers.o, wiring.flipped(self.o_number))
        return m


@pytest.mark.parametrize("sim", SIMS)
@pytest.mark.parametrize("width", [64, 512])
def test_sources_and_sinks(width, sim):
    run_bench(Loops(width), f"loops_{width}", "bench_tb", {"fault": Fault.NONE}, sim)


@pytest.mark.parametrize("sim", SIMS)
@pytest.mark.parametrize(
    ("fault", "words", "testcase"),
    [
        (Fault.PAYLOAD_CHANGES, "which was not taken yet", "frames_pass"),
        (Fault.VALID_FALLS, "tvalid fell before", "frames_pass"),
        (Fault.KEEP_HAS_A_HOLE, "tkeep 0x0 on a beat with tlast 1", "frames_pass"),
        (Fault.KEEP_IS_PARTIAL, "tkeep 0x7f on a beat with tlast 0", "frames_pass"),
        (Fault.GAP, "a gap after beat 1 of a frame", "full_speed_is_a_beat_a_clock"),
        (Fault.HEADER_CHANGES, "header or route changed at beat 1", "operations_pass"),
        (Fault.LAST_IS_EARLY, "1 beats for an operation of 2 words", "operations_pass"),
    ],
)
def test_sinks_notice_what_breaks_the_rules(fault, words, testcase, sim):
    with pytest.raises(BenchError, match=words):
        run_bench(Loops(64), "loops_64", "bench_tb", {"fault": fault}, sim, testcase=testcase)


def test_both_simulators_give_the_same_log():
    logs = []
    for sim in SIMS:
        folder = run_bench(Loops(64), "loops_64", "bench_tb", {"fault": Fault.NONE}, sim, seed=5)
        logs.append(
            [line.split(None, 1) for line in (folder / "log.txt").read_text().splitlines() if " passed" in line]
        )
    assert logs[0] == logs[1]


def test_no_test_to_run_is_a_failure():
    with pytest.raises(BenchError, match=r"no test was run|without a result"):
        run_bench(Loops(64), "loops_64", "bench_tb", testcase="there_is_no_such_test")


def test_a_refused_design_is_reported_in_the_simulators_words():
    with pytest.raises(BuildError, match="syntax error"):
        run_bench(Loops(64), "loops_64", "bench_tb", sources={"more.v": "module more(; endmodule"})


def test_the_second_run_builds_nothing():
    first = run_bench(Loops(64), "loops_64", "bench_tb", {"fault": 0}, testcase="numbers_pass")
    stamp = (first.parent / "loops_64").stat().st_mtime_ns
    assert run_bench(Loops(64), "loops_64", "bench_tb", {"fault": 0}, testcase="numbers_pass") == first
    assert (first.parent / "loops_64").stat().st_mtime_ns == stamp


def test_layouts_pack_and_unpack():
    layout = data.StructLayout({"low": 4, "inner": data.StructLayout({"a": 1, "b": 7}), "many": data.ArrayLayout(3, 4)})
    value = {"low": 5, "inner": {"a": 1, "b": 0x55}, "many": [1, 2, 3, 4]}
    assert pack(layout, value) == 5 | 1 << 4 | 0x55 << 5 | (1 | 2 << 3 | 3 << 6 | 4 << 9) << 12
    assert unpack(layout, pack(layout, value)) == value
    assert pack(layout, {"low": 3}) == 3
    assert unpack(CFG, pack(CFG, {"mac": 1 << 47, "pcp": [7] * 8}))["pcp"] == [7] * 8


def test_a_value_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="0x10 does not fit 4 bits"):
        pack(data.StructLayout({"low": 4}), {"low": 16})
    with pytest.raises(KeyError):
        pack(data.StructLayout({"low": 4}), {"high": 1})


def test_a_handshake_declared_as_a_vector_is_refused():
    top = """
module wrapped(input clk, input rst, input [0:0] s_axis_tvalid, output s_axis_tready, input [63:0] s_axis_tdata,
               input [2:0] fault);
  loops_64 loops(.clk(clk), .rst(rst), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready),
                 .s_axis_tdata(s_axis_tdata), .fault(fault));
endmodule
"""
    options = {"sources": {"top.v": top}, "top": "wrapped", "testcase": "frames_pass"}
    with pytest.raises(BenchError, match="s_axis_tvalid is a vector: declare it as a bit"):
        run_bench(Loops(64), "loops_64", "bench_tb", {"fault": 0}, **options)
