from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.linear_networks.random_linear import fitted_exponent, initial_moments


@pytest.mark.parametrize(("depth", "gamma"), [(2, 1.0), (3, 0.5), (4, 1.5)])
def test_moments_are_those_of_independent_gaussian_weights(depth, gamma):
    width, draws = 30, 400
    found = initial_moments(depth, width, gamma, draws, np.random.default_rng(depth))
    each = width ** ((depth - 1) * (1 - gamma))
    # Networks scatter by less than their mean about it, so that five percent are a standard error; four of them.
    assert found.output_variance == pytest.approx(width**-gamma * each, rel=4 / np.sqrt(draws))
    assert found.kernel == pytest.approx(depth * each, rel=4 / np.sqrt(draws))


def test_a_power_of_the_width_is_fitted_with_its_standard_error():
    widths = np.array([8.0, 16.0, 32.0, 64.0])
    assert fitted_exponent(widths, 3 * widths**-1.5) == pytest.approx((-1.5, 0.0), abs=1e-7)
    draw = np.random.default_rng(0)
    fits = np.array([fitted_exponent(widths, widths**2 * np.exp(draw.normal(size=4))) for _ in range(2000)])
    # A mean of two thousand; the spread of fits is what their errors say, within a few percent.
    assert fits[:, 0].mean() == pytest.approx(2.0, abs=4 * fits[:, 0].std() / np.sqrt(len(fits)))
    assert np.mean(fits[:, 1] ** 2) == pytest.approx(fits[:, 0].var(), rel=0.15)
