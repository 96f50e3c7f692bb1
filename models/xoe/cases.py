"""Faults that every pair of ends has to be immune to, as scripts: two models, two NICs, or one of each run the same.

``CASES`` has them by name. What must come of the commands is not in them: ``xoe.outcomes`` says that of any script.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from .faults import Rates
from .stimulus import SLOT, SLOTS

BEGIN = 8000  # clocks: connections are open by then
APART = 60  # clocks between commands that each get a frame, several of them within a round trip
RETRIES = 2
QUICK = {"sync_interval": 10_000, "silence_timeout": 40_000}  # so that the loss of a connection is noticed soon


@dataclasses.dataclass(frozen=True)
class Case:
    """A script.

    Attributes:
        text: see ``xoe.fault_script`` and ``xoe.scenario``.
        is_clean: every command must be done: nothing may be refused or lost.
        rates: faults at random besides.
    """

    text: str
    is_clean: bool = True
    rates: Rates | None = None


def _events(commands: Iterable[str], begin: int = BEGIN, apart: int = APART, end: str = "A") -> str:
    """A command after the other."""
    return "".join(f"at {begin + apart * index} {end} {command}\n" for index, command in enumerate(commands))


def _writes(count: int) -> Iterator[str]:
    return (f"write qp=0 slot={index % SLOTS} length=256 fill={index}" for index in range(count))


def _setup(**parameters: int) -> str:
    return f"at 0 A setup {' '.join(f'{name}={value}' for name, value in parameters.items())}\n"


def _answers() -> Iterator[tuple[str, Case]]:
    """An atomic's answer is lost, late, repeated or spoilt, with two other atomics between."""
    for fault in ("drop", "delay=3000", "duplicate=900", "flip=200", "truncate=40"):
        commands = _events(["add qp=0 value=5", "add qp=0 value=7"], apart=600)
        others = _events(["add qp=0 value=9"], begin=BEGIN + 300, end="B")
        name = f"answer_{fault.split('=')[0]}"
        yield name, Case(f"B>A {fault} response nth=1\n" + commands + others)
        yield f"{name}_go_back_n", Case(f"B>A {fault} response nth=1\n" + _setup(go_back_n=1) + commands + others)


