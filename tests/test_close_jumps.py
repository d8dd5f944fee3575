"""What the docs say of jumps that are close, by the table that the benchmark makes."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

from dynascope.prediction.theories.catalogue import THEORIES

ROOT = Path(__file__).parents[1]
ROWS = list(csv.DictReader((ROOT / "docs/concepts/close_jumps.csv").read_text("utf-8").splitlines()))


def numbers(data: str, scale: str) -> tuple[np.ndarray, np.ndarray]:
    """How close jumps are, and the errors."""
    rows = [row for row in ROWS if (row["data"], row["scale"]) == (data, scale)]
    return np.array([float(row["closeness"]) for row in rows]), np.array([float(row["error"]) for row in rows])


@pytest.mark.slow
def test_a_row_is_what_the_benchmark_finds(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    import close_jumps

    first, told = next(close_jumps.rows()), ROWS[0]
    assert (first.theory, first.data, first.scale) == (told["theory"], told["data"], float(told["scale"]))
    found, written = [first.closeness, first.error], [float(told["closeness"]), float(told["error"])]
    np.testing.assert_allclose(found, written, rtol=0.05)


def test_no_time_is_off_by_more_than_a_small_start_allows():
    trusts = {theory.name: theory.solve.trust for theory in THEORIES if theory.name in {row["theory"] for row in ROWS}}
    for row in ROWS:
        assert float(row["error"]) <= trusts[row["theory"]].time_error(float(row["scale"]))


@pytest.mark.parametrize("scale", ["0.01", "0.0001", "1e-06"])
def test_how_close_jumps_are_tells_the_error_on_white_inputs_alone(scale):
    def told(data):
        closeness, error = numbers(data, scale)
        return np.corrcoef(np.log(closeness), np.log(error + 1e-6))[0, 1]  # below a millionth it is the solver's

    assert told("white inputs") > 0.9
    assert told("any inputs") < 0.6


def test_heads_that_are_not_marked_are_on_time():
    assert max(float(row["error"]) for row in ROWS if row["theory"] == "linear-attention") < 0.01
