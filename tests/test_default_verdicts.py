"""The benchmark of studies at their default fields: what it tells, and that the documentation has every study."""

from __future__ import annotations

import json

import default_verdicts as benchmark
import pytest
import xarray as xr
from resumable import rows

from dynascope.studies import find_studies


def test_a_claim_that_does_not_hold_is_told_with_its_interval():
    outcomes = xr.Dataset(
        {
            name: ("hypothesis", values)
            for name, values in {"change": [1.0, 2.0], "low": [0.5, -1], "high": [2, 5]}.items()
        },
        {"hypothesis": ["one", "other"]},
    ).assign(statement=("hypothesis", ["It rises.", "It falls."]))
    tree = xr.DataTree.from_dict({"observed": outcomes})
    tree.attrs["claims"] = json.dumps({"one": "holds", "other": "undecided"})
    assert benchmark.not_supported(tree) == ["Undecided: It falls: 2 (−1 to 5)."]


def test_the_table_has_every_study_once_at_its_stated_cost():
    kept = {row["study"]: row for row in rows(benchmark.FILE)}
    assert kept.keys() == find_studies().keys()
    assert len(kept) == len(rows(benchmark.FILE))
    for name, row in kept.items():
        assert float(row["minutes stated"]) == find_studies()[name].minutes
        assert row["verdict"] in ("agree", "disagree", "undecided")


@pytest.mark.slow
def test_a_study_is_run_as_a_user_would():
    row = benchmark.found("agf-diagonal")
    assert row["verdict"] == "agree"
    assert not row["not supported"]
    assert float(row["minutes taken"]) > 0
