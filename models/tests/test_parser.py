"""The parser's model, by cases written by hand."""

import dataclasses

import pytest

from vectors import VECTORS
from xoe.config import NicConfig
from xoe.crc import frame_crc_bytes
from xoe.frame import Frame, VlanTag, clear_mark
from xoe.operation import Operation
from xoe.parser import CONTROL_FRAME_MAX, DROPPED, HOST_FRAME_MAX, Outcome, Parser, Route
from xoe.wire import FrameHeader, Kind, Opcode, OperationHeader, Status, TrafficClass

MAC, PEER, NODE = 0x02_00_00_00_00_01, 0x02_00_00_00_00_02, 5
HEADER = FrameHeader(dst_node=NODE, src_node=6, dst_qp=3, src_qp=9, traffic_class=TrafficClass.ATOMIC)
WRITE = Operation(Opcode.WRITE, 1, 0x1000, 5, b"hello")
FRAME = Frame(MAC, PEER, HEADER, (WRITE,))
ADDRESSES = FRAME.encode()[:12]


@pytest.fixture
def parser():
    return Parser(NicConfig(mtu=512, queue_pairs=4), MAC, NODE)


def with_header(**fields):
    return dataclasses.replace(FRAME, header=dataclasses.replace(HEADER, **fields)).encode()


def around(payload, **fields):
    """A frame around any bytes whatever, its CRC right."""
    header = dataclasses.replace(HEADER, length=len(payload), **fields).pack()
    return ADDRESSES + b"\x88\xb5" + header + payload + frame_crc_bytes(clear_mark(header), payload)


@pytest.mark.parametrize("tags", [(), (VlanTag(5),), (VlanTag(5, tpid=0x88A8), VlanTag(1))])
def test_a_good_frame(parser, tags):
    parsed = parser.parse(dataclasses.replace(FRAME, tags=tags).encode())
    assert parsed.outcome is Outcome.ACCEPTED
    assert parsed.operations == (WRITE,)
    assert parsed.route == Route(mac=PEER, node=6, remote_qp=9, local_qp=3, traffic_class=2)


FLIPPED = bytearray(FRAME.encode())
FLIPPED[40] ^= 4
CASES = {
    "runt": (ADDRESSES + b"\x88", Outcome.RUNT),
    "nothing": (b"", Outcome.RUNT),
    "tag without a type": (ADDRESSES + b"\x81\x00\x00\x00\x88", Outcome.RUNT),
    "two tags without a type": (ADDRESSES + b"\x88\xa8\x00\x00\x81\x00\x00\x00", Outcome.RUNT),
    "no header": (FRAME.encode()[:35], Outcome.TRUNCATED),
    "version": (with_header(version=2), Outcome.VERSION),
    "off the grid": (around(bytes(17)), Outcome.MALFORMED),
    "truncated": (FRAME.encode()[:59], Outcome.TRUNCATED),
    "a byte more": (FRAME.encode() + b"x", Outcome.OVERLONG),
    "above the mtu": (around(bytes(488)), Outcome.OVERLONG),
    "above the mtu, crc wrong": (around(bytes(488))[:-1] + b"x", Outcome.OVERLONG),
    "crc": (bytes(FLIPPED), Outcome.CRC),
    "another address": (dataclasses.replace(FRAME, destination=MAC + 1).encode(), Outcome.DESTINATION),
    "another node": (with_header(dst_node=6), Outcome.DESTINATION),
    "no such queue pair": (with_header(dst_qp=4), Outcome.DESTINATION),
    "a kind to come": (around(WRITE.encode(), kind=Kind.ACK), Outcome.KIND),
    "destination before kind": (around(WRITE.encode(), kind=Kind.ACK, dst_node=6), Outcome.DESTINATION),
    "802.3": (ADDRESSES + b"\x00\x2e" + bytes(46), Outcome.HOST),
    "three tags": (ADDRESSES + b"\x81\x00\x00\x00" * 3 + b"\x88\xb5" + bytes(46), Outcome.HOST),
    "pause": (ADDRESSES + b"\x88\x08\x00\x01\xff\xff" + bytes(42), Outcome.CONTROL),
    "pause in a tag": (ADDRESSES + b"\x81\x00\x00\x00\x88\x08\x00\x01" + bytes(44), Outcome.HOST),
    "largest of others": (ADDRESSES + b"\x08\x00" + bytes(HOST_FRAME_MAX - 14), Outcome.HOST),
    "too large of others": (ADDRESSES + b"\x08\x00" + bytes(HOST_FRAME_MAX - 13), Outcome.OVERLONG),
    "too large for control": (ADDRESSES + b"\x88\x08" + bytes(CONTROL_FRAME_MAX - 13), Outcome.OVERLONG),
}


@pytest.mark.parametrize("name", CASES)
def test_where_a_frame_goes(parser, name):
    data, outcome = CASES[name]
    assert parser.parse(data).outcome is outcome
    assert {found for found, count in parser.counters.items() if count} == {outcome}


def test_the_cases_have_every_cause():
    assert {outcome for _, outcome in CASES.values()} >= set(DROPPED) - {Outcome.BAD}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_frame_is_nothing_else(parser, name):
    assert parser.parse(CASES[name][0], bad=True).outcome is Outcome.BAD


def test_the_largest_mtu_is_accepted(parser):
    assert parser.parse(around(bytes(480))).outcome is Outcome.ACCEPTED


def test_an_operation_past_the_end(parser):
    header = OperationHeader(opcode=Opcode.WRITE, words=3, tag=7, length=24, address=8).pack()
    parsed = parser.parse(around(WRITE.encode() + header + bytes(16)))
    assert parsed.operations == (WRITE, Operation(Opcode.WRITE, 7, 8, 24, b"", Status.MALFORMED))
    assert parser.operation_malformed == 1


def test_half_a_header(parser):
    parsed = parser.parse(around(WRITE.encode() + bytes(8)))
    assert parsed.operations == (WRITE,)
    assert parser.operation_malformed == 1


def test_the_hand_written_vectors(parser):
    for data in VECTORS.values():
        frame = Frame.decode(data)
        here = Parser(NicConfig(queue_pairs=4096), frame.destination, frame.header.dst_node)
        parsed = here.parse(data)
        assert parsed.outcome in (Outcome.ACCEPTED, Outcome.KIND)
        assert parsed.operations == (frame.operations if frame.header.kind == Kind.DATA else ())


@pytest.mark.parametrize("kind", [Kind.ACK, Kind.CONTROL])
def test_other_kinds_are_handed_on_when_asked_for(kind):
    asked = Parser(NicConfig(mtu=512, queue_pairs=4), MAC, NODE, kinds=frozenset({Kind.DATA, kind}))
    frame = dataclasses.replace(
        FRAME, header=dataclasses.replace(HEADER, kind=kind), operations=(), body=bytes(range(24))
    )
    parsed = asked.parse(frame.encode())
    assert (parsed.outcome, parsed.operations, parsed.body) == (Outcome.ACCEPTED, (), bytes(range(24)))
    assert parsed.header == dataclasses.replace(HEADER, kind=kind, length=24)
    other = dataclasses.replace(frame, header=dataclasses.replace(HEADER, kind=3 - kind))
    assert asked.parse(other.encode()).outcome is Outcome.KIND
    assert asked.parse(FRAME.encode()).header == dataclasses.replace(HEADER, length=24)
