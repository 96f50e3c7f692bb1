"""``python -m xoe_sim.soak``: operations between two ends, with faults and resets; ``make soak`` calls it.

Each end is hardware or the model; with two models no simulator is needed, see ``xoe.soak``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from xoe import soak
from xoe.config import DATA_WIDTHS, ConfigError, NicConfig
from xoe.faults import Rates

from .progress import shown
from .report import aligned, causes
from .run import ENDS, RunError, run_linked

TRANSPORT = {
    "resend_timeout": 8192,
    "probe_timeout": 4096,
    "open_timeout": 2048,
    "sync_interval": 1 << 13,
    "silence_timeout": 1 << 15,
}
"""Settings: a round trip is 1,000 to 2,000 clocks when all connections are busy."""
PATIENCE = 2_000_000  # clocks without a completion that are called a hang: longer than any connection takes to fail


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line's options; wrong ones end the program with a line that says what is allowed."""
    parser = argparse.ArgumentParser(
        prog="python -m xoe_sim.soak",
        description="Carry out operations between two NICs over a network that does its worst, and check each.",
    )
    parser.add_argument("--ops", type=int, default=20_000, help="operations, both ends together (default: %(default)s)")
    parser.add_argument("--ends", choices=tuple(ENDS), default="hardware", help="what they are (default: %(default)s)")
    parser.add_argument("--width", type=int, choices=DATA_WIDTHS, default=64, help="bits of every data path")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is chosen (default: %(default)s)")
    parser.add_argument("--each", type=float, default=0.01, help="rate of each fault, 0 to 0.1 (default: %(default)s)")
    parser.add_argument("--resets", type=int, default=2_500, help="operations between resets; 0: none (%(default)s)")
    parser.add_argument("--go-back-n", action="store_true", help="instead of selective repeat")
    parser.add_argument("--output", type=Path, default=Path("build/soak"), help="where result.json goes")
    options = parser.parse_args(arguments)
    for name, least in (("ops", 1), ("resets", 0)):
        if getattr(options, name) < least:
            parser.error(f"argument --{name}: must be {least} or more, not {getattr(options, name)}")
    if not 0 <= options.each <= 0.1:
        parser.error(f"argument --each: must be 0 to 0.1, not {options.each!r}")
    return options


def run_soak(options: argparse.Namespace, config: NicConfig) -> dict[str, Any]:
    """Build the two NICs, carry everything out, and return the figures.

    Raises:
        RunError: a tool is missing, the design cannot be built, or something was not as it must be.
    """
    output = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    result = output / "result.json"
    result.unlink(missing_ok=True)
    parameters = {
        "config": dataclasses.asdict(config),
        "transport": TRANSPORT | {"go_back_n": options.go_back_n},
        "ends": ENDS[options.ends],
        "ops": options.ops,
        "seed": options.seed,
        "resets": options.resets,
        "faults": dataclasses.asdict(Rates.each(options.each)),
        "patience": PATIENCE,
        "output": str(result),
        "progress": str(output / "progress.txt"),
    }
    with shown(Path(parameters["progress"])):
        run_linked(config, "bench_soak", parameters, options.seed)
    return json.loads(result.read_text())


def table(result: dict[str, Any]) -> str:
    """The result as lines of a name and a figure."""
    speed = result["operations"] / max(result["seconds"], 0.1)
    rows = [
        ("operations", f"{result['operations']:,}"),
        ("ended as", causes(result["ended"])),
        ("forgotten in resets", f"{result['forgotten']:,}, {result['resets']:,} resets"),
        ("clock cycles", f"{result['clocks']:,}"),
        ("seconds", f"{result['seconds']:,}, {speed:.0f} operations in a second"),
        ("frames", causes(result["frames"])),
        ("injected by the link", causes(result["injected"])),
        ("sent again", f"{result['counters'].get('egress.sender.resent', 0):,} frames"),
        ("verdict", "passed: nothing lost, nothing twice"),
    ]
    return "\n".join(aligned(rows))


def main() -> int:
    """Run, report, and return the exit code: 0 passed, 1 something was wrong, 2 it could not be run."""
    options = parse()
    if options.ends == "models":
        given = ["--ops", options.ops, "--seed", options.seed, "--each", options.each, "--resets", options.resets]
        flags = ["--go-back-n"] if options.go_back_n else []
        return soak.main([*map(str, given), *flags])
    try:
        result = run_soak(options, NicConfig(data_width=options.width))
    except (ConfigError, OSError) as error:
        print(f"xoe_sim.soak: {error}", file=sys.stderr)
        return 2
    except RunError as error:
        print(f"xoe_sim.soak: {error}", file=sys.stderr)
        return 2 if error.is_early else 1
    print(table(result))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("xoe_sim.soak: interrupted")
