"""The benchmark of what assumptions cost that hold nearly: one row of it."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_a_row_is_what_the_benchmark_finds(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    import almost_applies

    first = next(almost_applies.rows())
    told = next(csv.DictReader((ROOT / "docs/concepts/almost_applies.csv").read_text("utf-8").splitlines()))
    assert [first.theory, first.assumption] == [told["theory"], told["assumption"]]
    np.testing.assert_allclose(
        [first.violation, first.error], [float(told[name]) for name in ("violation", "error")], rtol=0.05
    )
    # The error of a prediction is at most the share by which its assumption is violated.
    assert first.error <= first.violation
