"""The benchmark of joint laws: what its table says, and one draw of each way."""

from __future__ import annotations

import joint_law as benchmark
import numpy as np
import pytest
from resumable import rows


def test_in_the_table_of_the_documentation_our_intervals_hold_the_truth_and_estimates_are_not_biased():
    ours = [row for row in rows(benchmark.FILE) if row["fitted by"] == "fit_joint"]
    assert {row["surface"] for row in ours} == {surface.name for surface in benchmark.SURFACES}
    for row in ours:
        held, draws = float(row["held the truth"].removesuffix("%")) / 100, int(row["draws"])
        # Three deviations of the binomial law, and the rounding of a percent.
        assert abs(held - 0.95) <= 3 * np.sqrt(0.95 * 0.05 / draws) + 0.005
        assert abs(float(row["median / truth"]) - 1) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("way", benchmark.WAYS)
def test_one_draw_is_near_the_truth_whichever_way_it_is_fitted(way, monkeypatch):
    monkeypatch.setattr(benchmark, "BOOTSTRAPS", 5)
    surface = benchmark.SURFACES[0]._replace(scatter=1e-4)
    found, truths = benchmark.WAYS[way](surface, surface.drawn(0)), benchmark.truths(surface)
    for name, truth in truths.items():
        # A scatter of 1e-4 leaves the best size for a thousand times the compute known to about a percent.
        assert found[name][0] == pytest.approx(truth, rel=0.03), name
