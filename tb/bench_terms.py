"""From offers to what the sender goes by: every size of a credit, every number of slots, and bounds of all else."""

from __future__ import annotations

import itertools

import cocotb

from block_environment import BlockEnvironment
from xoe.config import ATOMIC_SIZE, CREDIT_LIMIT_MAX, CREDIT_SIZES, SLOTS_MAX, WINDOW_MAX, NicConfig, credits_needed
from xoe.wire import GRID
from xoe_hdl.transport import connection_layouts as layouts
from xoe_hdl.transport.layouts import qp_bits
from xoe_hdl.transport.sender.layouts import opening
from xoe_tb import PAUSES, params

CONFIG = NicConfig(**params()["config"])
FIRST_SEQ, FIRST_CREDIT = params()["first_seq"], params()["first_credit"]
OFFER = layouts.sender_layout(qp_bits(CONFIG.queue_pairs))
CLOCKS = 3
CREDITS = ("credit_request", "credit_response", "credit_atomic")


class Bench(BlockEnvironment):
    """Says what comes of an offer when it is taken, which is when the other side is."""

    def __init__(self, dut) -> None:
        super().__init__(dut, {"offer": OFFER}, {"opens": opening(CONFIG.queue_pairs)})
        self.since = 0  # clocks for which an offer is there
        self.offers: list[dict[str, int]] = []
        self.opened = 0

    def offer(self, **fields: int) -> None:
        random = {name: self.rng.getrandbits(width) for name, width in OFFER.members.items()}
        known = {"qp": self.rng.randrange(CONFIG.queue_pairs), "credit_size": self.rng.randint(5, 11)}
        self.offers.append({**random, **known, "atomic_slots": self.rng.randint(1, SLOTS_MAX), **fields})
        self.send("offer", self.offers[-1])

    def on_clock(self) -> None:
        dut = self.dut
        self.since = self.since + 1 if dut.offer_tvalid.value == 1 else 0
        assert dut.opens_tvalid.value == (self.since > CLOCKS)
        assert dut.offer_tready.value == (dut.opens_tvalid.value and dut.opens_tready.value)

    def on_offer(self, fields: dict[str, int]) -> None:
        self.since = 0

    def take_opens(self, found: dict) -> None:
        offer = self.offers[self.opened]
        self.opened += 1
        limits = [offer[name] for name in CREDITS]
        size = 1 << offer["credit_size"]
        data, atomics = CONFIG.payload_max, min(CONFIG.payload_max, offer["atomic_slots"] * ATOMIC_SIZE)
        needed = [credits_needed(most, size) for most in (data, data, atomics)]
        assert found == {
            **{name: offer[name] for name in ("qp", "epoch", "peer_epoch")},
            "first_seq": FIRST_SEQ,
            "first_credit": FIRST_CREDIT,
            "window": min(offer["window"], CONFIG.window),
            "credit_shift": (size // GRID).bit_length() - 1,
            "limits": limits,
            "most": [min(most, limit) for most, limit in zip(needed, limits, strict=True)],
        }


@cocotb.test(timeout_time=300, timeout_unit="us")
@cocotb.parametrize(pause=list(PAUSES))
async def any_offers(dut, pause):
    bench = await Bench.started(dut, pause)
    for _ in range(150):
        bench.offer()
    await bench.settle()
    assert bench.opened == 150


@cocotb.test(timeout_time=300, timeout_unit="us")
async def every_size_of_a_credit_with_every_bound(dut):
    """What is granted is less than a frame takes, as much, or more."""
    bench = await Bench.started(dut)
    for size, slots in itertools.product(CREDIT_SIZES, (1, 2, 7, 8, 127, 128, SLOTS_MAX)):
        needed = {credits_needed(most, size) for most in (CONFIG.payload_max, slots * ATOMIC_SIZE)}
        for limit in sorted({1, CREDIT_LIMIT_MAX, *needed, *(most - 1 for most in needed)}):
            credits = dict.fromkeys(CREDITS, min(limit, CREDIT_LIMIT_MAX))
            bench.offer(credit_size=size.bit_length() - 1, atomic_slots=slots, **credits)
    await bench.settle()


@cocotb.test(timeout_time=300, timeout_unit="us")
async def every_window_and_number_of_slots(dut):
    bench = await Bench.started(dut)
    for number in range(1, SLOTS_MAX + 1):
        bench.offer(window=min(number, WINDOW_MAX), atomic_slots=number, credit_atomic=CREDIT_LIMIT_MAX)
    await bench.settle()


@cocotb.test(timeout_time=300, timeout_unit="us")
async def resets_in_the_middle(dut):
    bench = await Bench.started(dut)
    for clocks in range(30):
        bench.offer()
        await bench.clocks(clocks % 8)
        await bench.reset()
        bench.since, bench.offers, bench.opened = 0, [], 0
    bench.offer()
    await bench.settle()
