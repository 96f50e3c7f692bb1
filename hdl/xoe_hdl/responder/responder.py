"""The responder: carries out peers' operations on memory and answers them. Its model is ``xoe.responder``."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from xoe.config import NicConfig
from xoe.responder import Outcome

from ..layouts import Axi4Signature, counters, operation_beat
from .answerer import Answerer
from .executor import Executor
from .read_path import ReadPath
from .request_check import RequestCheck
from .write_path import WritePath


class Responder(wiring.Component):
    """Joins check, executor, the paths to memory and the answerer.

    Ports:

    * ``requests``, ``responses``: operations, answered in their order. Requests are taken while fewer than about
      ``OPERATIONS`` are in hand; they never wait for anything but memory and ``responses``.
    * ``m_axi``: memory. Bursts are INCR, of full-width beats, of id 0, and never cross 4 KB; several are outstanding.
      ``b`` and ``r`` are ready all the time.
    * ``window_write``, ``window_written``: the window table's, see ``Cam``; the space is the node that asks.
    * ``counters``: one for each ``xoe.responder.Outcome``.
    """

    def __init__(self, config: NicConfig) -> None:
        self.config = config
        self.check = RequestCheck(config)
        width = config.data_width
        names = [outcome.name.lower() for outcome in Outcome]
        super().__init__(
            {
                "requests": In(stream.Signature(operation_beat(width))),
                "responses": Out(stream.Signature(operation_beat(width))),
                "m_axi": Out(Axi4Signature(width)),
                "window_write": self.check.signature.members["window_write"],
                "window_written": self.check.signature.members["window_written"],
                "counters": Out(counters(*names, width=config.counter_width)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Join the parts."""
        m = Module()
        width, axi = self.config.data_width, self.m_axi
        m.submodules.check = check = self.check
        m.submodules.executor = executor = Executor(width)
        m.submodules.read_path = reads = ReadPath(width)
        m.submodules.write_path = writes = WritePath(width)
        m.submodules.answerer = answerer = Answerer(width)
        connect(m, flipped(self.requests), check.requests)
        connect(m, flipped(self.window_write), check.window_write)
        connect(m, check.jobs, executor.jobs)
        connect(m, check.beats, executor.beats)
        connect(m, check.headers, answerer.headers)
        connect(m, reads.beats, answerer.beats)
        connect(m, answerer.responses, flipped(self.responses))
        for path, names in ((reads, ("ar", "r")), (writes, ("aw", "w", "b"))):
            for name in names:
                inside, outside = getattr(path, name), getattr(axi, name)
                ends = (flipped(outside), inside) if name in ("b", "r") else (inside, flipped(outside))
                connect(m, *ends)
        m.d.comb += [
            self.window_written.eq(check.window_written),
            reads.burst.eq(executor.burst),
            writes.burst.eq(executor.burst),
            writes.step.eq(executor.step),
            executor.read_room.eq(reads.room),
            executor.write_room.eq(writes.room),
            executor.read_beat.eq(reads.beat),
            answerer.order.eq(executor.order),
        ]
        self._join_tokens(m, executor, reads, writes, answerer)
        self._count(m, answerer)
        return m

    def _join_tokens(
        self, m: Module, executor: Executor, reads: ReadPath, writes: WritePath, answerer: Answerer
    ) -> None:
        """One stream of tokens: reads and writes are never under way at once."""
        m.d.comb += [
            executor.token.valid.eq(reads.token.valid | writes.token.valid),
            executor.token.is_bad.eq(reads.token.valid & reads.token.is_bad | writes.token.valid & writes.token.is_bad),
            answerer.token.valid.eq(executor.token.valid | executor.abort),
            answerer.token.is_bad.eq(executor.token.is_bad | executor.abort),
        ]

    def _count(self, m: Module, answerer: Answerer) -> None:
        for outcome in Outcome:
            counter = self.counters[outcome.name.lower()]
            happened = answerer.outcome.valid & (answerer.outcome.value == outcome)
            with m.If(self.check.ignored if outcome == Outcome.NOT_A_REQUEST else happened):
                m.d.sync += counter.eq(counter + 1)
