"""What stands around the reader: a store of frames, the table of connections, and what is to come out of each frame."""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Any

from block_environment import BlockEnvironment, Lookup
from parser_stimulus import payload
from xoe.config import NicConfig
from xoe.operation import Operation, split
from xoe.wire import GRID
from xoe_hdl.parser.aligner import lead_words
from xoe_hdl.parser.word_window import MANY, payload_beat
from xoe_hdl.transport import connection_layouts as layouts
from xoe_hdl.transport.layouts import qp_bits
from xoe_hdl.transport.page_store import segment
from xoe_hdl.transport.reader import REQUESTS_MAX
from xoe_hdl.transport.receive_layouts import delivery_layout, freed_layout
from xoe_tb import OperationSink, drive_struct, params

CONFIG = NicConfig(**params()["config"])
PAGES = params()["pages"]
BITS = qp_bits(CONFIG.queue_pairs)
WIDTH, WORDS = CONFIG.data_width, CONFIG.data_width // (8 * GRID)
LEAD = lead_words(WIDTH)
DELIVERY = delivery_layout(BITS, PAGES)
ROW = payload_beat(WIDTH)
ROOMS = (0, 1, 3)
OUT = 2  # operations that may be on their way out when their frame has left


@dataclasses.dataclass(eq=False)
class Frame:
    """A delivered frame in the store."""

    qp: int
    epoch: int
    traffic_class: int
    content: bytes
    pages: list[int]
    rows: list[dict[str, int]]
    fetched: int = 0
    unseen: int = 0  # operations that have not come out
    is_dropped: bool = False

    @property
    def words(self) -> int:
        return len(self.content) // GRID

    @property
    def segment(self) -> dict[str, int]:
        return {"first": self.pages[0], "last": self.pages[-1], "pages": len(self.pages)}

    def fields(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}


