"""The benchmark of studies at random legal settings: what it draws, what it keeps, and what the documentation says."""

from __future__ import annotations

import collections
import dataclasses
import json

import legal_settings as benchmark
import pytest
from resumable import rows

from dynascope.studies import find_study, study_index


@pytest.mark.parametrize("name", ["layerwise-modes", "diagonal-staircase", "scaling-time"])
def test_first_draws_keep_sizes_and_choices_and_later_ones_need_not(name):
    study = find_study(name)
    small = study(**study.tiny)
    sizes = [each.name for each in dataclasses.fields(study) if each.name != "seed" and is_size(small, each.name)]
    first, later = benchmark.settings(name, 0), benchmark.settings(name, benchmark.VALUES_ALONE)
    assert first == benchmark.settings(name, 0)
    assert first not in (small, later, benchmark.settings(name, 1))
    assert all(getattr(first, size) == getattr(small, size) for size in sizes)
    assert any(getattr(later, size) != getattr(small, size) for size in sizes)


def is_size(study, name) -> bool:
    return isinstance(getattr(study, name), int)


def test_draws_that_take_too_long_or_are_refused_have_closer_ones_in_their_place():
    kept = [
        {"study": "one", "draw": str(draw), "verdict": verdict}
        for draw, verdict in enumerate(["agree", "too long", "refused"])
    ]
    assert benchmark.following(kept, "one", 3) == benchmark.CLOSER + 1
    assert benchmark.following(kept, "one", 4) == 3
    assert benchmark.following(kept[:1], "one", 1) is None
    assert benchmark.following(kept, "other", 3) == 0


@pytest.mark.slow
def test_the_quantity_that_takes_most_of_its_tolerance_is_told():
    row = benchmark.found("scaling-time", 0)
    assert row["verdict"] == "agree"
    assert 0 < float(row["share"]) <= 1
    assert json.loads(row["settings"])


def test_the_table_of_the_documentation_has_every_study_and_no_disagreement():
    kept = rows(benchmark.FILE)
    counts = collections.Counter(row["verdict"] for row in kept)
    assert {row["study"] for row in kept} == set(study_index())
    # A theory and a training that differ somewhere are a finding, which the page is to tell.
    assert set(counts) <= {"agree", "undecided", "refused", "too long"}
    turned = collections.Counter(row["turns"] for row in kept if row["verdict"] == "agree")
    assert not turned["no"]
    page = " ".join(benchmark.FILE.with_name("how-far-to-trust.md").read_text().split())
    assert f"Of {len(kept)} settings {counts['agree']} agree, 0 disagree, {counts['undecided']} are undecided" in page
    assert f"{counts['refused']} are refused and {counts['too long']} take too long" in page
    assert f"each of the {turned['yes']} verdicts of agreement" in page


def test_every_study_has_ten_settings_or_closer_ones_in_their_place_and_two_that_are_quick():
    kept = rows(benchmark.FILE)
    assert [name for name in study_index() if benchmark.following(kept, name, benchmark.DRAWS) is not None] == []
    assert [name for name in study_index() if len(benchmark.quick(kept, name)) != 2] == []
