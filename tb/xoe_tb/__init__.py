"""What the benches are made of: sources, sinks and pauses for every stream, at the level of beats up to operations."""

from .bench import drive_struct, params, read_struct, reset, start
from .frame import FrameMonitor, FrameSink, FrameSource
from .layout import pack, unpack
from .operation import OperationMonitor, OperationSink, OperationSource
from .pause import PAUSES, always_other, bursts, never, random_pause
from .stream import Beat, ProtocolError, StreamMonitor, StreamSink, StreamSource

__all__ = [
    "PAUSES",
    "Beat",
    "FrameMonitor",
    "FrameSink",
    "FrameSource",
    "OperationMonitor",
    "OperationSink",
    "OperationSource",
    "ProtocolError",
    "StreamMonitor",
    "StreamSink",
    "StreamSource",
    "always_other",
    "bursts",
    "drive_struct",
    "never",
    "pack",
    "params",
    "random_pause",
    "read_struct",
    "reset",
    "start",
    "unpack",
]
