"""Check the xoe frames that somebody else's design sends, with nothing but cocotb and the golden models."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from xoe import Frame, FrameError, Opcode


async def next_frame(dut) -> bytes:
    """Collect one frame from the AXI4-Stream ports ``m_axis_*``."""
    frame = b""
    while True:
        await RisingEdge(dut.clk)
        if dut.m_axis_tvalid.value and dut.m_axis_tready.value:
            beat = dut.m_axis_tdata.value.to_unsigned().to_bytes(len(dut.m_axis_tkeep), "little")
            frame += beat[: dut.m_axis_tkeep.value.to_unsigned().bit_count()]
            if dut.m_axis_tlast.value:
                return frame


@cocotb.test(timeout_time=100, timeout_unit="us")
async def every_frame_is_sound(dut):
    """The first ten frames decode, and carry only operations that exist."""
    dut.rst.value, dut.m_axis_tready.value = 0, 1
    Clock(dut.clk, 4, unit="ns").start()
    for _ in range(10):
        try:
            frame = Frame.decode(await next_frame(dut))
        except FrameError as error:
            raise AssertionError(f"not a frame of ours: {error}") from error
        for operation in frame.operations:
            dut._log.info("%s", operation)
            assert operation.opcode & 0x3F in list(Opcode)
