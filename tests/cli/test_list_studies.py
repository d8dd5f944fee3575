from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from dynascope.cli.commands import main
from dynascope.cli.list_studies import List
from dynascope.errors import InputError
from dynascope.studies import study_index


@pytest.fixture
def listed(capsys, monkeypatch):
    """What `list` prints for some words and flags, at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def read(*words: str, **flags: bool) -> str:
        assert List(words, **flags)() == 0
        return capsys.readouterr().out

    return read


@pytest.mark.parametrize("long", [False, True])
def test_every_study_is_listed_within_eighty_columns_and_without_codes_for_colours(listed, long):
    said = listed(long=long)
    names = [line.split()[0] for line in said.splitlines() if line.startswith("  ") and line[2] != " "]
    assert sorted(names) == list(study_index())
    assert max(map(len, said.splitlines())) <= 80
    assert "\x1b" not in said


def test_the_short_list_has_each_study_below_its_subject(listed):
    said = listed().splitlines()
    assert [line.split()[0] for line in said if re.match(r"  \S", line)] == [
        entry.name for entry in sorted(study_index().values(), key=lambda entry: (entry.subject, entry.name))
    ]
    assert said.index("Linear networks") < said.index("Staircases")
    (line,) = [line for line in said if line.startswith("  linear-staircase ")]
    assert line.split(maxsplit=1)[1]


def test_the_long_list_tells_claim_paper_and_minutes(listed):
    entry = study_index()["linear-staircase"]
    said = " ".join(listed("linear-staircase", long=True).split()).replace("- ", "-")
    assert f"linear-staircase ({entry.minutes:g} min)" in said
    assert entry.claim in said
    assert f"{entry.paper} (arXiv {entry.arxiv})" in said


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["grokking-digits"], "grokking-digits"),
        (["GROKKING"], "grokking-modular"),
        (["linear networks"], "wide-linear"),
        (["2012.09839"], "linear-staircase"),
        (["Jacot"], "deep-saddles"),
        (["weight", "decay"], "grokking-diagonal"),
    ],
)
def test_words_of_name_subject_paper_or_claim_choose_studies(listed, words, name):
    said = listed(*words)
    assert f"  {name} " in said
    assert len(said.splitlines()) < len(listed().splitlines())


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["gorkking"], "did you mean grokking?"),
        (["qqqq"], "list all studies"),
        (["dynascope"], "list all studies"),
        (["grokking", "attention"], "use fewer search words"),
    ],
)
def test_words_that_no_study_has_are_refused(words, remedy):
    with pytest.raises(InputError, match="no study matches") as refusal:
        List(tuple(words))()
    assert remedy in refusal.value.remedy


def test_machines_get_an_array_of_all_or_of_those_chosen(capsys):
    assert main(["list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["study"] for row in rows] == list(study_index())
    assert all(row.keys() == {"study", "paper", "arxiv", "claim", "minutes"} for row in rows)
    assert main(["list", "parity", "--json"]) == 0
    chosen = [row["study"] for row in json.loads(capsys.readouterr().out)]
    assert 0 < len(chosen) < len(rows)


@pytest.mark.slow
def test_help_on_a_study_imports_no_other():
    code = """
import sys
from dynascope.cli import main
main(["run", "linear-staircase", "--help"])
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    modules = {entry.module for entry in study_index().values()}
    assert loaded & modules == {study_index()["linear-staircase"].module}
