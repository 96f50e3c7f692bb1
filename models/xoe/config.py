"""The one configuration object that a NIC is made from, in the models and in the hardware."""

from __future__ import annotations

import dataclasses

from .wire import CRC_SIZE, GRID, MTU_MAX, MTU_MIN, FrameHeader, OperationHeader


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
WINDOW_MAX = 128  # frames
SLOTS_MAX = 255
CREDIT_SIZES = tuple(1 << bits for bits in range(5, 12))  # bytes
CREDIT_LIMIT_MAX = (1 << 12) - 1
BUFFER_OVERHEAD = 32  # bytes that a frame takes in a buffer besides its operations
BUFFER_MAX = (1 << 40) - 1  # bytes
ATOMIC_SIZE = OperationHeader.SIZE + 2 * GRID  # bytes of the largest atomic, a compare-and-swap
RESEND_FRAMES = 8  # of the largest size, for each connection: three are set aside for one to come of each class
SPARE_FRAMES = 2  # of the largest size, in the receive buffer: one arrives while one that is not kept is judged


def credits_needed(length: int, credit_size: int) -> int:
    """Credits of ``credit_size`` bytes that a frame with ``length`` bytes of operations takes: at least one."""
    return -(-(length + BUFFER_OVERHEAD) // credit_size)


@dataclasses.dataclass(frozen=True)
class NicConfig:
    """Parameters of a NIC.

    Those with the default 0 are then set to what the others ask for; 0 itself is nothing that one of them can be. The
    models' ``Nic`` takes no notice of those from ``window`` on: it has no transport, which ``Endpoint`` has.

    Attributes:
        data_width: bits of every data path and of the memory port: 64, 128, 256 or 512.
        cam_entries: pages that the translation CAM holds, 1..256.
        windows: entries of the responder's window table, 1..64.
        tags: operations in flight, a power of two from 4 to 4096.
        queue_pairs: connections, a power of two from 1 to 4096.
        mtu: the largest Ethernet payload that buffers are made for, 256..9000 bytes, a multiple of 8.
        counter_width: bits of every counter, 2..64; counters wrap.
        window: frames of a connection that may be without acknowledgement, 1..128.
        resend_buffer: bytes of frames without acknowledgement for each connection; 0: eight of the largest frames.
        receive_buffer: bytes of frames that came and wait, for all connections; 0: as many as are granted.
        credit_size: bytes that a credit is worth, a power of two from 32 to 2048.
        credit_request: credits of class 0 for each connection, 1..4095; 0: two of the largest frames.
        credit_response: credits of class 1 for each connection, 1..4095; 0: two of the largest frames.
        credit_atomic: credits of class 2 for each connection, 1..4095; 0: a frame for each slot.
        atomic_slots: atomics of a connection that may be without an answer, 1..255.

    Raises:
        ConfigError: a parameter outside these bounds; a retransmit buffer or credits that do not hold the largest frame
            (for atomics: as many as there are slots, if that is less); a receive buffer that does not hold what is
            granted and two of the largest frames.
    """

    data_width: int = 64
    cam_entries: int = 64
    windows: int = 16
    tags: int = 64
    queue_pairs: int = 16
    mtu: int = 4096
    counter_width: int = 32
    window: int = 64
    resend_buffer: int = 0
    receive_buffer: int = 0
    credit_size: int = 512
    credit_request: int = 0
    credit_response: int = 0
    credit_atomic: int = 0
    atomic_slots: int = 16

    def __post_init__(self) -> None:
        check_choice("data_width", self.data_width, DATA_WIDTHS)
        check_range("cam_entries", self.cam_entries, 1, 256)
        check_range("windows", self.windows, 1, 64)
        check_choice("tags", self.tags, tuple(1 << n for n in range(2, 13)))
        check_choice("queue_pairs", self.queue_pairs, tuple(1 << n for n in range(13)))
        check_range("mtu", self.mtu, MTU_MIN, MTU_MAX)
        if self.mtu % 8:
            raise ConfigError(f"mtu must be a multiple of 8, not {self.mtu!r}")
        check_range("counter_width", self.counter_width, 2, 64)
        check_range("window", self.window, 1, WINDOW_MAX)
        check_range("atomic_slots", self.atomic_slots, 1, SLOTS_MAX)
        check_choice("credit_size", self.credit_size, CREDIT_SIZES)
        self._check_credits()
        self._check_buffers()

    @property
    def payload_max(self) -> int:
        """Bytes of operations in the largest frame, a multiple of 8."""
        return (self.mtu - FrameHeader.SIZE - CRC_SIZE) // GRID * GRID

    @property
    def credits(self) -> tuple[int, int, int]:
        """Credits granted to each connection for the classes 0, 1 and 2."""
        return self.credit_request, self.credit_response, self.credit_atomic

    @property
    def receive_buffer_needed(self) -> int:
        """Bytes of the receive buffer that are granted, and those of two frames that turn out bad or not new."""
        spare = SPARE_FRAMES * credits_needed(self.payload_max, self.credit_size)
        return (self.queue_pairs * sum(self.credits) + spare) * self.credit_size

    def _check_credits(self) -> None:
        """Check, and choose, the credits that are granted for each class."""
        largest = credits_needed(self.payload_max, self.credit_size)
        atomics = credits_needed(min(self.payload_max, self.atomic_slots * ATOMIC_SIZE), self.credit_size)
        apart = self.atomic_slots * credits_needed(ATOMIC_SIZE, self.credit_size)
        self._choose("credit_request", min(2 * largest, CREDIT_LIMIT_MAX), CREDIT_LIMIT_MAX)
        self._choose("credit_response", min(2 * largest, CREDIT_LIMIT_MAX), CREDIT_LIMIT_MAX)
        self._choose("credit_atomic", max(atomics, apart), CREDIT_LIMIT_MAX)
        for name, least in (("credit_request", largest), ("credit_response", largest), ("credit_atomic", atomics)):
            if getattr(self, name) < least:
                raise ConfigError(
                    f"{name} must be at least {least} to hold the largest frame (mtu {self.mtu}, credit_size "
                    f"{self.credit_size}, atomic_slots {self.atomic_slots}), not {getattr(self, name)}"
                )

    def _check_buffers(self) -> None:
        """Check, and choose, the sizes of both buffers."""
        frame = self.payload_max + BUFFER_OVERHEAD
        self._choose("resend_buffer", RESEND_FRAMES * frame, BUFFER_MAX)
        if self.resend_buffer < frame:
            raise ConfigError(
                f"resend_buffer must be at least {frame} bytes to hold the largest frame (mtu {self.mtu}), not "
                f"{self.resend_buffer}"
            )
        needed = self.receive_buffer_needed
        self._choose("receive_buffer", needed, BUFFER_MAX)
        if self.receive_buffer < needed:
            raise ConfigError(
                f"receive_buffer must be at least {needed} bytes: {self.queue_pairs} queue pairs x "
                f"({' + '.join(map(str, self.credits))}) credits x {self.credit_size} bytes, and {SPARE_FRAMES} frames "
                f"of the largest MTU, not {self.receive_buffer}"
            )

    def _choose(self, name: str, needed: int, high: int) -> None:
        """Check a parameter, and replace 0 by what is needed."""
        value = getattr(self, name)
        check_range(name, value, 0, high)
        if value == 0:
            object.__setattr__(self, name, needed)
