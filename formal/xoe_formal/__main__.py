"""``python -m xoe_formal``: prove what is claimed of the hardware; ``make formal`` calls it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .proof import Proof
from .proofs import PROOFS
from .report import HEADER, Attempt, Result


def parse(proofs: Iterable[Proof], arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line's options; wrong ones end the program with a line that says what is allowed."""
    names = [proof.name for proof in proofs]
    parser = argparse.ArgumentParser(
        prog="python -m xoe_formal",
        description="Prove properties of the hardware, and that each proof fails on copies that are broken on purpose.",
    )
    parser.add_argument("proofs", nargs="*", metavar="proof", help=f"{', '.join(names)} (default: all)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="at a time (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("build/formal"), help="folder (default: %(default)s)")
    options = parser.parse_args(arguments)
    for name in options.proofs:
        if name not in names:
            parser.error(f"there is no proof {name}; there are {', '.join(names)}")
    if options.jobs < 1:
        parser.error(f"--jobs must be 1 or more, not {options.jobs}")
    return options


def main(proofs: tuple[Proof, ...] = PROOFS, arguments: list[str] | None = None) -> int:
    """Try the proofs; the exit code is 0 if all hold and all broken copies were caught, else 1."""
    options = parse(proofs, arguments)
    chosen = [proof for proof in proofs if not options.proofs or proof.name in options.proofs]
    results: list[Result] = []
    print(HEADER, flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        for attempt in [Attempt(proof, options.output, pool) for proof in chosen]:
            results.append(attempt.result())
            print(results[-1].lines(), flush=True)
    broken, caught = sum(len(proof.broken) for proof in chosen), sum(result.caught for result in results)
    failed = sum(bool(result.problems) for result in results)
    print(f"{len(results) - failed} of {len(results)} proofs hold, broken copies caught: {caught} of {broken}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("xoe_formal: interrupted")
