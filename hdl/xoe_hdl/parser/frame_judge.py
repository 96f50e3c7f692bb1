"""Decides what becomes of each frame."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from xoe.config import NicConfig
from xoe.frame import MAX_TAGS
from xoe.parser import CONTROL_FRAME_MAX, HOST_FRAME_MAX, Outcome
from xoe.wire import CRC_SIZE, ETHERNET_HEADER, FRAME_MIN, GRID, VERSION, VLAN_TAG, FrameHeader, Kind

from ..delay import delayed
from ..layouts import NODE_BITS
from ..wire import read_fields
from .aligner import frame_end
from .classifier import FrameClass

BODY_BITS = 16  # bytes after the EtherType

JUDGEMENT = data.StructLayout({"is_final": 1, "outcome": Outcome})
"""What becomes of a frame: if not final, only if its CRC is right."""


class FrameJudge(wiring.Component):
    """Takes the end of a frame in any clock, and judges it ``latency`` clocks later; free-running.

    ``outcome`` is the first that applies in the order of ``xoe.parser.Outcome``. ``is_right`` comes from a
    ``CrcChecker`` of the same latency. ``header``, ``fits`` (it announces no more than may be) and ``is_to_us`` (the
    destination address is ours) belong to the frame that ends; ``node`` is ours.
    """

    latency_min = 4

    def __init__(self, config: NicConfig, latency: int) -> None:
        self.config = config
        self.latency = latency
        super().__init__(
            {
                "end_valid": In(1),
                "end": In(frame_end(config.data_width)),
                "header": In(8 * FrameHeader.SIZE),
                "fits": In(1),
                "is_to_us": In(1),
                "node": In(NODE_BITS),
                "is_right": In(1),
                "is_judged": Out(1),
                "outcome": Out(Outcome),
                "is_good": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Gather in one clock, measure in the next, compare in the third, choose in the fourth, wait for the CRC."""
        m = Module()
        judgement = Signal(JUDGEMENT)
        self._choose(m, judgement, self._compare(m, *self._measure(m, *self._gather(m))))
        judgement = delayed(m, "judgement", judgement, self.latency - self.latency_min)
        m.d.comb += [
            self.is_judged.eq(delayed(m, "end_valid", self.end_valid, self.latency)),
            self.is_good.eq(self.is_right & ~judgement.is_final & (judgement.outcome == Outcome.ACCEPTED)),
            self.outcome.eq(Mux(judgement.is_final | self.is_right, judgement.outcome, Outcome.CRC)),
        ]
        return m

    def _gather(self, m: Module) -> tuple[dict[str, Value], Value, Value, Value]:
        """Simple tests; bytes of the frame, bytes up to the end of its EtherType, and bytes announced after that."""
        end, fields = self.end, read_fields(FrameHeader, self.header)
        step = self.config.data_width // 8
        tests = {
            "bad": end.bad,
            "runt": end.frame_class == FrameClass.RUNT,
            "host": end.frame_class == FrameClass.HOST,
            "control": end.frame_class == FrameClass.CONTROL,
            "long_for_host": end.index >= HOST_FRAME_MAX // step,
            "long_for_control": end.index >= CONTROL_FRAME_MAX // step,
            "version": fields["version"] != VERSION,
            "malformed": fields["length"] % GRID != 0,
            "long_for_us": ~self.fits,
            "address": ~self.is_to_us,
            "node": fields["dst_node"] != self.node,
            "queue_pair": fields["dst_qp"] >= self.config.queue_pairs,
            "kind": fields["kind"] > max(Kind),
        }
        size, announced = Signal(BODY_BITS), Signal(BODY_BITS)
        front = Signal(range(ETHERNET_HEADER + MAX_TAGS * VLAN_TAG + 1))
        m.d.sync += [
            size.eq(end.index * step + end.count),
            front.eq(end.tags * VLAN_TAG + ETHERNET_HEADER),
            announced.eq(fields["length"] + FrameHeader.SIZE + CRC_SIZE),
        ]
        return {name: delayed(m, name, test, 1) for name, test in tests.items()}, size, front, announced

    def _measure(
        self, m: Module, tests: dict[str, Value], size: Value, front: Value, announced: Value
    ) -> tuple[dict[str, Value], Value, Value]:
        """The tests one clock later; bytes found after the EtherType, and bytes announced."""
        found = Signal(BODY_BITS)
        m.d.sync += found.eq(size - front)
        late = {name: delayed(m, f"{name}_late", test, 1) for name, test in tests.items()}
        return late, found, delayed(m, "announced_late", announced, 1)

    def _compare(self, m: Module, tests: dict[str, Value], found: Value, announced: Value) -> dict[str, Value]:
        """The tests one clock later, and those of sizes."""
        is_padding = found <= FRAME_MIN - ETHERNET_HEADER
        more = {
            "no_header": found < FrameHeader.SIZE,
            "short": found < announced,
            "long": (found > announced) & ~is_padding | tests["long_for_us"],
            "destination": tests["address"] | tests["node"] | tests["queue_pair"],
            "long_for_other": tests["host"] & tests["long_for_host"] | tests["control"] & tests["long_for_control"],
        }
        return {name: delayed(m, f"{name}_later", test, 1) for name, test in (tests | more).items()}

    def _choose(self, m: Module, judgement: data.View, tests: dict[str, Value]) -> None:
        """The first test that applies."""
        order = (
            ("bad", True, Outcome.BAD),
            ("runt", True, Outcome.RUNT),
            ("long_for_other", True, Outcome.OVERLONG),
            ("host", True, Outcome.HOST),
            ("control", True, Outcome.CONTROL),
            ("no_header", True, Outcome.TRUNCATED),
            ("version", True, Outcome.VERSION),
            ("malformed", True, Outcome.MALFORMED),
            ("short", True, Outcome.TRUNCATED),
            ("long", True, Outcome.OVERLONG),
            ("destination", False, Outcome.DESTINATION),
            ("kind", False, Outcome.KIND),
        )
        chosen = _judgement(False, Outcome.ACCEPTED)
        for name, is_final, outcome in reversed(order):
            chosen = Mux(tests[name], _judgement(is_final, outcome), chosen)
        m.d.sync += judgement.eq(chosen)


def _judgement(is_final: bool, outcome: Outcome) -> Value:
    return JUDGEMENT.const({"is_final": is_final, "outcome": outcome}).as_value()
