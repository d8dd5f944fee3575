"""The table of what "almost applies" costs is that of the benchmark, and what theories say of their errors holds."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

from dynascope.prediction.candidate import TRAINING
from dynascope.prediction.theories.catalogue import THEORIES
from dynascope.prediction.theories.trust import Solved
from dynascope.theory import assumptions

ROOT = Path(__file__).parents[1]
ROWS = list(csv.DictReader((ROOT / "docs/concepts/almost_applies.csv").read_text("utf-8").splitlines()))


@pytest.mark.slow
def test_a_row_is_what_the_benchmark_finds(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    import almost_applies

    first = next(almost_applies.rows())
    assert [first.theory, first.assumption] == [ROWS[0]["theory"], ROWS[0]["assumption"]]
    np.testing.assert_allclose(
        [first.violation, first.error], [float(ROWS[0][name]) for name in ("violation", "error")], rtol=0.05
    )


def allowed(theory: str, scale: float) -> float:
    """How far off times may be by what the theory says of its starts."""
    solve = next(each.solve for each in THEORIES if each.name == theory)
    return solve.trust.time_error(scale) if isinstance(solve, Solved) else 2.2 / np.log(1 / scale)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['theory']}, {row['assumption']}, {row['violation']}")
def test_a_prediction_is_off_by_no_more_than_is_said(row):
    violation, error = float(row["violation"]), float(row["error"])
    if row["assumption"] == assumptions.SMALL_START.name:
        assert error <= allowed(row["theory"], violation)
    elif row["assumption"] in (assumptions.ENOUGH_NEURONS.name, assumptions.LARGE_OUTPUT_WEIGHTS.name):
        assert error <= 1  # no amount is said: jumps may be missing
    elif row["assumption"] == assumptions.INPUTS_ON_A_LINE.name:
        assert error <= violation**0.5  # a share of power is a square
    else:
        assert error <= violation


def test_every_theory_has_a_line():
    assert {row["theory"] for row in ROWS} == {theory.name for theory in THEORIES}


def test_every_assumption_that_may_hold_nearly_has_a_line():
    stated = {each for theory in THEORIES for each in (*theory.assumes, *TRAINING)}
    assert {row["assumption"] for row in ROWS} == {each.name for each in stated if each.almost > each.limit}


def test_a_larger_violation_costs_more():
    for pair in {(row["theory"], row["assumption"]) for row in ROWS}:
        errors = [float(row["error"]) for row in ROWS if (row["theory"], row["assumption"]) == pair]
        assert len(errors) == 6
        assert errors[-1] > errors[0]
