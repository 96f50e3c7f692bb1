"""What the transport's registers hold. ``docs/transport.md`` has the protocol; its parts are modules of their own."""

from __future__ import annotations

import dataclasses

from .config import check_range

CLOCKS_MAX = (1 << 24) - 1
RETRIES_MAX = 15
SILENT_SYNCS = 4  # acknowledgements that were due and did not come, before silence means anything
BACKOFF_MAX = 6  # a time-out is doubled so many times at the most


@dataclasses.dataclass(frozen=True)
class TransportSettings:
    """Times are in clocks.

    Attributes:
        resend_timeout: without any progress for so long, all that is outstanding is sent again; doubled each time.
            About four round trips.
        probe_timeout: without progress for so long, the last frame is sent again to see what is missing (a tail-loss
            probe), once before the first time-out; 0: never. About two round trips.
        retries: how often a frame is sent again before its connection is given up, 0..15.
        reorder: a frame is lost once one that was sent more than so many frames later has arrived, 0..63.
        ack_every: data frames that are acknowledged at once, 1..64; fewer of them wait for ``ack_delay``.
        ack_delay: the longest that an acknowledgement waits. About a quarter of a round trip.
        sync_interval: after so long without an acknowledgement one is sent anyway, so that whatever was lost heals.
        silence_timeout: a connection of whose other end nothing was heard for so long is lost; at least four times the
            longer ``sync_interval`` of both ends.
        open_timeout: an opening or closing that is not answered is repeated after so long, ``retries`` times.
        go_back_n: whether frames that come out of order are dropped, and everything from the missing one on is sent
            again. Both ends have to be set alike.

    Raises:
        ConfigError: a value outside these bounds.
    """

    resend_timeout: int = 4096
    probe_timeout: int = 2048
    retries: int = 7
    reorder: int = 3
    ack_every: int = 4
    ack_delay: int = 256
    sync_interval: int = 1 << 16
    silence_timeout: int = 1 << 19
    open_timeout: int = 4096
    go_back_n: bool = False

    def __post_init__(self) -> None:
        check_range("resend_timeout", self.resend_timeout, 1, CLOCKS_MAX)
        check_range("probe_timeout", self.probe_timeout, 0, CLOCKS_MAX)
        check_range("sync_interval", self.sync_interval, 1, CLOCKS_MAX // SILENT_SYNCS)
        check_range("silence_timeout", self.silence_timeout, SILENT_SYNCS * self.sync_interval, CLOCKS_MAX)
        check_range("retries", self.retries, 0, RETRIES_MAX)
        check_range("reorder", self.reorder, 0, 63)
        check_range("ack_every", self.ack_every, 1, 64)
        check_range("ack_delay", self.ack_delay, 0, CLOCKS_MAX)
        check_range("open_timeout", self.open_timeout, 1, CLOCKS_MAX)
