"""The benchmark of studies at random legal settings: one setting of it."""

from __future__ import annotations

import json

import legal_settings as benchmark
import pytest


@pytest.mark.slow
def test_the_quantity_that_takes_most_of_its_tolerance_is_told():
    row = benchmark.found("scaling-time", 0)
    assert row["verdict"] == "agree"
    assert 0 < float(row["share"]) <= 1
    assert json.loads(row["settings"])
