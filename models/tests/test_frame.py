import dataclasses
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vectors import VECTORS
from xoe import FieldError, Frame, FrameError, FrameHeader, Opcode, Operation, Reason, Status, TrafficClass, VlanTag
from xoe.operation import padded
from xoe.wire import FRAME_MIN, GRID, RESPONSE_BIT, Kind

A, B = 0x02000000000A, 0x02000000000B

WRITE = Frame(
    B,
    A,
    FrameHeader(dst_node=0x1234, src_node=0xABCD, dst_qp=5, src_qp=7, epoch=0x3C, seq=0x010203, length=32),
    (Operation(Opcode.WRITE, 0xBEEF, 0x123456789, 13, b"hello, fabric"),),
    (VlanTag(pcp=3, vid=100),),
)
READ = Frame(
    B,
    A,
    FrameHeader(dst_node=2, src_node=1, dst_qp=255, src_qp=1, seq=0xFFFFFF, length=16),
    (Operation(Opcode.READ, 42, 0x8000000000000001, 256),),
)
ATOMICS = Frame(
    B,
    A,
    FrameHeader(
        traffic_class=TrafficClass.ATOMIC, ect=1, dst_node=2, src_node=1, dst_qp=3, src_qp=3, epoch=1, seq=16, length=56
    ),
    (
        Operation(Opcode.ADD, 1, 0x1008, 8, (0x0102030405060708).to_bytes(8, "little")),
        Operation(
            Opcode.COMPARE_SWAP, 2, 0x2004, 4, (0x11223344).to_bytes(8, "little") + (0x55667788).to_bytes(8, "little")
        ),
    ),
    (VlanTag(pcp=7, vid=1),),
)
RESPONSES = Frame(
    A,
    B,
    FrameHeader(
        traffic_class=TrafficClass.RESPONSE,
        ect=1,
        ce=1,
        dst_node=1,
        src_node=2,
        dst_qp=3,
        src_qp=3,
        epoch=255,
        length=80,
    ),
    (
        Operation(Opcode.ADD | RESPONSE_BIT, 1, 0, 8, (0x0123456789ABCDEF).to_bytes(8, "little")),
        Operation(Opcode.READ | RESPONSE_BIT, 2, 0, 5, bytes([1, 2, 3, 4, 5])),
        Operation(Opcode.WRITE | RESPONSE_BIT, 3, 0, 16, status=Status.PERMISSION),
        Operation(Opcode.FLOAT_ADD | RESPONSE_BIT, 4, 0, 4, status=Status.UNSUPPORTED),
    ),
)
BY_NAME = {"write_tagged": WRITE, "read_padded": READ, "atomics": ATOMICS, "responses": RESPONSES}


def reason_of(data: bytes) -> Reason:
    with pytest.raises(FrameError) as raised:
        Frame.decode(data)
    return raised.value.reason


def with_crc(data: bytes, start: int = 14) -> bytes:
    """An untagged frame without padding, its CRC made right again, by other code than the codec's."""
    header, operations = bytearray(data[start : start + 22]), data[start + 22 : -4]
    header[1] &= 0xF7
    return data[:-4] + zlib.crc32(operations + bytes(header)).to_bytes(4, "big")


def test_every_vector_is_used():
    assert set(BY_NAME) == set(VECTORS)


@pytest.mark.parametrize("name", BY_NAME)
def test_encodes_to_the_hand_written_bytes(name):
    assert BY_NAME[name].encode().hex(" ") == VECTORS[name].hex(" ")


@pytest.mark.parametrize("name", BY_NAME)
def test_decodes_the_hand_written_bytes(name):
    assert Frame.decode(VECTORS[name]) == BY_NAME[name]


