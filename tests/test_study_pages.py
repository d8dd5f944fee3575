"""The pages of the studies in the documentation, which are made of what the studies say of themselves."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def study_pages():
    spec = importlib.util.spec_from_file_location("study_pages", DOCS / "study_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(study_pages):
    return study_pages.pages()


@pytest.mark.slow
def test_the_pages_are_those_that_the_studies_make(pages):
    kept = {path.name: path.read_text("utf-8") for path in (DOCS / "studies").glob("*.md")}
    stale = sorted(name for name in kept.keys() | pages.keys() if kept.get(name) != pages.get(name))
    assert stale == [], "python docs/study_pages.py writes them anew"


@pytest.mark.slow
def test_a_row_of_a_table_has_as_many_cells_as_its_head(pages):
    for name, text in pages.items():
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1, (name, table)
