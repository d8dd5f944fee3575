"""The benchmark of joint laws: one draw of each way."""

from __future__ import annotations

import joint_law as benchmark
import pytest


@pytest.mark.slow
@pytest.mark.parametrize("way", benchmark.WAYS)
def test_one_draw_is_near_the_truth_whichever_way_it_is_fitted(way, monkeypatch):
    monkeypatch.setattr(benchmark, "BOOTSTRAPS", 5)
    surface = benchmark.SURFACES[0]._replace(scatter=1e-4)
    found, truths = benchmark.WAYS[way](surface, surface.drawn(0)), benchmark.truths(surface)
    for name, truth in truths.items():
        # A scatter of 1e-4 leaves the best size for a thousand times the compute known to about a percent.
        assert found[name][0] == pytest.approx(truth, rel=0.03), name