headers = st.builds(
    FrameHeader,
    kind=st.integers(0, 15),
    traffic_class=st.integers(0, 7),
    ect=st.integers(0, 1),
    ce=st.integers(0, 1),
    ack_valid=st.integers(0, 1),
    credit_valid=st.integers(0, 1),
    dst_node=st.integers(0, 0xFFFF),
    src_node=st.integers(0, 0xFFFF),
    dst_qp=st.integers(0, 0xFFF),
    src_qp=st.integers(0, 0xFFF),
    epoch=st.integers(0, 255),
    seq=st.integers(0, 0xFFFFFF),
    ack=st.integers(0, 0xFFFFFF),
    credit_class=st.integers(0, 7),
    credit=st.integers(0, 0xFFFFF),
)
writes = st.binary(min_size=1, max_size=256).flatmap(
    lambda data: st.builds(
        Operation,
        st.just(int(Opcode.WRITE)),
        st.integers(0, 0xFFFF),
        st.integers(0, 2**64 - 1),
        st.just(len(data)),
        st.just(data),
    )
)
operations = st.lists(
    writes
    | st.builds(Operation, st.just(int(Opcode.READ)), st.integers(0, 0xFFFF), st.integers(0, 2**64 - 1), st.just(7)),
    max_size=12,
).map(tuple)
tags = st.lists(st.builds(VlanTag, st.integers(0, 7), st.integers(0, 1), st.integers(0, 4095)), max_size=2).map(tuple)
macs = st.integers(0, 2**48 - 1)
data_frames = st.builds(Frame, macs, macs, headers.map(lambda header: with_kind(header, Kind.DATA)), operations, tags)
bodies = st.binary(max_size=40).map(padded)
other_frames = st.builds(
    Frame, macs, macs, headers.filter(lambda header: header.kind != Kind.DATA), tags=tags, body=bodies
)
frames = data_frames | other_frames


def with_kind(header, kind):
    return dataclasses.replace(header, kind=kind)


def payload_size(frame):
    return sum(operation.size for operation in frame.operations) + len(frame.body)


def test_a_frame_of_the_wrong_kind_is_refused():
    with pytest.raises(FieldError, match=r"Frame\.body must be empty in a frame of its kind"):
        dataclasses.replace(READ, body=bytes(8)).encode()
    with pytest.raises(FieldError, match=r"Frame\.operations must be empty in a frame of its kind"):
        dataclasses.replace(READ, header=with_kind(READ.header, Kind.ACK)).encode()


@given(frames)
def test_what_is_encoded_is_decoded(frame):
    data = frame.encode()
    assert len(data) >= FRAME_MIN
    length = payload_size(frame)
    assert Frame.decode(data) == dataclasses.replace(frame, header=dataclasses.replace(frame.header, length=length))


def decoded(data: bytes) -> Frame | Reason:
    try:
        return Frame.decode(data)
    except FrameError as error:
        return error.reason


@given(st.binary(max_size=300))
def test_any_bytes_give_a_frame_or_the_one_error(data):
    for candidate in (data, bytes(12) + b"\x88\xb5" + data, bytes(12) + b"\x88\xb5\x10" + data):
        assert isinstance(decoded(candidate), Frame | Reason)


