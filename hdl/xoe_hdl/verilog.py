"""Verilog of any block, with the port names that an integrator expects.

A stream ``x`` becomes an AXI4-Stream (ARM IHI 0051): ``x_tvalid``, ``x_tready``, ``x_tdata`` and, if its payload has
them, ``x_tkeep``, ``x_tlast``, ``x_tuser``; a payload without a member ``data`` is ``x_tdata`` as a whole. A channel
of AXI4 is named as in ARM IHI 0022: ``m_axi_awaddr``. A structure has a port for each field, ``cfg_mac``; an array in
it is one port, element 0 in the low bits. Clock and synchronous reset are ``clk`` and ``rst``.

The text depends on the block alone: no paths, no dates, the same bytes on every run.
"""

from __future__ import annotations

import enum
import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from amaranth.back import verilog
from amaranth.hdl import ClockDomain, Const, Elaboratable, Module, Shape, ShapeLike, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import Flow, In

from .layouts import Axi4Signature

# The same Yosys everywhere, whatever else the machine has, so that the same text comes out.
os.environ["AMARANTH_USE_YOSYS"] = "builtin"

STREAM_FIELDS = ("data", "keep", "last", "user")

EXPECTED_WARNINGS = {
    "DECLFILENAME": "a file holds a module for each block",
    "UNUSEDSIGNAL": "fields have names, also those that nothing reads",
    "PROCASSINIT": "registers have an initial value beside their reset",
    "WIDTHEXPAND": "operands are extended as the standard says, without a word",
    "WIDTHTRUNC": "results are cut as the standard says, without a word",
    "CASEINCOMPLETE": "what is not listed keeps the value assigned before",
    "CMPCONST": "the ends of an unrolled loop compare with a limit",
    "UNSIGNED": "the ends of an unrolled loop compare with zero",
}
"""What Amaranth's Verilog earns from Verilator by its style alone. All other warnings apply, and there are none."""


class ExportError(ValueError):
    """A port that has no faithful form in Verilog; the message names it and says why."""


class Port(NamedTuple):
    """A port of the Verilog module, and the value inside the block that it is joined to."""

    name: str
    flow: Flow
    value: Value


def to_verilog(component: wiring.Component, name: str) -> str:
    """Verilog of ``component`` as a module called ``name``.

    Raises:
        ExportError: a port is zero bits wide, holds an enumeration without a member 0, or two ports share a name.
    """
    top = _Top(component)
    ports = {"clk": (top.domain.clk, None), "rst": (top.domain.rst, None)}
    for signal in top.signals:
        if signal.name in ports:
            raise ExportError(f"two ports are called {signal.name}")
        ports[signal.name] = (signal, None)
    style = "".join(f"/* verilator lint_off {rule} */ // {why}\n" for rule, why in EXPECTED_WARNINGS.items())
    with _no_garbage_collection():
        text = verilog.convert(top, name=name, ports=ports, emit_src=False, strip_internal_attrs=True)
    return style + _LARGE_MACHINE.sub(
        r'  (* fsm_encoding = "one-hot" *)\n\g<0>', _MEMORY_OF_ZEROS.sub(_clear_by_loop, text)
    )


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Let a conversion make its millions of small objects, all of them in use, without looking for unused ones."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def module_ports(component: wiring.Component) -> list[Port]:
    """The ports that ``to_verilog`` gives a block, but for clock and reset."""
    return list(_interface_ports(component.signature, component, ""))


_MEMORY_OF_ZEROS = re.compile(
    r"^  initial begin\n"
    r"(?P<lines>    (?P<memory>\w+)\[0\] = (?P<zero>\d+'[dh]0+);\n(?:    (?P=memory)\[\d+\] = (?P=zero);\n)+)"
    r"  end\n",
    re.MULTILINE,
)


_LARGE_MACHINE = re.compile(r"^  reg \[(?:[4-9]|\d\d):0\] \w+_state = ", re.MULTILINE)
"""The state of a machine of more than 16 states, each of which decides little: a bit for each is the faster way."""


def _clear_by_loop(match: re.Match[str]) -> str:
    """A memory's zeros as a loop: as lines they are most of the text, and of the time that a simulator needs for it."""
    memory, depth = match["memory"], match["lines"].count("\n")
    row = f"{memory}_row"
    return (
        f"  initial begin : clear_{memory}\n"
        f"    integer {row};\n"
        f"    for ({row} = 0; {row} < {depth}; {row} = {row} + 1)\n"
        f"      {memory}[{row}] = {match['zero']};\n"
        f"  end\n"
    )


