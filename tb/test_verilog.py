import enum
import os
import subprocess
import sys

import pytest
from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from xoe.config import NicConfig
from xoe_hdl.layouts import CFG, Axi4Signature, axis, counters, operation_beat
from xoe_hdl.verilog import ExportError, module_ports, to_verilog
from xoe_sim.tools import find_verilator


class Ports(wiring.Component):
    """Nothing but ports."""

    def elaborate(self, platform):
        return Module()


def names(members):
    return [port.name for port in module_ports(Ports(members))]


def test_a_stream_of_frames_is_an_axi4_stream():
    stem = "s_axis_t"
    expected = [stem + field for field in ("valid", "ready", "data", "keep", "last", "user")]
    assert names({"s_axis": In(stream.Signature(axis(64)))}) == expected


def test_a_payload_without_data_is_tdata_as_a_whole():
    payload = data.StructLayout({"index": 6, "valid": 1})
    assert names({"write": In(stream.Signature(payload))}) == ["write_tvalid", "write_tready", "write_tdata"]


def test_data_may_be_a_structure():
    ports = module_ports(Ports({"o": Out(stream.Signature(operation_beat(64)))}))
    assert [(port.name, len(port.value)) for port in ports[2:]] == [("o_tdata", 64 + 112 + 99), ("o_tlast", 1)]


def test_a_memory_port_is_named_as_the_standard_does():
    ports = {port.name: port.flow for port in module_ports(Ports({"m_axi": Out(Axi4Signature(64))}))}
    assert {"m_axi_awaddr": Out, "m_axi_awready": In, "m_axi_wstrb": Out, "m_axi_bresp": In}.items() <= ports.items()
    assert {"m_axi_arlen": Out, "m_axi_rdata": In, "m_axi_rready": Out}.items() <= ports.items()
    assert len(ports) == 5 * 2 + 2 * 5 + 3 + 2 + 4


def test_structures_have_a_port_for_each_field():
    found = names({"cfg": In(CFG), "counters": Out(data.StructLayout({"parser": counters("runt", "crc", width=4)}))})
    assert found[:2] == ["cfg_mac", "cfg_node"]
    assert "cfg_pcp" in found
    assert found[-2:] == ["counters_parser_runt", "counters_parser_crc"]


def test_arrays_of_ports_are_numbered():
    assert names({"x": In(3).array(2)}) == ["x_0", "x_1"]


def test_a_stream_that_is_always_ready_has_no_ready():
    assert names({"i": In(stream.Signature(8, always_ready=True))}) == ["i_tvalid", "i_tdata"]


class NoZero(enum.IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"x": In(0)}, "x is zero bits wide, and would come out as two bits"),
        ({"x": In(data.StructLayout({"a": 1, "b": 0}))}, "x_b is zero bits wide, and would come out as two bits"),
        ({"x": Out(stream.Signature(data.StructLayout({"data": 8, "keep": 0})))}, "x_tkeep is zero bits wide"),
        ({"x": Out(stream.Signature(data.StructLayout({"data": 8, "odd": 1})))}, "x.odd: a stream with data has no"),
        (
            {"x": Out(stream.Signature(data.StructLayout({"e": NoZero})))},
            "x_tdata.e is a NoZero, which",
        ),
        ({"a_b": In(1), "a": In(data.StructLayout({"b": 1}))}, "two ports are called a_b"),
    ],
)
def test_ports_without_a_faithful_form_are_refused(members, message):
    with pytest.raises(ExportError, match=message):
        to_verilog(Ports(members), "ports")


class Table(wiring.Component):
    """A memory with these rows."""

    def __init__(self, rows):
        self.rows = rows
        super().__init__({"at": In(3), "row": Out(8)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.rows = rows = Memory(shape=8, depth=5, init=self.rows)
        port = rows.read_port(domain="comb")
        m.d.comb += [port.addr.eq(self.at), self.row.eq(port.data)]
        return m


def test_zeros_are_written_as_a_loop_and_other_rows_as_they_are():
    assert "row < 5;" in to_verilog(Table([]), "table")
    text = to_verilog(Table([0, 7, 0, 0, 0]), "table")
    assert "for (" not in text
    assert "[1] = 8'h07;" in text


def export(folder, hash_seed, *arguments):
    """Run the exporter as a user does."""
    command = [sys.executable, "-m", "xoe_hdl", "--output", str(folder), *arguments]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module", params=[64, 512])
def nic_file(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("verilog")
    finished = export(folder, "1", "--data-width", str(request.param))
    assert finished.returncode == 0, finished.stderr
    return folder / f"xoe_nic_{request.param}.v"


def test_verilator_has_nothing_to_say_about_the_nic(nic_file):
    verilator = find_verilator()
    finished = subprocess.run(
        [verilator.program, "--lint-only", "-Wall", nic_file],
        env=os.environ | verilator.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.parametrize("sim", ["icarus"])
def test_icarus_compiles_the_nic(nic_file, sim):
    command = ["iverilog", "-g2005", "-Wall", "-o", os.devnull, str(nic_file)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def test_the_verilog_is_the_same_on_every_run(nic_file, tmp_path):
    width = nic_file.stem.rsplit("_", 1)[1]
    assert export(tmp_path, "2", "--data-width", width).returncode == 0
    assert (tmp_path / nic_file.name).read_bytes() == nic_file.read_bytes()


def test_the_verilog_names_no_file_of_this_machine(nic_file):
    assert os.sep + "hdl" + os.sep not in nic_file.read_text()


def test_a_configuration_out_of_bounds_is_one_clear_line(tmp_path):
    finished = export(tmp_path, "1", "--mtu", "9001")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == "xoe_hdl: mtu must be an integer from 256 to 9000, not 9001\n"


def test_help_names_every_parameter(tmp_path):
    text = export(tmp_path, "1", "--help").stdout
    for name in NicConfig.__dataclass_fields__:
        assert "--" + name.replace("_", "-") in text


@pytest.mark.parametrize(("states", "bits"), [(17, 1), (16, 0)])
def test_a_machine_of_many_states_has_a_bit_for_each(states, bits):
    assert to_verilog(Machine(states), "machine").count('(* fsm_encoding = "one-hot" *)') == bits


class Machine(wiring.Component):
    """Goes through its states in a circle."""

    def __init__(self, states):
        self.states = states
        super().__init__({"at_start": Out(1)})

    def elaborate(self, platform):
        m = Module()
        with m.FSM(name="step"):
            for state in range(self.states):
                with m.State(str(state)):
                    m.d.comb += self.at_start.eq(state == 0)
                    m.next = str((state + 1) % self.states)
        return m
