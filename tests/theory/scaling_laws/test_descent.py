from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from dynascope.theory.scaling_laws.descent import descend, huber, huber_weights

T = np.linspace(0, 3, 12)
DATA = 2 * np.exp(-0.7 * T) + 0.3 + 0.05 * np.random.default_rng(0).normal(size=(4, 12))
DATA[2, 5] += 3
LOWER, UPPER = [0.0, 0.0, 0.32], [np.inf, 0.75, 5.0]


def residuals(laws, places):
    falling = np.exp(-laws[:, 1:2] * T)
    slopes = np.stack([falling, -laws[:, :1] * T * falling, np.ones_like(falling)], axis=-1)
    return laws[:, :1] * falling + laws[:, 2:] - DATA[places], slopes


def test_each_problem_ends_where_scipy_ends_it():
    for threshold in (np.inf, 0.05):
        found, sums = descend(residuals, np.tile([1.0, 0.5, 1.0], (4, 1)), LOWER, UPPER, threshold=threshold)
        options = {"loss": "huber", "f_scale": threshold} if threshold < 1 else {}
        for place, (law, total) in enumerate(zip(found, sums, strict=True)):
            at = np.array([place])
            theirs = least_squares(
                lambda law, at=at: residuals(law[None], at)[0][0],
                [1.0, 0.5, 1.0],
                bounds=(LOWER, UPPER),
                xtol=1e-14,
                ftol=1e-14,
                gtol=1e-14,
                **options,
            )
            # SciPy's bounds are approached and not reached; at a minimum sums have twice the digits of places.
            assert total <= 2 * theirs.cost * (1 + 1e-9)
            np.testing.assert_allclose(law, theirs.x, rtol=1e-4)


def test_hubers_squares_have_the_slope_of_their_weights():
    rest = np.array([[-3.0, -0.5, 0.0, 0.2, 2.0]])
    np.testing.assert_allclose(huber(rest, 1.0), [2 * 3 - 1 + 0.25 + 0.04 + 2 * 2 - 1])
    for k in range(5):
        step = 1e-6 * np.eye(5)[k]
        slope = (huber(rest + step, 1.0) - huber(rest - step, 1.0)) / 2e-6
        np.testing.assert_allclose(slope, 2 * (huber_weights(rest, 1.0) * rest)[:, k], atol=1e-8)
