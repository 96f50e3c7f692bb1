"""Frames to operations: ``Parser`` and its parts."""

from .parser import COUNTERS, Parser

__all__ = ["COUNTERS", "Parser"]
