"""Tags: which are free, and what is known of the requests that have the others."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from .wire import OperationHeader

TAG_BITS = next(field.width for field in OperationHeader.layout() if field.name == "tag")

RecordT = TypeVar("RecordT")


class Tags(Generic[RecordT]):
    """Gives out tags and takes each back once, with what was kept for it.

    A tag is an index (0..``tags`` - 1, the low bits) and a generation that grows by one, cyclically, each time the
    index is given out. So an answer that comes late, or again, is told from one that is waited for. Indices are given
    in order first, then in the order in which they came back. ``tags`` is a power of two; ``generation`` is that before
    the first.
    """

    def __init__(self, tags: int, generation: int = 0) -> None:
        self.tags = tags
        self._free = deque(range(tags))
        self._last = [generation * tags] * tags  # the tag given last
        self._records: dict[int, RecordT] = {}

    def reset(self) -> None:
        """Take all tags back at once; generations go on, so that nobody waits for what was asked before."""
        self._free = deque(range(self.tags))
        self._records.clear()

    def __len__(self) -> int:
        """How many tags are out."""
        return len(self._records)

    @property
    def in_flight(self) -> dict[int, RecordT]:
        """What was kept for the tags that are out, oldest first."""
        return dict(self._records)

    def record(self, tag: int) -> RecordT:
        """What was kept for a tag that is out.

        Raises:
            KeyError: it is not.
        """
        return self._records[tag]

    def give(self, record: RecordT) -> int | None:
        """The next tag, for which ``record`` is kept; None if all are out."""
        if not self._free:
            return None
        index = self._free.popleft()
        generation = self._last[index] // self.tags + 1
        tag = (generation * self.tags + index) % (1 << TAG_BITS)
        self._last[index] = tag
        self._records[tag] = record
        return tag

    def retire(self, tag: int) -> RecordT | None:
        """Take a tag back; what was kept for it, or None if it is not out."""
        record = self._records.pop(tag, None)
        if record is not None:
            self._free.append(tag % self.tags)
        return record
