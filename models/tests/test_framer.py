import dataclasses

import pytest

from xoe import Frame, Opcode, Operation, TrafficClass, VlanTag
from xoe.framer import Framer, FramerError, Route, Settings, build_frame
from xoe.header import FieldError
from xoe.wire import Kind

SETTINGS = Settings(mac=0x0A0B0C0D0E0F, node=0x1234, mtu=256, ect=True)
ROUTE = Route(mac=0x020304050607, node=0x4321, remote_qp=0xABC, local_qp=5, traffic_class=TrafficClass.REQUEST, epoch=7)
RESPONSES = dataclasses.replace(ROUTE, traffic_class=TrafficClass.RESPONSE)


def write(size: int, tag: int = 0) -> Operation:
    return Operation(Opcode.WRITE, tag=tag, address=0x1000, length=size, data=bytes(range(size)))


def decoded(frames: list[bytes]) -> list[Frame]:
    return [Frame.decode(frame) for frame in frames]


def test_header_says_who_sends_what_to_whom():
    (frame,) = decoded(Framer(SETTINGS).frames([(write(5), ROUTE)]))
    header = frame.header
    assert (frame.destination, frame.source) == (ROUTE.mac, SETTINGS.mac)
    assert (header.dst_node, header.src_node, header.dst_qp, header.src_qp) == (0x4321, 0x1234, 0xABC, 5)
    assert (header.ect, header.epoch, header.length, header.traffic_class) == (1, 7, 24, TrafficClass.REQUEST)
    assert frame.operations == (write(5),)


def test_operations_share_a_frame_up_to_the_mtu():
    # 256 less 26 of header and CRC leaves 230 bytes, 224 on the grid: exactly 24 + 80 + 120.
    exact = [(write(8), ROUTE), (write(64), ROUTE), (write(104), ROUTE)]
    (frame,) = decoded(Framer(SETTINGS).frames(exact))
    assert frame.header.length == 224
    longer = [*exact[:2], (write(105), ROUTE)]
    assert [len(frame.operations) for frame in decoded(Framer(SETTINGS).frames(longer))] == [2, 1]


def test_a_frame_has_one_route():
    other = dataclasses.replace(ROUTE, local_qp=6)
    frames = decoded(
        Framer(SETTINGS).frames([(write(1), ROUTE), (write(2), ROUTE), (write(3), other), (write(4), ROUTE)])
    )
    assert [len(frame.operations) for frame in frames] == [2, 1, 1]
    assert [(frame.header.src_qp, frame.header.seq) for frame in frames] == [(5, 0), (6, 0), (5, 1)]


def test_nothing_gives_no_frame():
    assert Framer(SETTINGS).frames([]) == []


def test_an_operation_above_the_mtu_goes_alone():
    frames = decoded(Framer(SETTINGS).frames([(write(1), ROUTE), (write(256), ROUTE), (write(1), ROUTE)]))
    assert [len(frame.operations) for frame in frames] == [1, 1, 1]


def test_responses_have_their_own_sequence():
    framer = Framer(SETTINGS)
    sent = decoded([framer.frame([write(1)], route) for route in (ROUTE, RESPONSES, ROUTE, RESPONSES)])
    assert [frame.header.seq for frame in sent] == [0, 0, 1, 1]


def test_sequence_wraps():
    framer = Framer(SETTINGS, first_sequence=(1 << 24) - 1)
    assert [frame.header.seq for frame in decoded([framer.frame([], ROUTE), framer.frame([], ROUTE)])] == [0xFFFFFF, 0]


def test_tag_has_the_priority_of_the_class():
    settings = dataclasses.replace(SETTINGS, tagged=True, vid=0x123, pcp=(1, 6, 2, 3, 0, 0, 0, 0))
    (frame,) = decoded(Framer(settings).frames([(write(1), RESPONSES)]))
    assert frame.tags == (VlanTag(pcp=6, vid=0x123),)


def test_check_takes_any_gathering():
    given = [(write(size), ROUTE) for size in (1, 2, 3)]
    framer, waiting = Framer(SETTINGS), [list(given), [(write(9), RESPONSES)]]
    checker = Framer(SETTINGS)
    groups = [([given[0][0]], ROUTE), ([write(9)], RESPONSES), ([given[1][0], given[2][0]], ROUTE)]
    assert [checker.check(framer.frame(*group), waiting) for group in groups] == [0, 1, 0]
    assert waiting == [[], []]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda framer: framer.frame([write(2)], ROUTE), "no input has"),
        (lambda framer: framer.frame([], ROUTE), "no input has"),
        (lambda framer: framer.frame([write(1)], RESPONSES), "frame is"),
        (lambda framer: framer.frame([write(1), write(2)], ROUTE), "several routes"),
        (lambda framer: framer.frame([write(1), write(2), write(3)], ROUTE), "several routes"),
        (lambda framer: Framer(SETTINGS, 1).frame([write(1)], ROUTE), "frame is"),
        (lambda framer: framer.frame([write(1)], ROUTE)[:-20], "not a frame"),
        (lambda framer: b"", "not a frame"),
    ],
)
def test_check_refuses(change, message):
    waiting = [[(write(1), ROUTE), (write(2), RESPONSES), (write(3), ROUTE)]]
    checker = Framer(SETTINGS)
    with pytest.raises(FramerError, match=message):
        checker.check(change(Framer(SETTINGS)), waiting)
    assert len(waiting[0]) == 3
    assert checker.check(Framer(SETTINGS).frame([write(1)], ROUTE), waiting) == 0


def test_check_refuses_a_frame_above_the_mtu():
    group = [write(200), write(8)]
    with pytest.raises(FramerError, match="exceed the MTU"):
        Framer(SETTINGS).check(Framer(SETTINGS).frame(group, ROUTE), [[(operation, ROUTE) for operation in group]])


def test_fields_of_the_header_can_be_given():
    fields = {"seq": 5, "ack": 6, "ack_valid": 1, "credit_class": 2, "credit": 7, "credit_valid": 1, "src_epoch": 9}
    frame = Frame.decode(build_frame(SETTINGS, ROUTE, [write(5)], epoch=8, **fields))
    assert {name: getattr(frame.header, name) for name in fields} == fields
    assert (frame.header.epoch, frame.header.kind, frame.operations) == (8, Kind.DATA, (write(5),))
    acknowledgement = Frame.decode(build_frame(SETTINGS, ROUTE, (), bytes(16), kind=Kind.ACK, nack=1))
    assert (acknowledgement.body, acknowledgement.header.nack, acknowledgement.header.epoch) == (bytes(16), 1, 0)
    with pytest.raises(FieldError, match=r"seq must be 0\.\.0xffffff"):
        build_frame(SETTINGS, ROUTE, [write(5)], seq=1 << 24)
