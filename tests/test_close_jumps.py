"""The benchmark of jumps that are close: one row of it."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

from dynascope.prediction.theories.catalogue import THEORIES

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_a_row_is_what_the_benchmark_finds(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    import close_jumps

    first = next(close_jumps.rows())
    told = next(csv.DictReader((ROOT / "docs/concepts/close_jumps.csv").read_text("utf-8").splitlines()))
    assert (first.theory, first.data, first.scale) == (told["theory"], told["data"], float(told["scale"]))
    found, written = [first.closeness, first.error], [float(told["closeness"]), float(told["error"])]
    np.testing.assert_allclose(found, written, rtol=0.05)
    theory = next(each for each in THEORIES if each.name == first.theory)
    assert first.error <= theory.solve.trust.time_error(first.scale)
