from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import types
from pathlib import Path

import pytest

from dynascope.errors import InputError
from dynascope.studies import Reference, Study, find_studies, find_study, index, study_index
from dynascope.studies.index import StudyEntry, write_index

SHIPPED = Path(index.__file__).with_name("index.json")


class Elsewhere(Study):
    """A study of another package."""

    name = "elsewhere"
    reference = Reference(paper="A. Author, Decay", arxiv="1234.56789", claim="It decays.")
    minutes = 1


@pytest.fixture
def offer(monkeypatch):
    """Install modules of another package that declare a study each, by name of the module."""

    def install(**modules: types.ModuleType) -> None:
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)
        entries = [importlib.metadata.EntryPoint("any", name, "dynascope.studies") for name in modules]
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)

    return install


def module(name: str, /, **changes) -> types.ModuleType:
    found = types.ModuleType(name, "Elsewhere, losses halve.\n\nAt length.")
    found.Elsewhere = type("Elsewhere", (Elsewhere,), {"__module__": name, **changes})
    found.Study = Study  # what a module only imports is not its own
    return found


def test_the_index_is_what_the_studies_declare(tmp_path):
    entries = write_index(tmp_path / "index.json")
    assert (tmp_path / "index.json").read_text("utf-8") == SHIPPED.read_text("utf-8"), (
        "run python -m dynascope.studies.index"
    )
    assert entries == [entry for entry in study_index().values() if entry.module.startswith("dynascope.")]


def test_an_entry_says_what_the_study_says():
    entry, study = study_index()["linear-staircase"], find_study("linear-staircase")
    assert entry == StudyEntry.of(study)
    assert entry.load() is study
    assert (entry.subject, entry.summary) == ("staircases", sys.modules[study.__module__].__doc__)
    cited = study.reference
    assert (entry.paper, entry.arxiv, entry.claim) == (cited.paper, cited.arxiv, cited.claim)
    assert study_index()["wide-linear"].subject == "linear networks"


@pytest.mark.slow
def test_reading_the_index_and_one_study_imports_nothing_of_the_others():
    code = """
import sys
from dynascope.studies import find_study, index, study_index
assert len(study_index()) > 30
print(*sorted(name for name in sys.modules if name.startswith("dynascope.studies.")))
find_study("linear-staircase")
subjects = {entry.module for entry in study_index().values()}
print(*sorted(subjects & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = done.stdout.splitlines()
    assert before == "dynascope.studies.index"
    assert after == "dynascope.studies.staircases.linear_staircase"


def test_another_package_adds_a_study(offer):
    offer(elsewhere=module("elsewhere"))
    entry = study_index()["elsewhere"]
    assert entry.load() is sys.modules["elsewhere"].Elsewhere
    assert (entry.subject, entry.summary) == ("elsewhere", "Elsewhere, losses halve.")
    assert find_study("elsewhere") is entry.load()
    assert list(study_index()) == sorted(study_index())


def test_a_study_of_this_package_keeps_its_name(offer):
    offer(elsewhere=module("elsewhere", name="linear-staircase"))
    assert find_study("linear-staircase").__module__ == "dynascope.studies.staircases.linear_staircase"


def test_a_package_that_cannot_be_imported_takes_no_other_study_away(offer, monkeypatch):
    offer(broken=module("broken"), elsewhere=module("elsewhere"))
    monkeypatch.setitem(sys.modules, "broken", None)
    with pytest.warns(UserWarning, match="the studies of broken cannot be imported"):
        found = study_index()
    assert {"elsewhere", "linear-staircase"} <= set(found)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("linear-stairs", "did you mean linear-staircase?"), ("", "choose from agf-"), ("frobnicate", "choose from agf-")],
)
def test_an_unknown_study_is_refused_with_the_one_that_was_meant_or_all(name, remedy):
    with pytest.raises(InputError, match="no study is called") as refusal:
        find_study(name)
    assert (refusal.value.argument, refusal.value.value) == ("study", name)
    assert refusal.value.remedy.startswith(remedy)


def test_all_studies_are_found_by_name():
    assert list(find_studies()) == list(study_index())
