"""The bench module that joins NICs by Ethernet links: one Verilog module, instantiated for each NIC.

Instantiating one module keeps the simulator from compiling a copy for each. Port ``x`` of NIC ``i`` is ``n<i>_x``; it
is reset by ``n<i>_rst`` alone, or with all others by ``rst``; a
NIC's transmit side is wired to its peer's receive side, and brought out so that a bench can look at the wire.
"""

from __future__ import annotations

from amaranth.lib import wiring
from amaranth.lib.wiring import In

from xoe_hdl.verilog import module_ports

RECEIVE, TRANSMIT = "s_axis_t", "m_axis_t"


def peer(nic: int) -> int:
    """The NIC at the other end of a NIC's link: 0 and 1 are joined, 2 and 3, and so on."""
    return nic ^ 1


def link_verilog(component: wiring.Component, module: str, top: str, nics: int = 2, is_joined: bool = True) -> str:
    """Verilog of module ``top``: ``nics`` (an even number) of ``module``, which is the export of ``component``.

    Without ``is_joined`` both sides of every link are ports, for a bench to stand between.
    """
    outside: list[str] = ["input clk", "input rst"]
    inside: list[str] = []
    for nic in range(nics):
        outside.append(f"input n{nic}_rst")
        connections = [".clk(clk)", f".rst(rst | n{nic}_rst)"]
        for port in module_ports(component):
            is_input, width = port.flow is In, len(port.value)
            wire = f"n{nic}_{port.name}"
            if is_joined and _is_side(port.name, RECEIVE):
                source = f"n{peer(nic)}_{TRANSMIT}{port.name.removeprefix(RECEIVE)}"
                inside += [] if is_input else [f"wire {wire};", f"assign {source} = {wire};"]
                wire = source if is_input else wire
            else:
                # The peer drives ready, which is an output here so that the wire can be watched.
                is_input = is_input and not (is_joined and _is_side(port.name, TRANSMIT))
                # A range of one bit would be a vector to the bench, not a bit.
                span = f" [{width - 1}:0]" if width > 1 else ""
                outside.append(f"{'input' if is_input else 'output'}{span} {wire}")
            connections.append(f".{port.name}({wire})")
        inside.append(f"{module} n{nic} (\n    " + ",\n    ".join(connections) + "\n  );")
    ports = ",\n  ".join(outside)
    return f"module {top} (\n  {ports}\n);\n  " + "\n  ".join(inside) + "\nendmodule\n"


def _is_side(name: str, side: str) -> bool:
    return name.startswith(side) and name.removeprefix(side) in ("valid", "ready", "data", "keep", "last", "user")
