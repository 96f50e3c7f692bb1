"""The figures of a run, for people and for programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

ETHERNET_OVERHEAD = 24  # bytes a frame: preamble and start 8, FCS 4, gap 12 (IEEE 802.3)


def percentile(values: Iterable[int], part: float) -> int:
    """The smallest of ``values`` that at least ``part`` (0..1) of them do not exceed; 0 if there are none."""
    ordered = sorted(values)
    if not ordered:
        return 0
    return ordered[max(0, math.ceil(len(ordered) * part) - 1)]


def table(result: dict[str, Any]) -> str:
    """The result as lines of a name and a figure."""
    rows = [
        ("workload", result["workload"]),
        ("simulator, width, seed", f"{result['simulator']}, {result['width']} bits, {result['seed']}"),
        ("messages between the NICs", f"{result['messages']:,}"),
        ("operations", f"{result['operations']:,}"),
        ("bytes of data", f"{result['data_bytes']:,}"),
        ("frames", f"{result['frames']:,}"),
        ("clock cycles", f"{result['cycles']:,}, and {result['setup_cycles']:,} before them to write the tables"),
        ("payload / wire bytes", _share(result["data_bytes"], result["wire_bytes"])),
        ("beats ideal / used", _share(result["ideal_beats"], result["used_beats"])),
        ("the same, busiest phase and direction", _share(result["busiest_ideal"], result["busiest_clocks"])),
        ("latency, cycles (median, P99)", f"{result['latency_median']:,}, {result['latency_p99']:,}"),
        ("injected by the link", causes(result["injected"])),
        ("sent again", f"{result['drops'].get('egress.sender.resent', 0):,} frames"),
        ("dropped, refused, faulted", causes(result["drops"])),
        ("compared", f"{result['compared_bytes']:,} bytes of memory, {result['operations']:,} completions"),
        ("verdict", result["verdict"]),
    ]
    return "\n".join(["", *aligned(rows), *(f"  ! {mismatch}" for mismatch in result["mismatches"])])


def aligned(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lines of a name and a figure."""
    width = max(len(name) for name, _ in rows)
    return [f"  {name:<{width}}  {figure}" for name, figure in rows]


def _share(part: int, whole: int) -> str:
    return f"{part:,} / {whole:,} = {part / whole:.3f}" if whole else "none"


def causes(drops: dict[str, int]) -> str:
    """Counts by their names, but for those of 0."""
    found = [f"{cause} {count}" for cause, count in drops.items() if count]
    return ", ".join(found) or "none"
