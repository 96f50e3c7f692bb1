"""All proofs: a file for each block or kind of block. Those that take longest are begun first."""

from ..proof import Proof
from .page_store import PAGE_STORE
from .queues import QUEUES

PROOFS: tuple[Proof, ...] = (*PAGE_STORE, *QUEUES)
