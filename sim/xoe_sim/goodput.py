"""``python -m xoe_sim.goodput``: how much gets through links that lose frames; ``make bench`` calls it.

Selective repeat and go-back-N, writes and reads, in one run. The ideal is what a link without loss carries, less the
share that is lost.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from xoe.config import ConfigError, NicConfig
from xoe.wire import DATA_MAX

from .progress import shown
from .run import RunError, run_linked

WIDTH = 512  # bits
LINE_RATE = 100e9  # bits a second
CLOCKS_IN_US = LINE_RATE / WIDTH / 1e6
LOSSES = (0.0, 0.0001, 0.001, 0.01, 0.05)
RTTS = (1.0, 2.0, 10.0)  # us
OPCODES = ("write", "read")
AIMS = {0.01: 0.95, 0.05: 0.85}
FRAMES = 128
CONFIG = NicConfig(
    data_width=WIDTH,
    queue_pairs=1,
    tags=4096,
    window=FRAMES,
    credit_size=2048,
    credit_request=2 * FRAMES,
    credit_response=2 * FRAMES,
    resend_buffer=FRAMES * 4096,
)
"""One connection, with windows for three times what the longest link holds."""

INSIDE = 300  # clocks of a round trip that are spent in the two NICs, about
FRAMES_INSIDE = 8  # and so many of the largest frames: until they are there, and until they are acknowledged
FULL = 4  # round trips' worth of commands are under way, if there are so many tags


def point(config: NicConfig, opcode: str, loss: float, rtt: float, go_back_n: bool, *clocks: int) -> dict[str, Any]:
    """What is measured at a place: see ``bench_goodput.Point``. Time-outs are those that docs/transport.md advises."""
    link = round(rtt * CLOCKS_IN_US)
    whole = link + INSIDE + FRAMES_INSIDE * config.mtu * 8 // config.data_width
    transport = {
        "resend_timeout": 4 * whole,
        "probe_timeout": 2 * whole,
        "ack_delay": whole // 4,
        "sync_interval": 16 * whole,
        "silence_timeout": 256 * whole,
        "open_timeout": 4 * whole,
        "retries": 15,
    }
    return {
        "opcode": opcode,
        "loss": loss,
        "rtt_us": rtt,
        "delay": link // 2,
        "go_back_n": go_back_n,
        "under_way": min(config.tags, FULL * whole * config.data_width // 8 // DATA_MAX),
        "transport": transport,
        "clocks": clocks,
    }


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line's options; wrong ones end the program with a line that says what is allowed."""
    parser = argparse.ArgumentParser(
        prog="python -m xoe_sim.goodput",
        description="Measure how much gets through links that lose frames, by selective repeat and by go-back-N.",
    )
    parser.add_argument("--loss", type=float, nargs="+", default=LOSSES, help="shares of frames, 0 to 0.2; 0 is added")
    parser.add_argument("--rtt", type=float, nargs="+", default=RTTS, help="of the link, us, 0.1 to 20")
    parser.add_argument("--clocks", type=int, default=40_000, help="of each measurement (default: %(default)s)")
    parser.add_argument(
        "--warm", type=int, default=40_000, help="clocks before each measurement (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the losses (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="measurements at a time (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("build/bench"), help="where goodput.json and .svg go")
    options = parser.parse_args(arguments)
    limits = [("loss", each, 0, 0.2) for each in options.loss] + [("rtt", each, 0.1, 20) for each in options.rtt]
    limits += [("clocks", options.clocks, 1000, 10**8), ("warm", options.warm, 0, 10**8), ("jobs", options.jobs, 1, 64)]
    for name, value, least, most in limits:
        if not least <= value <= most:
            parser.error(f"argument --{name}: must be {least} to {most}, not {value}")
    options.loss = sorted({0.0, *options.loss})
    return options


def measure(options: argparse.Namespace, config: NicConfig = CONFIG) -> list[dict[str, Any]]:
    """Build the NICs and measure every point; ``share`` is that of the ideal.

    Raises:
        RunError: a tool is missing, the design cannot be built, or a measurement failed.
    """
    output = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    places = list(itertools.product(OPCODES, options.loss, sorted(set(options.rtt)), (False, True)))
    points = [point(config, *place, options.warm, options.clocks) for place in places]
    progress = output / "progress.txt"
    with shown(progress), ThreadPoolExecutor(options.jobs) as pool:
        parts = [points[job :: options.jobs] for job in range(options.jobs)]
        files = [output / f"points-{job}" for job in range(options.jobs)]
        jobs = [
            pool.submit(_measure, config, part, options.seed, file, progress)
            for part, file in zip(parts, files, strict=True)
        ]
        found = [result for job in jobs for result in job.result()]
    return _with_shares(found)


def _measure(
    config: NicConfig, points: list[dict[str, Any]], seed: int, file: Path, progress: Path
) -> list[dict[str, Any]]:
    if not points:
        return []
    file.unlink(missing_ok=True)
    parameters = {
        "config": dataclasses.asdict(config),
        "points": points,
        "seed": seed,
        "output": str(file),
        "progress": str(progress),
    }
    run_linked(config, "bench_goodput", parameters, seed)
    results = [json.loads(line) for line in file.read_text().splitlines()]
    file.unlink()
    return results


def _with_shares(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each point is of the ideal: what the same link carries without loss, less what is lost."""
    lossless = {_place(each): each["goodput"] for each in results if not each["loss"]}
    order = sorted(results, key=lambda each: (*_place(each), each["loss"]))
    return [each | {"share": each["goodput"] / (lossless[_place(each)] * (1 - each["loss"]))} for each in order]


def _place(result: dict[str, Any]) -> tuple[str, float, bool]:
    return result["opcode"], result["rtt_us"], result["go_back_n"]


def gigabits(result: dict[str, Any]) -> float:
    """Goodput in Gb/s, at a clock that makes the data path as fast as the line."""
    return result["goodput"] * 8 * CLOCKS_IN_US / 1000


def table(results: list[dict[str, Any]]) -> str:
    """A line for each link, kind of command and loss: both ways of repair side by side."""
    columns = f" {'Gb/s':>6} {'of ideal':>9} {'median us':>9} {'P99 us':>9} {'resent':>7}"
    lines = [
        f"  {'':19}{'selective repeat':>{len(columns)}}{'go-back-N':>{len(columns)}}",
        f"  {'what':5} {'RTT':>3} {'loss':>8}" + 2 * columns,
    ]
    by_place = {(*_place(each), each["loss"]): each for each in results}
    for opcode, rtt, loss in sorted({(each["opcode"], each["rtt_us"], each["loss"]) for each in results}):
        pair = [by_place[opcode, rtt, go_back_n, loss] for go_back_n in (False, True)]
        lines.append(f"  {opcode:5} {rtt:3g} {100 * loss:6.2f} %" + "".join(map(_columns, pair)))
    return "\n".join(lines)


def _columns(result: dict[str, Any]) -> str:
    times = (result[name] / CLOCKS_IN_US for name in ("latency_median", "latency_p99"))
    return (
        f" {gigabits(result):6.1f} {result['share']:9.3f} "
        + " ".join(f"{time:9.2f}" for time in times)
        + (f" {result['resent']:7,}")
    )


def misses(results: list[dict[str, Any]]) -> list[str]:
    """The aims that selective repeat does not reach."""
    found = []
    for each in results:
        aim, share = AIMS.get(each["loss"], 0), each["share"]
        if not each["go_back_n"] and share < aim:
            where = f"{each['opcode']}s at {each['rtt_us']:g} us and {100 * each['loss']:g} % loss"
            found.append(f"{where}: {share:.3f} of the ideal, not {aim}")
    return found


def plot(results: list[dict[str, Any]], path: Path) -> None:
    """Goodput over loss, a panel for each link and kind of command."""
    import matplotlib  # takes a second, which those should not wait who ask for help

    matplotlib.use("svg")
    from matplotlib import pyplot

    opcodes, rtts = (sorted({each[name] for each in results}) for name in ("opcode", "rtt_us"))
    figure, axes = pyplot.subplots(
        len(opcodes), len(rtts), figsize=(4 * len(rtts), 3 * len(opcodes)), sharey=True, squeeze=False
    )
    for (row, opcode), (column, rtt) in itertools.product(enumerate(opcodes), enumerate(rtts)):
        panel = axes[row][column]
        for go_back_n, name, mark in ((False, "selective repeat", "o-"), (True, "go-back-N", "s--")):
            line = [each for each in results if _place(each) == (opcode, rtt, go_back_n)]
            panel.plot([100 * each["loss"] for each in line], [gigabits(each) for each in line], mark, label=name)
        ideal = [gigabits(each) / each["share"] if each["share"] else 0 for each in line]
        panel.plot([100 * each["loss"] for each in line], ideal, ":", color="grey", label="ideal")
        panel.set_xscale("symlog", linthresh=0.01)
        panel.set_title(f"{opcode}s, {rtt:g} us")
        panel.set_ylim(0, 100)
        panel.grid(alpha=0.3)
    axes[0][0].legend()
    for panel in axes[-1]:
        panel.set_xlabel("frames lost, %")
    for row in axes:
        row[0].set_ylabel("goodput, Gb/s")
    figure.tight_layout()
    figure.savefig(path)


def main() -> int:
    """Measure, report, and return the exit code: 0 done, 2 it could not be run. Aims that are missed are said."""
    options = parse()
    try:
        results = measure(options)
        (options.output / "goodput.json").write_text(json.dumps(results, indent=2) + "\n")
        plot(results, options.output / "goodput.svg")
    except (RunError, ConfigError, OSError) as error:
        print(f"xoe_sim.goodput: {error}", file=sys.stderr)
        return 2
    print(table(results))
    missed = misses(results)
    print("\n".join(["", *(f"  ! {each}" for each in missed)] if missed else ["", "  all aims are met"]))
    print(f"  {options.output / 'goodput.json'}, {options.output / 'goodput.svg'}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("xoe_sim.goodput: interrupted")
