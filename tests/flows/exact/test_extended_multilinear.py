from __future__ import annotations

import numpy as np

from dynascope.flows.exact.extended_multilinear import train_extended
from dynascope.theory.skills.interpolants import least_norm_strength


def test_descent_from_a_small_start_ends_at_the_interpolant_of_least_norm():
    draw = np.random.default_rng(0)
    inputs, targets = draw.normal(size=(5, 12)), draw.choice([-2.0, 2.0], 5)
    inputs[:, 6:] = 0  # no sample of the second skill
    found = train_extended(inputs, targets, draw.normal(size=(2, 6)), target_scale=2.0, steps=3000)
    least = (np.linalg.pinv(inputs) @ targets).reshape(2, 6)
    # What no sample sees keeps its start, a ten-thousandth of the end.
    np.testing.assert_allclose(found, least, atol=1e-3)
    np.testing.assert_allclose(found[:, 0] / 2, least_norm_strength(inputs, targets, 2), atol=1e-3)
