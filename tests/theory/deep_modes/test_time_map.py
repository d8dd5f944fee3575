from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from dynascope.theory.deep_modes.time_map import deep_strength, deep_time

# Below the target, above it, opposite to it, and without one; near and far.
CASES = np.array(
    [
        *([0.3, 1.0, 0.01], [0.999, 1.0, 0.9], [2.0, 30.0, 1e-3]),
        *([1.01, 1.0, 5.0], [3.0, 1.0, 50.0], [0.011, 0.01, 2.0]),
        *([0.2, -1.0, 0.9], [1e-3, -1.0, 30.0], [1e-4, -1.0, 1e-3]),
        *([0.2, 0.0, 0.9], [1e-4, 0.0, 3.0]),
    ]
)


@pytest.mark.slow
@pytest.mark.parametrize("layers", [4, 9])
def test_time_is_the_integral_over_the_inverse_velocity(layers):
    def integral(strength, target, start):
        def slowness(log_strength):
            s = np.exp(log_strength)
            return s / (layers * s ** (2 - 2 / layers) * (target - s))

        return quad(slowness, np.log(start), np.log(strength), epsabs=0, epsrel=1e-12, limit=200)[0]

    times = deep_time(layers, *CASES.T)
    # Quadrature keeps 12 digits.
    np.testing.assert_allclose(times, [integral(*case) for case in CASES], rtol=1e-10)
    strength, residual = deep_strength(layers, times, CASES[:, 1], CASES[:, 2])
    np.testing.assert_allclose(strength, CASES[:, 0], rtol=1e-11)
    np.testing.assert_allclose(residual, CASES[:, 1] - CASES[:, 0], rtol=1e-9)


def test_time_scales_with_the_strengths():
    times = deep_time(4, *CASES.T)
    # Far from the smallest and the largest numbers, scaling changes rounding only.
    np.testing.assert_allclose(deep_time(4, *(100 * CASES.T)), times / 100**1.5, rtol=1e-12)
