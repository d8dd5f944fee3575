from __future__ import annotations

import numpy as np

from dynascope.studies.regimes.lazy_rich_features.linear_descent import descended_outputs


def test_every_step_is_one_of_gradient_descent():
    draw = np.random.default_rng(0)
    features, targets, rate = draw.normal(size=(9, 4)), draw.normal(size=(6, 2)), 0.1
    rows, weights = np.column_stack([features, np.ones(9)]), np.zeros((5, 2))
    found = descended_outputs(features, targets, np.arange(30), rate)
    for outputs in found:
        np.testing.assert_allclose(outputs, rows @ weights, atol=1e-12)
        weights = weights - rate / 6 * rows[:6].T @ (rows[:6] @ weights - targets)