@given(frames.filter(payload_size), st.data())
def test_a_flipped_bit_is_never_taken_for_the_same_frame(frame, data):
    sent = bytearray(frame.encode())
    start = 14 + 4 * len(frame.tags)
    end = start + 22 + payload_size(frame) + 4
    bit = data.draw(st.integers(start * 8, end * 8 - 1))
    mark = start * 8 + 12
    if bit == mark:
        return
    sent[bit // 8] ^= 0x80 >> bit % 8
    with pytest.raises(FrameError):
        Frame.decode(bytes(sent))


@pytest.mark.parametrize("name", BY_NAME)
def test_the_congestion_mark_is_outside_the_crc(name):
    data = bytearray(VECTORS[name])
    start = 14 + 4 * len(BY_NAME[name].tags)
    data[start + 1] ^= 0x08
    assert Frame.decode(bytes(data)).header.ce == 1 - BY_NAME[name].header.ce


def test_reserved_bits_are_ignored_but_covered_by_the_crc():
    data = bytearray(RESPONSES.encode())
    data[14 + 16] ^= 0x10
    data[14 + 19] ^= 0xC0
    assert reason_of(bytes(data)) is Reason.CRC
    assert Frame.decode(with_crc(bytes(data))) == RESPONSES


@pytest.mark.parametrize("size", range(14))
def test_less_than_an_ethernet_header_is_a_runt(size):
    assert reason_of(WRITE.encode()[:size]) is Reason.RUNT


def test_a_frame_that_ends_inside_its_tags_is_a_runt():
    tagged = dataclasses.replace(WRITE, tags=(VlanTag(), VlanTag(tpid=0x88A8))).encode()
    assert {reason_of(tagged[:size]) for size in range(22)} == {Reason.RUNT}
    assert reason_of(tagged[:22]) is Reason.TRUNCATED


def test_other_ethertypes_are_not_ours():
    for ethertype in (0x0042, 0x0800, 0x8808, 0x88CC):
        assert reason_of(dataclasses.replace(READ, ethertype=ethertype).encode()) is Reason.ETHERTYPE
    moved = dataclasses.replace(READ, ethertype=0x9999)
    assert Frame.decode(moved.encode(), ethertype=0x9999) == moved


def test_a_third_tag_is_somebody_elses():
    data = WRITE.encode()
    assert reason_of(data[:12] + VlanTag().encode() * 2 + data[12:]) is Reason.ETHERTYPE


def test_truncation_at_every_byte():
    data = RESPONSES.encode()
    assert {reason_of(data[:size]) for size in range(14, len(data))} == {Reason.TRUNCATED}


def test_over_long_by_any_amount_but_padding():
    data = RESPONSES.encode()
    assert reason_of(data + b"\0") is Reason.OVERLONG
    short = READ.encode()
    assert len(short) == 60
    assert reason_of(short + b"\0") is Reason.OVERLONG
    assert Frame.decode(short[:57]) == READ


def test_a_switch_may_tag_or_untag_a_padded_frame():
    data = READ.encode()
    tag = VlanTag(pcp=1)
    assert Frame.decode(data[:12] + tag.encode() + data[12:]) == dataclasses.replace(READ, tags=(tag,))


@pytest.mark.parametrize("version", [0, 2, 15])
def test_other_versions(version):
    frame = dataclasses.replace(READ, header=dataclasses.replace(READ.header, version=version))
    assert reason_of(frame.encode()) is Reason.VERSION


def test_a_length_off_the_grid():
    data = bytearray(RESPONSES.encode())
    data[14 + 20] -= 4
    assert reason_of(with_crc(bytes(data))) is Reason.MALFORMED


def test_an_operation_past_the_end_of_the_payload():
    data = bytearray(RESPONSES.encode())
    last = 14 + 22 + 80 - 16
    data[last + 1] = 1
    assert reason_of(with_crc(bytes(data))) is Reason.MALFORMED


def test_a_payload_that_ends_inside_a_header():
    payload = RESPONSES.encode()[:-4] + bytes(8)
    data = bytearray(payload + bytes(4))
    data[14 + 20] += GRID
    assert reason_of(with_crc(bytes(data))) is Reason.MALFORMED


def test_more_than_the_largest_mtu():
    big = [Operation(Opcode.WRITE, n, 0, 256, random.Random(n).randbytes(256)) for n in range(33)]
    fits = Frame(A, B, FrameHeader(length=32 * 272), tuple(big[:32]))
    assert Frame.decode(fits.encode()) == fits
    with pytest.raises(FieldError, match=r"Frame\.operations must fit an MTU of 9000 bytes, not 8976 bytes"):
        dataclasses.replace(fits, operations=tuple(big)).encode()


def test_encoding_refuses_what_does_not_fit():
    cases = [
        (
            dataclasses.replace(READ, header=FrameHeader(dst_qp=0x1000)),
            r"FrameHeader\.dst_qp must be 0\.\.0xfff, not 4096",
        ),
        (dataclasses.replace(READ, header=FrameHeader(seq=-1)), r"FrameHeader\.seq must be 0\.\.0xffffff, not -1"),
        (dataclasses.replace(READ, destination=2**48), r"Frame\.destination must have 48 bits"),
        (dataclasses.replace(READ, tags=(VlanTag(vid=4096),)), r"VlanTag\.vid must be 0\.\.0xfff, not 4096"),
        (
            dataclasses.replace(READ, operations=(Operation(Opcode.READ, tag=0x10000),)),
            r"OperationHeader\.tag must be 0\.\.0xffff, not 65536",
        ),
    ]
    for frame, message in cases:
        with pytest.raises(FieldError, match=message):
            frame.encode()


def test_a_64_byte_operation_takes_80_bytes():
    assert len(Operation(Opcode.WRITE, 0, 0, 64, bytes(64)).encode()) == 80
