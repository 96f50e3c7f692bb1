"""Folders that are made once, by whoever comes first, and shared by all who ask for the same content."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

DONE = "done"  # the file that says that a folder is whole


def digest(*parts: object) -> str:
    """A short name for the content of ``parts``."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:12]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, against other processes; it falls when the process ends, however it ends."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """``folder``, filled by ``make(folder)`` unless that was done before; what was left half done is made again."""
    with locked(folder):
        if not (folder / DONE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            (folder / DONE).touch()
    return folder


def text_once(path: Path, make: Callable[[], str]) -> str:
    """What ``path`` holds, written by ``make()`` unless that was done before."""
    with locked(path):
        if not path.exists():
            text, part = make(), path.with_suffix(".part")
            part.write_text(text)
            part.rename(path)  # so that an interrupted writer leaves nothing that looks whole
    return path.read_text()
