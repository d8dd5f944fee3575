"""The benchmark of intervals: a few of its draws."""

from __future__ import annotations

import interval_coverage as benchmark
import pytest


@pytest.mark.slow
@pytest.mark.parametrize("subject", ["power law", "calibration", "effect"])
def test_a_few_draws_hold_the_truth_as_often_as_they_say(subject):
    design = next(each for each in benchmark.DESIGNS if each.subject == subject and each.runs == 3)
    for row in benchmark.covered(design, 40):
        # 38 of 40 with three deviations of 1.4.
        assert float(row["held the truth"].removesuffix("%")) >= 84
