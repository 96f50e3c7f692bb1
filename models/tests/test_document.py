from pathlib import Path

import example_endpoints
import pytest

from vectors import FOLDER
from xoe.document import DOCUMENTS, redraw, settings_table, wire_format
from xoe.transport import TransportSettings

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_tables_are_those_of_the_declarations(name):
    text = (DOCS / name).read_text()
    assert redraw(text, DOCUMENTS[name]()) == text, f"run: python -m xoe.document docs/{name}"


def test_every_setting_is_explained():
    assert all(len(line) > 40 for line in settings_table(TransportSettings).splitlines()[2:])


def test_the_example_is_the_vector():
    assert (FOLDER / "atomics.txt").read_text() in (DOCS / "wire-format.md").read_text()


def test_a_document_without_a_place_for_a_table_is_refused():
    with pytest.raises(ValueError, match="one place for the table 'frame header'"):
        redraw("", wire_format())


def test_the_example_of_two_endpoints_is_shown_as_it_is_and_works():
    assert (DOCS / "example_endpoints.py").read_text() in (DOCS / "models.md").read_text()
    assert example_endpoints.main() == list(range(100))
