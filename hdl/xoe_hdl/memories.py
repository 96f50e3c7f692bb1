"""What synthesis is to be told of memories."""

from __future__ import annotations

NO_COLLISION = {"no_rw_check": 1}
"""Tells Yosys that what a read finds in a row being written doesn't matter, so that it adds no logic to have it old."""
