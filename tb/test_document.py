from pathlib import Path

from xoe.document import redraw
from xoe_hdl.document import tables

DOCUMENT = Path(__file__).parents[1] / "docs" / "ports.md"


def test_the_tables_of_ports_are_those_of_the_layouts():
    text = DOCUMENT.read_text()
    assert redraw(text, tables()) == text, "run: python -m xoe_hdl.document docs/ports.md"
