"""``python -m xoe_sim``: two NICs, an Ethernet link, a workload; ``make sim`` calls it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from xoe.config import DATA_WIDTHS, ConfigError, NicConfig
from xoe.faults import Rates

from . import report
from .run import RunError, run_workload
from .trace import TraceError, generate, read_trace
from .workload import build

FAULTS = {
    "loss": "the link drops",
    "dup": "come twice",
    "reorder": "others overtake",
    "corrupt": "have a bit flipped",
}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line's options; wrong ones end the program with a line that says what is allowed."""
    parser = argparse.ArgumentParser(
        prog="python -m xoe_sim",
        description="Run a workload over two NICs joined by Ethernet and check every byte against the golden models.",
    )
    parser.add_argument("--trace", type=Path, help="a CSV of messages or of recorded reads (default: generated)")
    parser.add_argument("--sim", choices=("verilator", "icarus"), default="verilator", help="simulator")
    parser.add_argument("--width", type=int, choices=DATA_WIDTHS, default=64, help="bits of every data path")
    parser.add_argument("--seed", type=int, default=1, help="of the data, and of what is generated")
    parser.add_argument("--waves", action="store_true", help="leave a wave file in the output folder")
    parser.add_argument("--output", type=Path, default=Path("build/sim"), help="where result.json and wire.pcap go")
    for name, what in FAULTS.items():
        parser.add_argument(
            f"--{name}", type=float, default=0, metavar="RATE", help=f"share of frames that {what}, 0..1"
        )
    options = parser.parse_args(arguments)
    try:
        options.faults = _faults(options)
    except ValueError as error:
        parser.error(str(error))
    return options


def _faults(options: argparse.Namespace) -> dict[str, float]:
    """The rates as ``xoe.faults`` names them; empty if all are 0.

    Raises:
        ValueError: a rate that is out of bounds.
    """
    for name in FAULTS:
        rate = getattr(options, name)
        if not 0 <= rate <= 1:
            raise ValueError(f"argument --{name}: must be 0 to 1, not {rate!r}")
    rates = {"drop": options.loss, "duplicate": options.dup, "reorder": options.reorder, "flip": options.corrupt}
    Rates(**rates)
    return rates if any(rates.values()) else {}


def main() -> int:
    """Run, report, and return the exit code: 0 passed, 1 a mismatch, 2 it could not be run."""
    options = parse()
    try:
        trace = read_trace(options.trace) if options.trace else generate(options.seed)
        build(trace, options.seed)  # what is wrong with a trace is said before anything is built
        result = run_workload(options, NicConfig(data_width=options.width))
    except (TraceError, ConfigError, RunError, OSError) as error:
        print(f"xoe_sim: {error}", file=sys.stderr)
        return 2
    print(report.table(result))
    return 0 if result["verdict"] == "passed" else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("xoe_sim: interrupted")
