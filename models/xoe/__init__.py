"""Golden models of xoe, GPU memory over Ethernet: plain Python, no dependency.

``Frame.decode(data)`` and ``Frame.encode()`` are the codec; each block of the hardware has a model of the same name.
"""

from .frame import Frame, FrameError, Reason, VlanTag
from .header import FieldError
from .operation import Operation
from .wire import FrameHeader, Opcode, OperationHeader, Status, TrafficClass

__all__ = [
    "FieldError",
    "Frame",
    "FrameError",
    "FrameHeader",
    "Opcode",
    "Operation",
    "OperationHeader",
    "Reason",
    "Status",
    "TrafficClass",
    "VlanTag",
]
