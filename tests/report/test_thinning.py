from __future__ import annotations

import numpy as np
import pytest

from dynascope.plot.drawing import describe_chart
from dynascope.report.thinning import kept_points, thinned
from dynascope.results import Chart, make_record


def test_curves_are_thinned_to_two_thousand_points_and_keep_both_ends():
    time = np.linspace(0.0, 10.0, 5001)
    record = make_record({"loss": (["time"], np.exp(-time))}, {"time": time})
    (line,) = thinned(describe_chart(record, Chart("loss")), 200_000).panels[0].lines
    assert 1000 < len(line.x) <= 2000
    assert (line.x[0], line.x[-1]) == (0.0, 10.0)
    np.testing.assert_array_equal(line.y, np.exp(-line.x))


@pytest.mark.parametrize(
    "x", [np.linspace(0, 1, 10_001), np.geomspace(1e-9, 1, 10_001), np.linspace(0, 1, 10_001) ** 4]
)
def test_a_thinned_curve_resolves_both_a_linear_and_a_logarithmic_axis(x):
    kept = x[kept_points(x, 2000)]
    # A thousand points of each kind leave gaps of 1/999 of the axis, or what the samples themselves leave.
    assert np.diff(kept).max() <= 1 / 999 + np.diff(x).max()
    positive, all_positive = kept[kept > 0], x[x > 0]
    reach = np.log(all_positive[-1] / all_positive[0])
    assert np.diff(np.log(positive)).max() <= reach / 999 + np.diff(np.log(all_positive)).max()
