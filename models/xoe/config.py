"""The one configuration object that a NIC is made from, in the models and in the hardware."""

from __future__ import annotations

import dataclasses

from .wire import MTU_MAX, MTU_MIN


class ConfigError(ValueError):
    """A configuration that cannot be built; the message names the parameter, what is allowed and the value."""


def check_range(name: str, value: int, low: int, high: int) -> None:
    """Raise ConfigError unless ``value`` is an integer from ``low`` to ``high``."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"{name} must be an integer from {low} to {high}, not {value!r}")


def check_choice(name: str, value: int, allowed: tuple[int, ...]) -> None:
    """Raise ConfigError unless ``value`` is one of ``allowed``."""
    if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
        raise ConfigError(f"{name} must be one of {', '.join(map(str, allowed))}, not {value!r}")


DATA_WIDTHS = (64, 128, 256, 512)


@dataclasses.dataclass(frozen=True)
class NicConfig:
    """Parameters of a NIC.

    Attributes:
        data_width: bits of every data path and of the memory port: 64, 128, 256 or 512.
        cam_entries: pages that the translation CAM holds, 1..256.
        windows: entries of the responder's window table, 1..64.
        tags: operations in flight, a power of two from 4 to 1024.
        queue_pairs: connections, a power of two from 1 to 4096.
        mtu: the largest Ethernet payload that buffers are made for, 256..9000 bytes, a multiple of 8.
        counter_width: bits of every counter, 2..64; counters wrap.

    Raises:
        ConfigError: a parameter outside these bounds.
    """

    data_width: int = 64
    cam_entries: int = 64
    windows: int = 16
    tags: int = 64
    queue_pairs: int = 16
    mtu: int = 4096
    counter_width: int = 32

    def __post_init__(self) -> None:
        check_choice("data_width", self.data_width, DATA_WIDTHS)
        check_range("cam_entries", self.cam_entries, 1, 256)
        check_range("windows", self.windows, 1, 64)
        check_choice("tags", self.tags, tuple(1 << n for n in range(2, 11)))
        check_choice("queue_pairs", self.queue_pairs, tuple(1 << n for n in range(13)))
        check_range("mtu", self.mtu, MTU_MIN, MTU_MAX)
        if self.mtu % 8:
            raise ConfigError(f"mtu must be a multiple of 8, not {self.mtu!r}")
        check_range("counter_width", self.counter_width, 2, 64)
