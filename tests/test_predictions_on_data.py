"""The benchmark of predictions on ordinary data: a few cells."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def on_data():
    specification = importlib.util.spec_from_file_location("on_data", BENCHMARKS / "predictions_on_data.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "network", "scale"),
    [
        ("sparse 40 × 100", "diagonal", 1e-8),
        ("wine", "linear", 1e-4),
        ("linear teacher", "relu", 1e-4),
        ("units", "attention", 1e-2),
    ],
)
def test_the_verdict_is_that_by_the_truth_and_the_error_as_stated(on_data, data, network, scale):
    row = on_data.found(data, on_data.DATA[data](), network, scale, 0)
    assert row["verdict"] == row["verdict_by_truth"] == "agree"
    assert 0 < row["judged"] <= row["of"]
    assert float(row["error"]) <= float(row["stated_error"])
