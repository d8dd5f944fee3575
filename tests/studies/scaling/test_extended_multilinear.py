from __future__ import annotations

import numpy as np

from dynascope.studies.scaling.emergence_data.interpolants import least_norm_strength
from dynascope.studies.scaling.extended_multilinear import train_extended, train_with_features


def test_descent_from_a_small_start_ends_at_the_interpolant_of_least_norm():
    draw = np.random.default_rng(0)
    inputs, targets = draw.normal(size=(5, 12)), draw.choice([-2.0, 2.0], 5)
    inputs[:, 6:] = 0  # no sample of the second skill
    found = train_extended(inputs, targets, draw.normal(size=(2, 6)), target_scale=2.0, steps=3000)
    least = (np.linalg.pinv(inputs) @ targets).reshape(2, 6)
    # What no sample sees keeps its start, a ten-thousandth of the end.
    np.testing.assert_allclose(found, least, atol=1e-3)
    np.testing.assert_allclose(found[:, 0] / 2, least_norm_strength(inputs, targets, 2), atol=1e-3)


def test_a_model_with_some_of_the_features_ends_with_their_share_of_each_skill():
    # Two features of each of two skills, of which three are there: all of the first skill, and half of the second.
    draw, sign = np.random.default_rng(1), np.tile([1.0, -1.0], 4)
    other = np.repeat([1.0, -1.0], 4)
    features = np.tile(np.stack([sign + other, sign - other], axis=1) / np.sqrt(2), (2, 1, 1))
    weights = np.abs(draw.normal(size=(2, 2)))
    found = train_with_features(features, sign, 3, np.array([0.7, 0.3]), weights, target_scale=3.0, steps=4000)
    # Until rounding is all that is left.
    np.testing.assert_allclose(found, [[1.0, 0.5], [0.0, 0.5]], atol=1e-6)
