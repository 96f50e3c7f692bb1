"""``python -m xoe_sim.replay``: a script of commands and faults, on hardware, on models or on one of each."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from xoe.cases import CASES
from xoe.config import DATA_WIDTHS, ConfigError
from xoe.fault_script import Script, ScriptError
from xoe.scenario import Setup

from .run import ENDS, RunError, run_script


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line's options; wrong ones end the program with a line that says what is allowed."""
    parser = argparse.ArgumentParser(
        prog="python -m xoe_sim.replay",
        description="Run a script (see xoe.scenario, xoe.fault_script) between two NICs, and check what comes of it.",
    )
    parser.add_argument("script", help="a file, or the name of one of xoe.cases")
    parser.add_argument("--ends", choices=tuple(ENDS), default="hardware", help="what they are (default: %(default)s)")
    parser.add_argument("--width", type=int, choices=DATA_WIDTHS, default=64, help="bits of every data path")
    parser.add_argument("--seed", type=int, default=1, help="of faults at random (default: %(default)s)")
    return parser.parse_args(arguments)


def main() -> int:
    """Run, report, and return the exit code: 0 passed, 1 something was wrong, 2 it could not be run."""
    options = parse()
    try:
        is_case = options.script in CASES
        text = CASES[options.script].text if is_case else Path(options.script).read_text()
        setup = Setup.of(Script.parse(text))
        setup.config()
        setup.transport()
        chosen = {"cases": [options.script]} if is_case else {"text": text}
        run_script(chosen, setup, options.ends, options.width, options.seed)
    except (OSError, UnicodeDecodeError, ScriptError, ConfigError) as error:
        print(f"xoe_sim.replay: {error}", file=sys.stderr)
        return 2
    except RunError as error:
        print(f"xoe_sim.replay: {error}", file=sys.stderr)
        return 2 if error.is_early else 1
    print("passed: every command completed as it may")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("xoe_sim.replay: interrupted")
