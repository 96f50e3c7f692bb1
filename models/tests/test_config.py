import pytest

from xoe.config import ConfigError, NicConfig


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"data_width": 96}, "data_width must be one of 64, 128, 256, 512, not 96"),
        ({"cam_entries": 0}, "cam_entries must be an integer from 1 to 256, not 0"),
        ({"cam_entries": 257}, "cam_entries must be an integer from 1 to 256, not 257"),
        ({"windows": 65}, "windows must be an integer from 1 to 64, not 65"),
        ({"tags": 65}, "tags must be one of 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, not 65"),
        ({"mtu": 255}, "mtu must be an integer from 256 to 9000, not 255"),
        ({"mtu": 9001}, "mtu must be an integer from 256 to 9000, not 9001"),
        ({"mtu": 260}, "mtu must be a multiple of 8, not 260"),
        ({"queue_pairs": 3}, "queue_pairs must be one of "),
        ({"counter_width": True}, "counter_width must be an integer from 2 to 64, not True"),
        ({"mtu": 1500.0}, "mtu must be an integer from 256 to 9000, not 1500.0"),
        ({"window": 0}, "window must be an integer from 1 to 128, not 0"),
        ({"window": 129}, "window must be an integer from 1 to 128, not 129"),
        ({"credit_size": 48}, "credit_size must be one of 32, 64, 128, 256, 512, 1024, 2048, not 48"),
        ({"credit_request": 4096}, "credit_request must be an integer from 0 to 4095, not 4096"),
        ({"credit_atomic": -1}, "credit_atomic must be an integer from 0 to 4095, not -1"),
        ({"atomic_slots": 0}, "atomic_slots must be an integer from 1 to 255, not 0"),
        ({"atomic_slots": 256}, "atomic_slots must be an integer from 1 to 255, not 256"),
        (
            {"credit_request": 7},
            "credit_request must be at least 8 to hold the largest frame (mtu 4096, credit_size 512, atomic_slots 16), "
            "not 7",
        ),
        ({"credit_response": 7}, "credit_response must be at least 8 to hold the largest frame"),
        ({"credit_atomic": 1}, "credit_atomic must be at least 2 to hold the largest frame"),
        ({"atomic_slots": 255, "credit_atomic": 7}, "credit_atomic must be at least 8 to hold the largest frame"),
        (
            {"resend_buffer": 4095},
            "resend_buffer must be at least 4096 bytes to hold the largest frame (mtu 4096), not",
        ),
        (
            {"receive_buffer": 401407},
            "receive_buffer must be at least 401408 bytes: 16 queue pairs x (16 + 16 + 16) credits x 512 bytes, and 2 "
            "frames of the largest MTU, not 401407",
        ),
        ({"queue_pairs": 32, "receive_buffer": 401408}, "receive_buffer must be at least 794624 bytes"),
    ],
)
def test_impossible_configurations_are_refused(parameters, message):
    with pytest.raises(ConfigError) as raised:
        NicConfig(**parameters)
    assert str(raised.value).startswith(message)


def test_bounds_are_allowed():
    NicConfig(64, 1, 1, 4, 1, 256, 2)
    NicConfig(512, 256, 64, 1024, 4096, 9000, 64)
    NicConfig(mtu=256, window=128, credit_size=2048, credit_request=1, credit_response=1, credit_atomic=1)
    NicConfig(window=1, credit_size=32, credit_atomic=4095, atomic_slots=1)
    NicConfig(atomic_slots=255, credit_atomic=8)


def test_what_is_left_out_is_what_the_rest_asks_for():
    config = NicConfig()
    assert (config.credits, config.resend_buffer, config.receive_buffer) == ((16, 16, 16), 8 * 4096, 401408)
    assert config == NicConfig(resend_buffer=8 * 4096, receive_buffer=401408, credit_request=16, credit_atomic=16)
    large = NicConfig(mtu=9000, credit_size=32, atomic_slots=4)
    assert (large.credits, large.payload_max) == ((564, 564, 8), 8968)
