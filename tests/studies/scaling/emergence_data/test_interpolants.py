from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.scaling.emergence_data.interpolants import mean_interpolants
from dynascope.theory.skills import finite_size_fraction


def test_the_mean_over_training_sets_is_that_of_gaussian_features():
    counts = np.tile([0, 1, 3, 6, 9], (20_000, 1))
    strength, loss = mean_interpolants(counts, 6, np.random.default_rng(1))
    expected = finite_size_fraction([0, 1, 3, 6, 9], 6)
    # Four standard errors of a mean over twenty thousand sets; numbers between zero and one deviate by a half at most.
    np.testing.assert_allclose(strength, expected, atol=4 * 0.5 / np.sqrt(20_000))
    np.testing.assert_allclose(loss, 1 - expected, atol=4 * 0.5 / np.sqrt(20_000))
    np.testing.assert_array_equal(strength[[0, 3, 4]], [0.0, 1.0, 1.0])


def test_interpolants_of_single_sets_leave_what_they_do_not_find():
    # Of least norm, so that the loss over ½ S² is one less the strength in every set.
    strength, loss = mean_interpolants(np.array([[2, 4]]), 5, np.random.default_rng(2))
    assert strength + loss == pytest.approx(np.ones(2), abs=1e-12)
