"""What a bench tells while it runs: it writes lines to a file, and whoever waits for it reads them to the terminal."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

INTERVAL = 0.3  # seconds


@contextlib.contextmanager
def shown(path: Path) -> Iterator[None]:
    """Copy the lines that are added to ``path`` to standard error as they come; the file goes away in the end."""
    path.write_text("")
    is_over = threading.Event()

    def copy() -> None:
        with path.open() as lines:
            while not is_over.wait(INTERVAL):
                sys.stderr.write(lines.read())
                sys.stderr.flush()
            sys.stderr.write(lines.read())

    reader = threading.Thread(target=copy, daemon=True)
    reader.start()
    try:
        yield
    finally:
        is_over.set()
        reader.join()
        path.unlink(missing_ok=True)
