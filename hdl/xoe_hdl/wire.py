"""Between a header's fields and its bytes on a bus, derived from the declarations in ``xoe.wire``.

The first byte on the wire is in the low eight bits, as on AXI4-Stream; fields are in network order inside their bytes.
Nothing here costs logic: it is wiring.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Value, ValueLike
from amaranth.lib import data

from xoe.header import Header


def fields_layout(header: type[Header]) -> data.StructLayout:
    """The header's fields as a structure of plain numbers, reserved ones left out."""
    return data.StructLayout({field.name: field.width for field in header.layout() if not field.is_reserved})


def _bus_bit(wire_bit: int) -> int:
    """Where the bus has the ``wire_bit``-th bit sent: most significant bit of each byte first on the wire."""
    return wire_bit // 8 * 8 + 7 - wire_bit % 8


def read_fields(header: type[Header], raw: ValueLike) -> dict[str, Value]:
    """The fields of the header whose ``8 * SIZE`` bits, as they lie on the bus, are ``raw``."""
    raw = Value.cast(raw)
    return {
        field.name: Cat(raw[_bus_bit(field.offset + field.width - 1 - bit)] for bit in range(field.width))
        for field in header.layout()
        if not field.is_reserved
    }


def to_bus(header: type[Header], fields: dict[str, Value]) -> Value:
    """The ``8 * SIZE`` bits of a header, as they lie on the bus; fields not given are 0.

    Raises:
        KeyError: a name that the header does not have.
    """
    bus: list[Value] = [Const(0, 1)] * (8 * header.SIZE)
    places = {field.name: field for field in header.layout() if not field.is_reserved}
    for name, value in fields.items():
        field = places[name]
        for bit in range(field.width):
            bus[_bus_bit(field.offset + field.width - 1 - bit)] = value[bit]
    return Cat(*bus)


def byte_swap(value: ValueLike) -> Value:
    """``value`` with its bytes in the other order: a number in network order to or from bus order."""
    value = Value.cast(value)
    return Cat(value[at : at + 8] for at in reversed(range(0, len(value), 8)))