class ReaderBench(BlockEnvironment):
    """Judges each frame when it is taken; the table changes only in such a clock, or when nothing is looked up."""

    def __init__(self, dut: Any) -> None:
        self.lookup = Lookup(dut, "qp", "entry", layouts.entry_layout())
        self.changes = 0.0  # how likely an incarnation ends when a frame is taken
        outputs = {"freed": freed_layout(BITS), "give_back": segment(PAGES)}
        super().__init__(dut, {"requests": DELIVERY, "responses": DELIVERY}, outputs)
        sink = OperationSink(dut, "operations")
        sink.add_callback(self._on_operation)
        self.sinks["operations"] = sink
        self.rooms: deque[int] = deque(maxlen=3)  # of the last clocks
        self.set_room(3)
        drive_struct(dut, "row", ROW, {})

    def forget(self) -> None:
        super().forget()
        self.lookup.forget()
        self.expected["operations"] = deque()
        widths = layouts.entry_layout().members
        self.table = [{name: self.rng.getrandbits(bits) for name, bits in widths.items()} for _ in range(1 << BITS)]
        for entry in self.table:
            entry["is_open"] = 1
        self.free_pages = list(range(PAGES))
        self.stored: dict[int, Frame] = {}  # by first page
        self.to_read: deque[Frame] = deque()
        self.chosen: list[Frame] = []  # requests that are to be taken apart, until all of their operations came out
        self.freed: list[Frame | None] = []
        self.given: list[Frame] = []
        self.malformed = self.malformed_seen = self.dropped = 0
        self._reading: Frame | None = None
        self._row_shown = False

    def set_room(self, room: int) -> None:
        self.dut.room.value = room

    # ------------------------------------------------------------------ what goes in

    def deliver(self, port: str, content: bytes | None = None, qp: int | None = None, **fields: int) -> Frame | None:
        """A frame's turn has come; None if there are no pages for it."""
        rng = self.rng
        if content is None:
            content = self._content()
        rows = self._rows(content)
        count = rng.randint(1, min(3, len(rows)))
        if count > len(self.free_pages):
            return None
        pages = [self.free_pages.pop(rng.randrange(len(self.free_pages))) for _ in range(count)]
        qp = rng.randrange(CONFIG.queue_pairs) if qp is None else qp
        traffic_class = 1 if port == "responses" else rng.choice((0, 2))
        frame = Frame(qp, fields.get("epoch", self.table[qp]["epoch"]), traffic_class, content, pages, rows)
        self.stored[pages[0]] = frame
        self.send(port, frame.fields("qp", "epoch", "traffic_class", "words", "segment"), frame)
        return frame

    def _content(self) -> bytes:
        """Operations, of which the last may be cut, or anything at all."""
        rng = self.rng
        content = payload(rng, rng.choice((32, 100, 600))) or Operation(1, length=8).encode()
        draw = rng.random()
        if draw < 0.1:
            return rng.randbytes(rng.randint(1, 40) * GRID)
        return content[: rng.randint(1, len(content) // GRID) * GRID] if draw < 0.2 else content

    def _rows(self, content: bytes) -> list[dict[str, int]]:
        """As the parser has stored them: in front of the first operation there may be words of the header."""
        rng, size, total = self.rng, WORDS * GRID, LEAD + len(content) // GRID
        stored = rng.randbytes(LEAD * GRID) + content
        stored += rng.randbytes(-len(stored) % size)
        rows = []
        for at in range(0, total, WORDS):
            word = int.from_bytes(stored[at * GRID : at * GRID + size], "little")
            rows.append({"data": word, "remaining": min(MANY, total - at), "last": int(total - at <= WORDS)})
        return rows

    # ------------------------------------------------------------------ what comes out

    def on_clock(self) -> None:
        self.lookup.on_clock(self.table)
        self.rooms.append(int(self.dut.room.value))
        self.malformed_seen += self.dut.is_malformed.value == 1
        row = self._fetch() if self.dut.fetch.value == 1 else None
        if row is not None:
            drive_struct(self.dut, "row", ROW, row)
        elif self._row_shown:  # it was there for that clock only
            drive_struct(self.dut, "row", ROW, {"data": self.rng.getrandbits(WIDTH), "remaining": 1, "last": 1})
        self._row_shown = row is not None

    def _fetch(self) -> dict[str, int]:
        if self.dut.fetch_first.value == 1:
            assert self._reading is None, "a frame was not read to its end"
            self._reading = self.to_read.popleft()
            assert int(self.dut.fetch_page.value) == self._reading.pages[0]
        frame = self._reading
        assert frame is not None, "there is no row after a frame's last one"
        row = frame.rows[frame.fetched]
        frame.fetched += 1
        if frame.fetched == len(frame.rows):
            self._reading = None
        return row

    def on_requests(self, frame: Frame) -> None:
        assert self.dut.responses_tvalid.value == 0, "responses go first"
        under_way = sum(other.unseen > OUT for other in self.chosen)
        assert under_way < REQUESTS_MAX
        assert any(room >> under_way & 1 for room in self.rooms), f"no room behind {under_way} frames"
        self._judge(frame)
        if not frame.is_dropped:
            self.chosen.append(frame)

    def on_responses(self, frame: Frame) -> None:
        self._judge(frame)

    def _judge(self, frame: Frame) -> None:
        if self.rng.random() < self.changes:
            entry = self.table[self.rng.randrange(CONFIG.queue_pairs)]
            entry["epoch"], entry["is_open"] = (entry["epoch"] + 1) % 256, self.rng.random() < 0.8
        entry = self.table[frame.qp]
        frame.is_dropped = not entry["is_open"] or entry["epoch"] != frame.epoch
        if frame.is_dropped:
            self.dropped += 1
            return
        self.to_read.append(frame)
        operations, is_whole = split(frame.content)
        self.malformed += not is_whole
        peer = {name: entry[name] for name in ("mac", "node", "remote_qp")}
        route = {**peer, "local_qp": frame.qp, "traffic_class": frame.traffic_class, "epoch": frame.epoch}
        frame.unseen = len(operations)
        self.expected["operations"].extend((frame, operation, route) for operation in operations)

    def _on_operation(self, found: tuple[Operation, dict[str, int]]) -> None:
        frame, *expected = self.expected["operations"].popleft()
        assert list(found) == expected, f"{found} instead of {expected}"
        frame.unseen -= 1
        self.chosen = [other for other in self.chosen if other.unseen]

    def take_give_back(self, place: dict[str, int]) -> None:
        """Once for each frame, when all of it is read, or nothing if it was dropped."""
        frame = self.stored.pop(place["first"])
        assert place == frame.segment
        assert frame.fetched == (0 if frame.is_dropped else len(frame.rows))
        assert frame.unseen <= OUT
        self.free_pages += frame.pages
        self.given.append(frame)

    def take_freed(self, fields: dict[str, int]) -> None:
        self.freed.append(fields)

    @property
    def is_quiet(self) -> bool:
        return super().is_quiet and not self.stored and len(self.freed) == len(self.given)

    async def settle(self, clocks: int = 40) -> None:
        await super().settle(clocks)
        names = ("qp", "epoch", "traffic_class", "words")
        assert self.freed == [frame.fields(*names) for frame in self.given]
        assert self.malformed_seen == self.malformed
        assert sorted(self.free_pages) == list(range(PAGES))
