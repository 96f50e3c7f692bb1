"""Assertions for every stream and every queue."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, Value, ValueLike

from .harness import Harness


def check_stable(top: Harness, m: Module, name: str, stream: Any) -> None:
    """Assert that ``stream`` keeps valid and payload until ready."""
    payload = Value.cast(stream.payload)
    waits, kept = Signal(name=f"{name}_waits"), Signal(len(payload), name=f"{name}_kept")
    m.d.sync += [waits.eq(stream.valid & ~stream.ready), kept.eq(payload)]
    top.check(f"{name}_keeps_valid", ~waits | stream.valid)
    top.check(f"{name}_keeps_payload", ~waits | (payload == kept))


def check_order(
    top: Harness,
    m: Module,
    put: Value,
    put_payload: ValueLike,
    stream: Any,
    capacity: int,
    patience: int,
    is_due: Value | None = None,
) -> None:
    """Assert that what is ``put`` comes out of ``stream``: each once, unchanged, in order, and not too late.

    Whichever payload the solver picks is followed on its way. Nothing may come out in the clock in which it was put.
    ``capacity`` payloads at the most are inside, and for ``patience`` clocks at the most nothing is offered meanwhile,
    or while ``is_due``.
    """
    take, payload = stream.valid & stream.ready, Value.cast(stream.payload)
    level, silent = Signal(range(capacity + 2)), Signal(range(patience + 2))
    ahead, follows, kept = Signal(range(capacity + 2)), Signal(), Signal(len(payload))
    m.d.sync += level.eq(level + put - take)
    with m.If((level != 0 if is_due is None else is_due) & ~stream.valid):
        m.d.sync += silent.eq(silent + 1)
    with m.Else():
        m.d.sync += silent.eq(0)
    with m.If(~follows & put & top.anything("pick", follows)):
        m.d.sync += [follows.eq(1), ahead.eq(level - take), kept.eq(Value.cast(put_payload))]
    with m.Elif(follows & take):
        m.d.sync += [follows.eq(ahead != 0), ahead.eq(ahead - 1)]
    top.check("fits", level <= capacity)
    top.check("is_inside", ~stream.valid | (level != 0))
    top.check("is_offered_in_time", silent <= patience)
    top.check("is_in_order", ~(follows & take & (ahead == 0)) | (payload == kept))
