"""All proofs: a file for each block or kind of block. Those that take longest are begun first."""

from ..proof import Proof
from .operation_queue import OPERATION_QUEUE
from .order import ORDER
from .page_store import PAGE_STORE
from .page_store_room import PAGE_STORE_ROOM
from .page_store_rows import PAGE_STORE_ROWS
from .queues import QUEUES

PROOFS: tuple[Proof, ...] = (ORDER, OPERATION_QUEUE, *PAGE_STORE, PAGE_STORE_ROWS, *PAGE_STORE_ROOM, *QUEUES)