def _messages() -> Iterator[tuple[str, Case]]:
    """A message of several frames, of which one is lost."""
    for frames in (1, 2, 8, 17):
        for place, psn in {"first": 0, "middle": frames // 2, "last": frames - 1}.items():
            text = f"A>B drop data psn={psn} nth=1\n" + _events(_writes(frames), apart=200)
            yield f"write_{frames}_frames_{place}_lost", Case(text)
            if frames == 17:
                yield f"write_{frames}_frames_{place}_lost_go_back_n", Case(text + _setup(go_back_n=1))


def _lengths() -> Iterator[tuple[str, Case]]:
    """Every length around every power of two up to 16 KB, written and read back over a link that loses frames."""
    commands, slot = [], 0
    for power in range(15):
        for length in sorted({(1 << power) + step for step in (-1, 0, 1)} - {0}):
            parts = [min(SLOT, length - at) for at in range(0, length, SLOT)]
            slots = [(slot + index) % SLOTS for index in range(len(parts))]
            slot += 1
            for at in range(0, len(parts), SLOTS):
                pairs = list(zip(slots[at : at + SLOTS], parts[at : at + SLOTS], strict=True))
                commands += [f"write qp=0 slot={where} length={part} fill={length % 251 + at}" for where, part in pairs]
                commands += [f"read qp=0 slot={where} length={part}" for where, part in pairs]
    yield "lengths", Case(_events(commands, apart=45), rates=Rates(drop=0.02))


def _copies() -> Iterator[tuple[str, Case]]:
    """The copies that are sent again are lost too: as often as a frame may be sent again, and once more."""
    for direction in ("A>B", "B>A"):
        for lost in range(1, RETRIES + 2):
            for go_back_n in (0, 1):
                text = f"{direction} drop data psn=0 nth=1..{lost}\n" + _setup(
                    retries=RETRIES, go_back_n=go_back_n, **QUICK
                )
                way = {"A>B": "requests", "B>A": "answers"}[direction]
                name = f"{way}_lost_{lost}_times" + "_go_back_n" * go_back_n
                yield name, Case(text + _events(["add qp=0 value=3"]), is_clean=lost <= RETRIES)


def _boundaries() -> Iterator[tuple[str, Case]]:
    """A short frame is asked for in each clock around that in which a long one is sent again, until it has left.

    The probe comes 2,048 clocks after the long frame, which the hardware begins after some 200.
    """
    offsets = (*range(2180, 2270), *range(2380, 2420))
    rules, events, apart = "", "", 3500
    for index, offset in enumerate(offsets):
        end, begin = "AB"[index % 2], BEGIN + apart * (index // 2)
        events += "".join(f"at {begin} {end} write qp=0 slot={slot} length=256 fill={index}\n" for slot in range(4))
        events += f"at {begin + offset} {end} add qp=0 value={index + 1}\n"
    for direction in ("A>B", "B>A"):
        rules += "".join(f"{direction} drop request psn={psn} nth=1\n" for psn in range(0, 2 * len(offsets), 2))
    yield "short_frame_while_a_long_one_is_resent", Case(rules + _setup(delay=100) + events)


def _wraps() -> Iterator[tuple[str, Case]]:
    """PSNs and counts of credits begin 3 before their end, with loss on both sides of it."""
    last = (1 << 24) - 1
    for go_back_n in (0, 1):
        lost = (last - 1, last, 0, 2)
        rules = "".join(f"{way} drop data psn={psn} nth=1\n" for way in ("A>B", "B>A") for psn in lost)
        commands = [*_writes(6), *(f"add qp=0 value={value}" for value in range(1, 7)), "read qp=0 length=256"]
        text = rules + _setup(first=3, go_back_n=go_back_n) + _events(commands) + _events(commands, end="B")
        yield "counts_pass_their_end" + "_go_back_n" * go_back_n, Case(text)


def _tails() -> Iterator[tuple[str, Case]]:
    """Acknowledgements every so many frames, messages that are no multiple of it, then silence; some are lost."""
    for every in (1, 4, 16):
        for lost in (0, 1):
            rules = "A>B drop ack nth=1..3\nB>A drop ack nth=1..3\n" * lost
            text = rules + _setup(ack_every=every)
            for index, frames in enumerate((1, 5, 17)):
                text += _events(_writes(frames), begin=BEGIN + 15_000 * index)
            yield f"acknowledged_every_{every}" + "_some_lost" * lost, Case(text)


def _rates() -> Iterator[tuple[str, Case]]:
    """Loss at random both ways, acknowledgements and credits included."""
    for rate in (0.001, 0.01, 0.1):
        for go_back_n in (0, 1):
            commands = []
            for index in range(120):
                slot = index % SLOTS
                commands += [
                    f"add qp={index % 2} value={index + 1}",
                    f"write qp={index % 2} slot={slot} length=100 fill={index}",
                    f"read qp={index % 2} slot={slot} length=200",
                ]
            begin = 30_000  # openings suffer too
            text = _setup(retries=15, go_back_n=go_back_n, **QUICK)
            text += _events(commands, begin) + _events(commands, begin, end="B")
            name = f"loss_of_{rate:g}".replace(".", "_") + "_go_back_n" * go_back_n
            yield name, Case(text, rates=Rates(drop=rate))


def _stops() -> Iterator[tuple[str, Case]]:
    """A receiver stops and goes on; a user takes no completions for long."""
    commands = [*_writes(100), *(f"add qp=1 value={value}" for value in range(1, 60))]
    stops = f"at {BEGIN + 500} B stall\nat {BEGIN + 10_500} B resume\n"
    for lossy in (0, 1):
        rates = Rates(drop=0.02) if lossy else None
        yield "a_receiver_stops" + "_lossy" * lossy, Case(_events(commands) + stops, rates=rates)
    holds = f"at {BEGIN + 100} A hold\nat {BEGIN + 100_000} A take\n"
    answers = _events([*_writes(20), "add qp=1 value=4"], end="B")
    yield "a_user_takes_no_completions", Case(_events(commands) + answers + holds)


def _openings() -> Iterator[tuple[str, Case]]:
    """A frame of an opening is lost; a connection is closed with traffic in flight, and opened again."""
    for direction, most in (("A>B", 4), ("B>A", 2)):  # the first end proposes, and has the last word
        for nth in range(1, most + 1):
            commands = _events(["add qp=0 value=3", "add qp=1 value=4"], begin=40_000)
            text = f"{direction} drop open nth={nth}\n" + _setup(pairs=2) + commands
            yield f"opening_loses_{nth}_from_{direction[0]}", Case(text)
    for end in ("A", "B"):
        text = _events([*_writes(20), "add qp=0 value=3"], apart=20)
        text += f"at {BEGIN + 300} {end} close qp=0\n"
        text += _events([*_writes(5), "add qp=0 value=5", "read qp=0 length=256"], begin=40_000)
        yield f"closed_by_{end}_with_traffic_in_flight", Case(text, is_clean=False)
    text = _events([*_writes(20), "add qp=0 value=3"], apart=20)
    text += _events([*_writes(20), "add qp=1 value=3"], end="B", apart=20)
    for end in ("A", "B"):
        reset = f"at {BEGIN + 400} {end} reset\n"
        later = _events([*_writes(5), "add qp=0 value=5", "read qp=0 length=256"], begin=100_000)
        yield f"{end}_is_reset_with_traffic_in_flight", Case(_setup(**QUICK) + text + reset + later, is_clean=False)


_GROUPS = (_answers, _messages, _lengths, _copies, _boundaries, _wraps, _tails, _rates, _stops, _openings)

CASES: dict[str, Case] = dict(case for group in _GROUPS for case in group())
