from pathlib import Path

import pytest

from vectors import FOLDER
from xoe.document import redraw, tables

DOCUMENT = Path(__file__).parents[2] / "docs" / "wire-format.md"


def test_the_tables_are_those_of_the_declarations():
    text = DOCUMENT.read_text()
    assert redraw(text, tables()) == text, "run: python -m xoe.document docs/wire-format.md"


def test_the_example_is_the_vector():
    assert (FOLDER / "atomics.txt").read_text() in DOCUMENT.read_text()


def test_a_document_without_a_place_for_a_table_is_refused():
    with pytest.raises(ValueError, match="one place for the table 'frame header'"):
        redraw("", tables())
