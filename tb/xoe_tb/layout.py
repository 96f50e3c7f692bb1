"""Between the fields of an Amaranth layout and the plain number that a port carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Shape, ShapeLike
from amaranth.lib import data


def pack(layout: ShapeLike, value: Any) -> int:
    """The number that holds ``value``: a mapping for a structure (fields left out are 0), a sequence for an array.

    Raises:
        KeyError: a name that the structure does not have.
        ValueError: a number that does not fit its field.
    """
    if isinstance(layout, data.StructLayout) and isinstance(value, Mapping):
        return _join({layout[name]: field for name, field in value.items()})
    if isinstance(layout, data.ArrayLayout) and isinstance(value, Sequence):
        return _join({layout[index]: element for index, element in enumerate(value)})
    width = Shape.cast(layout).width
    number = int(value)
    if not 0 <= number < 1 << width:
        raise ValueError(f"{number:#x} does not fit {width} bits")
    return number


def _join(values: Mapping[data.Field, Any]) -> int:
    number = 0
    for field, value in values.items():
        number |= pack(field.shape, value) << field.offset
    return number


def unpack(layout: ShapeLike, number: int) -> Any:
    """The fields held in ``number``: a dict for a structure, a list for an array, an integer for anything else."""
    number &= (1 << Shape.cast(layout).width) - 1
    if isinstance(layout, data.StructLayout):
        return {name: unpack(layout[name].shape, number >> layout[name].offset) for name in layout.members}
    if isinstance(layout, data.ArrayLayout):
        places = (layout[index] for index in range(layout.length))
        return [unpack(field.shape, number >> field.offset) for field in places]
    return number
