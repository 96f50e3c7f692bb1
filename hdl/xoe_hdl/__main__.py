"""``python -m xoe_hdl``: writes Verilog of the NIC, or of one of its blocks, for any configuration."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable
from pathlib import Path

from amaranth.lib import wiring

from xoe.config import ConfigError, NicConfig

from .cam import Cam
from .framer import Framer
from .layouts import TRANSLATION
from .nic import Nic
from .parser import Parser
from .requester import Requester
from .responder import Responder
from .verilog import ExportError, to_verilog

BLOCKS: dict[str, Callable[[NicConfig], wiring.Component]] = {
    "nic": Nic,
    "requester": Requester,
    "cam": lambda config: Cam(config.cam_entries, TRANSLATION),
    "framer": Framer,
    "parser": Parser,
    "responder": Responder,
}

EXAMPLES = """\
examples:
  python -m xoe_hdl                                      the NIC at 64 bits, as build/verilog/xoe_nic_64.v
  python -m xoe_hdl --data-width 512 --mtu 9000          for a fast link with jumbo frames
  python -m xoe_hdl framer parser --data-width 128       two blocks, a file each
"""


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line's options: a parameter for each field of the configuration."""
    parser = argparse.ArgumentParser(
        prog="python -m xoe_hdl",
        description="Write Verilog of the NIC, or of its blocks: a module xoe_<block>_<width> in a file of that name.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("blocks", nargs="*", metavar="block", help=f"{', '.join(BLOCKS)} (default: nic)")
    parser.add_argument("--output", type=Path, default=Path("build/verilog"), help="folder (default: %(default)s)")
    meanings = dict(re.findall(r"^ +(\w+): (.*)\.$", NicConfig.__doc__ or "", re.MULTILINE))
    for field in dataclasses.fields(NicConfig):
        option = f"--{field.name.replace('_', '-')}"
        text = f"{meanings[field.name]} (default: %(default)s)"
        parser.add_argument(option, type=int, default=field.default, metavar="N", help=text)
    options = parser.parse_args(arguments)
    for block in options.blocks:
        if block not in BLOCKS:
            parser.error(f"there is no block {block}; there are {', '.join(BLOCKS)}")
    return options


def main() -> int:
    """Write the files; the exit code is 0, or 2 for what cannot be built."""
    options = parse()
    try:
        config = NicConfig(**{field.name: getattr(options, field.name) for field in dataclasses.fields(NicConfig)})
        options.output.mkdir(parents=True, exist_ok=True)
        for block in options.blocks or ["nic"]:
            name = f"xoe_{block}_{config.data_width}"
            path = options.output / f"{name}.v"
            path.write_text(to_verilog(BLOCKS[block](config), name))
            print(path)
    except (ConfigError, ExportError, OSError) as error:
        print(f"xoe_hdl: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("xoe_hdl: interrupted")
