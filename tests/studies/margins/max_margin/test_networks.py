from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.margins.max_margin.networks import similar_inputs, train_features
from dynascope.theory.margins import simplex_margin

LABELS, LEVELS = np.repeat(np.arange(3), 2), np.array([10.0, 1e3])


@pytest.fixture(scope="module")
def inputs():
    return similar_inputs(np.random.default_rng(0), 3, 2, 0.8)


@pytest.mark.slow
def test_normalised_features_collapse_and_others_do_not(inputs):
    normalised, free = (train_features(inputs, LABELS, 5, LEVELS, normalised=each, seed=1) for each in (True, False))
    theory = simplex_margin(3)
    # Angles are off by a constant over ν².
    np.testing.assert_allclose(normalised.cosines, theory.gram, atol=1e-4)
    assert normalised.classifier_cost == pytest.approx(theory.value, rel=1e-4)
    assert normalised.between_class_share == pytest.approx(1, abs=1e-6)
    assert normalised.nc1[-1] < 1e-6 < 1e-3 < free.nc1[-1]


def test_inputs_are_independent_and_like_the_next_class(inputs):
    assert np.linalg.cond(inputs) < 10
    likeness = inputs[1::2] @ inputs[::2].T
    np.testing.assert_allclose(likeness, 2 * np.eye(3) + 0.8 * np.eye(3)[[1, 2, 0]], atol=1e-12)
