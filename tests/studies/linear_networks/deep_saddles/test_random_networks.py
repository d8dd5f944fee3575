from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.linear_networks.deep_saddles.random_networks import initial_moments


@pytest.mark.parametrize(("depth", "gamma"), [(2, 1.0), (3, 0.5), (4, 1.5)])
def test_moments_are_those_of_independent_gaussian_weights(depth, gamma):
    width, draws = 30, 400
    found = initial_moments(depth, width, gamma, draws, np.random.default_rng(depth))
    each = width ** ((depth - 1) * (1 - gamma))
    # Networks scatter by less than their mean about it, so that five percent are a standard error; four of them.
    assert found.output_variance == pytest.approx(width**-gamma * each, rel=4 / np.sqrt(draws))
    assert found.kernel == pytest.approx(depth * each, rel=4 / np.sqrt(draws))
