"""The benchmark of predictions on ordinary data: a few cells, and what it keeps."""

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


def test_cells_that_the_file_holds_are_not_computed_again(on_data, tmp_path, monkeypatch, capsys):
    asked = []

    def found(name, task, network, scale, seed):
        asked.append((name, network, scale, seed))
        cell = {"data": name, "network": network, "scale": f"{scale:g}", "seed": seed}
        return cell | {"verdict": "agree", "verdict_by_truth": "agree", "error": "1e-5", "stated_error": "1e-4"}

    monkeypatch.setattr(on_data, "found", found)
    words = ["predictions_on_data", "--file", str(tmp_path / "cells.csv"), "--only", "units"]
    for scales in ((1e-2,), (1e-2, 1e-4), (1e-2, 1e-4)):
        monkeypatch.setattr(on_data, "SCALES", scales)
        monkeypatch.setattr("sys.argv", words)
        on_data.main()
    assert len(asked) == len(set(asked)) == 26  # a diagonal network draws no weights
    assert "26 cells, 26 with a verdict, 0 of them wrong" in capsys.readouterr().out


def test_the_table_of_the_documentation_has_no_wrong_verdict(on_data):
    kept = on_data.rows(on_data.FILE)
    judged = [row for row in kept if row["verdict"] in ("agree", "disagree", "undecided")]
    assert {row["data"] for row in kept} <= set(on_data.DATA)
    assert len(judged) >= 9
    assert all(row["verdict"] == row["verdict_by_truth"] for row in judged)
    counts = {
        verdict: sum(row["verdict"] == verdict for row in judged) for verdict in ("agree", "disagree", "undecided")
    }
    covered = sum(float(row["error"]) <= float(row["stated_error"]) for row in judged)
    page = " ".join(on_data.FILE.with_name("how-far-to-trust.md").read_text().split())
    assert f"Of {len(kept)} cells {len(judged)} have a verdict" in page
    assert f"{counts['agree']} agree, {counts['disagree']} disagree, undecided: {counts['undecided']}" in page
    assert f"covers the true one in {covered} of them" in page
