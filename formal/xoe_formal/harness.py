"""What surrounds a block in a proof: free inputs, assumptions about who drives them, and assertions."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, ClockDomain, Elaboratable, Module, Signal, Value, ValueLike


class Harness(Elaboratable):
    """The top of a proof; ``build`` says what is in it. The reset is free, too: it may come in any clock.

    Attributes:
        inputs: all signals that may have any value in any clock, clock and reset among them.
        checks: the assertions, by their names.
        is_replay: what is built is for a simulator, which has no use for assumptions and assertions.
    """

    def __init__(self) -> None:
        self.domain = ClockDomain("sync")
        self.inputs = [self.domain.clk, self.domain.rst]
        self.checks: dict[str, Signal] = {}
        self.is_replay = False
        self._module = Module()

    def elaborate(self, platform: object) -> Module:
        """What ``build`` makes, and a clock."""
        self._module.domains += self.domain
        self.build(self._module)
        return self._module

    def build(self, m: Module) -> None:
        """Put the block, its inputs and the assertions in ``m``."""
        raise NotImplementedError

    def anything(self, name: str, like: ValueLike) -> Signal:
        """A new signal, as wide as ``like``, that may have any value in any clock."""
        signal = Signal(len(Value.cast(like)), name=name)
        self.inputs.append(signal)
        return signal

    def assume(self, condition: ValueLike) -> None:
        """Look only at what may happen as long as ``condition`` is met."""
        if not self.is_replay:
            self._module.d.comb += Assume(condition)

    def check(self, name: str, condition: ValueLike) -> None:
        """Assert ``condition`` in every clock."""
        signal = self.checks[name] = Signal(name=f"check_{name}")
        self._module.d.comb += signal.eq(condition)
        if not self.is_replay:
            self._module.d.comb += Assert(signal)
