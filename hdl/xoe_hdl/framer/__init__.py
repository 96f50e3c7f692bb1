"""Operations to frames: ``Framer`` and its parts."""

from .framer import COUNTERS, Framer

__all__ = ["COUNTERS", "Framer"]