class _Top(Elaboratable):
    """The module that carries the names: one plain signal for each port, joined to the block inside."""

    def __init__(self, component: wiring.Component) -> None:
        self.domain = ClockDomain("sync")
        self._component = component
        self._ports = module_ports(component)
        self.signals = [Signal(len(port.value), name=port.name) for port in self._ports]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += self.domain
        m.submodules.block = self._component
        for port, signal in zip(self._ports, self.signals, strict=True):
            m.d.comb += port.value.eq(signal) if port.flow is In else signal.eq(port.value)
        return m


def _interface_ports(signature: wiring.Signature, interface: Any, prefix: str) -> Iterator[Port]:
    """The ports of an interface, in the order of its signature."""
    for name, member in signature.members.items():
        yield from _member_ports(prefix + name, member, getattr(interface, name), member.dimensions)


def _member_ports(name: str, member: wiring.Member, value: Any, dimensions: tuple[int, ...]) -> Iterator[Port]:
    if dimensions:
        for index, element in enumerate(value):
            yield from _member_ports(f"{name}_{index}", member, element, dimensions[1:])
    elif member.is_port:
        yield from _leaf_ports(name, member.flow, member.shape, value)
    elif _is_a(member.signature, Axi4Signature):
        for channel, inner in member.signature.members.items():
            yield from _channel_ports(name + "_" + channel, inner.signature, getattr(value, channel))
    elif _is_a(member.signature, stream.Signature):
        yield from _stream_ports(name + "_t", member.signature, value)
    else:
        yield from _interface_ports(member.signature, value, name + "_")


def _is_a(signature: wiring.Signature, kind: type) -> bool:
    """Whether a signature, or what it is the flipped form of, is of a kind."""
    return isinstance(signature, kind) or isinstance(signature.flip(), kind)


def _stream_ports(prefix: str, signature: wiring.Signature, value: Any) -> Iterator[Port]:
    yield from _handshake_ports(prefix, signature, value)
    payload = signature.members["payload"]
    if not isinstance(payload.shape, data.StructLayout) or "data" not in payload.shape.members:
        yield from _whole_port(prefix + "data", payload.flow, payload.shape, value.payload)
        return
    for field, shape in payload.shape.members.items():
        if field not in STREAM_FIELDS:
            raise ExportError(f"{prefix[:-2]}.{field}: a stream with data has no fields but {', '.join(STREAM_FIELDS)}")
        yield from _whole_port(prefix + field, payload.flow, shape, value.payload[field])


def _channel_ports(prefix: str, signature: wiring.Signature, value: Any) -> Iterator[Port]:
    yield from _handshake_ports(prefix, signature, value)
    payload = signature.members["payload"]
    for field, shape in payload.shape.members.items():
        yield from _whole_port(prefix + field, payload.flow, shape, value.payload[field])


def _handshake_ports(prefix: str, signature: wiring.Signature, value: Any) -> Iterator[Port]:
    for name in ("valid", "ready"):
        signal = getattr(value, name)
        if not isinstance(signal, Const):  # always_valid and always_ready need no wire
            yield Port(prefix + name, signature.members[name].flow, signal)


def _leaf_ports(name: str, flow: Flow, shape: ShapeLike, value: Any) -> Iterator[Port]:
    if not isinstance(shape, data.StructLayout):
        yield from _whole_port(name, flow, shape, value)
        return
    for field, inner in shape.members.items():
        yield from _leaf_ports(f"{name}_{field}", flow, inner, value[field])


def _whole_port(name: str, flow: Flow, shape: ShapeLike, value: Any) -> Iterator[Port]:
    _check_shape(name, shape)
    yield Port(name, flow, Value.cast(value))


def _check_shape(name: str, shape: ShapeLike) -> None:
    """Refuse what Verilog, or Amaranth's way to it, would turn into something else without a word."""
    if Shape.cast(shape).width == 0:
        raise ExportError(f"{name} is zero bits wide, and would come out as two bits")
    if isinstance(shape, enum.EnumMeta) and not any(member.value == 0 for member in shape):
        raise ExportError(f"{name} is a {shape.__name__}, which has no member 0 to start from")
    if isinstance(shape, data.ArrayLayout):
        _check_shape(name, shape.elem_shape)
    if isinstance(shape, data.StructLayout):
        for field, inner in shape.members.items():
            _check_shape(f"{name}.{field}", inner)
