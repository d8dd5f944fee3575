"""The benchmark of studies at their default fields: one study of it."""

from __future__ import annotations

import default_verdicts as benchmark
import pytest


@pytest.mark.slow
def test_a_study_is_run_as_a_user_would(tmp_path):
    row = benchmark.found("agf-diagonal", tmp_path)
    assert row["verdict"] == "agree"
    assert (tmp_path / "agf-diagonal.svg").read_text("utf-8").startswith("<?xml")
    assert not row["not supported"]
    assert float(row["minutes taken"]) > 0
