"""Captures and frames that nobody here made, driven into the parser."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import cocotb
from scapy.utils import RawPcapReader

from parser_environment import Environment
from parser_stimulus import good
from xoe.parser import Outcome
from xoe_tb import params

LIMIT = {"timeout_time": 5, "timeout_unit": "ms"}

CAPTURES = {
    "dot3_length_field.pcap": {Outcome.HOST: 1},
    "ethertype_88b5_raw.pcap": {Outcome.HOST: 1, Outcome.VERSION: 1},
    "jumbo_9100.pcap": {Outcome.HOST: 12},
    "lldp_dcbx_pfc.pcap": {Outcome.HOST: 5},
    "omnixtend_tlc_2hosts.pcapng": {Outcome.HOST: 20},
    "qinq_88a8.pcap": {Outcome.HOST: 2},
    "runt_8byte.pcap": {Outcome.RUNT: 1},
    "slow_protocols_lacp.pcap": {Outcome.HOST: 20},
    "vlan_pcp_dei_qinq.pcapng": {Outcome.HOST: 9},
}
"""What becomes of a capture's frames; those for the host come out there byte for byte."""


def read(name: str) -> list[bytes]:
    """The frames of a capture."""
    with RawPcapReader(str(Path(params()["inputs"]) / "pcap" / name)) as reader:
        return [data for data, _ in reader]


@cocotb.test(**LIMIT)
@cocotb.parametrize(name=list(CAPTURES), among_ours=[False, True])
async def captures(dut, name, among_ours):
    bench = Environment(dut)
    await bench.start()
    met = Counter()
    for data in read(name):
        met[bench.send(data)] += 1
        if among_ours:
            assert bench.send(*good(bench.rng, 100)) is Outcome.ACCEPTED
    assert met == CAPTURES[name]
    await bench.check()


@cocotb.test(**LIMIT)
async def every_capture_is_known(dut):
    assert {path.name for path in (Path(params()["inputs"]) / "pcap").iterdir()} == set(CAPTURES)


@cocotb.test(**LIMIT)
async def pause_and_pfc(dut):
    """PAUSE frames as a real NIC sent them, 18 bytes of one, and a PFC payload: to the control stream, unchanged."""
    bench = Environment(dut)
    await bench.start()
    addresses = bytes.fromhex("0180c2000001000000000001")
    pfc = bytes.fromhex("0101 00dd 0000 0001 0000 0014 0003 0028 0003 01f4 0000")
    frames = [
        addresses + bytes.fromhex("8808 0001ffff") + bytes(42),
        addresses + bytes.fromhex("8808 00010000") + bytes(42),
        addresses + bytes.fromhex("8808 0001 0003"),
        addresses + b"\x88\x08" + pfc + bytes(46 - len(pfc)),
    ]
    for data in frames * 2:
        assert bench.send(data) is Outcome.CONTROL
        bench.send(*good(bench.rng, 100))
    await bench.check()
