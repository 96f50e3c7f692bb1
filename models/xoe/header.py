"""Headers declared once, as dataclasses whose fields know their width.

A header is an ordered list of bit fields, first field first on the wire, most significant bit first
(network order, as in IEEE 802.3 and the Internet protocols). The codec here, the Amaranth layouts in
``xoe_hdl.wire`` and the tables in ``docs/wire-format.md`` are all derived from that one list.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar, NamedTuple, Self


class FieldError(ValueError):
    """A value that does not fit its field, or bytes that are not as long as the header."""


class BitField(NamedTuple):
    """Where a field lies: ``offset`` and ``width`` in bits, counted from the header's first bit on the wire."""

    name: str
    offset: int
    width: int
    text: str
    is_reserved: bool


def bits(width: int, text: str, default: int = 0) -> Any:
    """Declare a field of ``width`` bits; ``text`` says what it holds, in the words of the document."""
    return dataclasses.field(default=default, metadata={"width": width, "text": text})


def reserved(width: int) -> Any:
    """Declare ``width`` bits that are sent as 0 and ignored when received."""
    return dataclasses.field(default=0, init=False, repr=False, compare=False, metadata={"width": width, "text": ""})


@dataclasses.dataclass(frozen=True)
class Header:
    """Base of every header: packs to, and unpacks from, its bytes on the wire."""

    SIZE: ClassVar[int] = 0

    @classmethod
    def layout(cls) -> list[BitField]:
        """The fields in wire order."""
        return list(cls._fields())

    @classmethod
    @functools.cache
    def _fields(cls) -> tuple[BitField, ...]:
        """``layout``, worked out once for each header."""
        found, offset = [], 0
        for field in dataclasses.fields(cls):
            width = field.metadata["width"]
            found.append(BitField(field.name, offset, width, field.metadata["text"], not field.init))
            offset += width
        return tuple(found)

    def pack(self) -> bytes:
        """The header's ``SIZE`` bytes.

        Raises:
            FieldError: a value is negative or has more bits than its field.
        """
        number = 0
        for field in self._fields():
            value = getattr(self, field.name)
            if not 0 <= value < 1 << field.width:
                limit = (1 << field.width) - 1
                raise FieldError(f"{type(self).__name__}.{field.name} must be 0..{limit:#x}, not {value!r}")
            number = number << field.width | (0 if field.is_reserved else value)
        return number.to_bytes(self.SIZE, "big")

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """The header in the first ``SIZE`` bytes of ``data``; reserved bits are ignored.

        Raises:
            FieldError: ``data`` is shorter than the header.
        """
        if len(data) < cls.SIZE:
            raise FieldError(f"{cls.__name__} needs {cls.SIZE} bytes, not {len(data)}")
        number = int.from_bytes(data[: cls.SIZE], "big")
        return cls(*(number >> shift & mask for shift, mask in cls._places()))

    @classmethod
    @functools.cache
    def _places(cls) -> tuple[tuple[int, int], ...]:
        """Of each field that is not reserved, in order: bits behind it, and a mask of its width."""
        return tuple(
            (cls.SIZE * 8 - field.offset - field.width, (1 << field.width) - 1)
            for field in cls._fields()
            if not field.is_reserved
        )
