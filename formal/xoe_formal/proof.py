"""What a proof is, and copies of a block that are broken on purpose."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from .harness import Harness

Change = tuple[str, str]
"""A text that stands once in a block's source, and what replaces it."""


@dataclasses.dataclass(frozen=True)
class Proof:
    """A property of a block, and how it is proved.

    Attributes:
        name: a word, for the command line.
        text: the property in words.
        block: the block's class, as ``module:class``.
        harness: makes what surrounds the block from that class, the true one or one that is broken.
        broken: changes of the source of the block's module. With each of them the property must fail; a property that
            holds no matter what the block does would say nothing.
        clocks: 0, and the property holds for all time; or as many clocks as are tried from a reset, where no more is
            feasible.
        stand_ins: what takes the place of parts of the block, by their names in its module: something looser, that
            may do all that the part may, and of which only that is assumed which another proof has shown.
    """

    name: str
    text: str
    block: str
    harness: Callable[[Any], Harness]
    broken: tuple[Change, ...]
    clocks: int = 0
    stand_ins: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def top(self, change: Change | None = None) -> Harness:
        """The harness round the block, or round a copy with ``change``.

        Raises:
            ValueError: the text to be changed does not stand in the source exactly once.
        """
        module_name, class_name = self.block.split(":")
        module = importlib.import_module(module_name)
        if change or self.stand_ins:
            module = altered_copy(module, change, self.stand_ins)
        return self.harness(getattr(module, class_name))


def altered_copy(module: ModuleType, change: Change | None, stand_ins: Mapping[str, Any]) -> ModuleType:
    """A module made from another one's source after ``change``, with ``stand_ins`` for some of its names.

    Raises:
        ValueError: the text to be changed does not stand there exactly once.
    """
    path = Path(str(module.__file__))
    source = path.read_text()
    if change:
        old, new = change
        if source.count(old) != 1:
            raise ValueError(f"{old!r} stands {source.count(old)} times in {path.name}, not once")
        source = source.replace(old, new)
    copy = ModuleType(f"{module.__name__}_altered")
    copy.__package__, copy.__file__ = module.__package__, module.__file__
    sys.modules[copy.__name__] = copy  # where a dataclass looks for its module
    exec(compile(source, path, "exec"), copy.__dict__)
    copy.__dict__.update(stand_ins)
    return copy
