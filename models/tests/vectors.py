"""The hand-written frames: one dictionary, name to bytes."""

from pathlib import Path

FOLDER = Path(__file__).parent / "vectors"


def read_vector(path: Path) -> bytes:
    """The bytes in a file of hexadecimal digits with comments behind ``#``."""
    return bytes.fromhex(" ".join(line.split("#")[0] for line in path.read_text().splitlines()))


VECTORS = {path.stem: read_vector(path) for path in sorted(FOLDER.glob("*.txt"))}
