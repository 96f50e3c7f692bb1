import pytest

from xoe.config import ConfigError, NicConfig


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"data_width": 96}, "data_width must be one of 64, 128, 256, 512, not 96"),
        ({"cam_entries": 0}, "cam_entries must be an integer from 1 to 256, not 0"),
        ({"cam_entries": 257}, "cam_entries must be an integer from 1 to 256, not 257"),
        ({"windows": 65}, "windows must be an integer from 1 to 64, not 65"),
        ({"tags": 65}, "tags must be one of 4, 8, 16, 32, 64, 128, 256, 512, 1024, not 65"),
        ({"mtu": 255}, "mtu must be an integer from 256 to 9000, not 255"),
        ({"mtu": 9001}, "mtu must be an integer from 256 to 9000, not 9001"),
        ({"mtu": 260}, "mtu must be a multiple of 8, not 260"),
        ({"queue_pairs": 3}, "queue_pairs must be one of "),
        ({"counter_width": True}, "counter_width must be an integer from 2 to 64, not True"),
        ({"mtu": 1500.0}, "mtu must be an integer from 256 to 9000, not 1500.0"),
    ],
)
def test_impossible_configurations_are_refused(parameters, message):
    with pytest.raises(ConfigError) as raised:
        NicConfig(**parameters)
    assert str(raised.value).startswith(message)


def test_bounds_are_allowed():
    NicConfig(64, 1, 1, 4, 1, 256, 2)
    NicConfig(512, 256, 64, 1024, 4096, 9000, 64)
