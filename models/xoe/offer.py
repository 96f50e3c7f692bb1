"""What an end offers to the other one when a connection opens, and whether that can be used."""

from __future__ import annotations

from .config import ATOMIC_SIZE, CREDIT_SIZES, WINDOW_MAX, NicConfig, credits_needed
from .wire import DATA_MAX, ControlBody, OperationHeader

CREDIT_SIZE_LOGS = tuple(size.bit_length() - 1 for size in CREDIT_SIZES)
LARGEST = (OperationHeader.SIZE + DATA_MAX, OperationHeader.SIZE + DATA_MAX, ATOMIC_SIZE)
"""Bytes of the largest operation of the classes 0, 1 and 2."""


def make_offer(config: NicConfig, first_seq: int = 0, first_credit: int = 0) -> ControlBody:
    """What a NIC offers to the other end of each of its connections."""
    return ControlBody(
        first_seq=first_seq,
        first_credit=first_credit,
        credit_size=config.credit_size.bit_length() - 1,
        credit_request=config.credit_request,
        credit_response=config.credit_response,
        credit_atomic=config.credit_atomic,
        atomic_slots=config.atomic_slots,
        window=config.window,
    )


def grants(offer: ControlBody) -> tuple[int, int, int]:
    """The credits that an OPEN grants for the classes 0, 1 and 2."""
    return offer.credit_request, offer.credit_response, offer.credit_atomic


def is_sound(offer: ControlBody, largest: tuple[int, ...] = LARGEST) -> bool:
    """Whether what an OPEN offers can be used: bounds as for ``NicConfig``, and room for the largest operation."""
    if offer.credit_size not in CREDIT_SIZE_LOGS or not 1 <= offer.window <= WINDOW_MAX or not offer.atomic_slots:
        return False
    needed = [credits_needed(size, 1 << offer.credit_size) for size in largest]
    return all(has >= least for has, least in zip(grants(offer), needed, strict=True))
