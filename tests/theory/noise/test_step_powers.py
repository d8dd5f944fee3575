from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.theory.noise.step_powers import powers_along


def by_recursion(steepness: float, momentum: float, steps: int) -> list[float]:
    """u_k, u_{k−1} and W_k in whole ratios, without rounding."""
    x, beta = Fraction(steepness), Fraction(momentum)
    before, now, total = Fraction(0), Fraction(1), Fraction(1)
    for _ in range(steps - 1):
        before, now = now, (1 + beta - x) * now - beta * before
        total += now
    return [float(now), float(before), float(total)]


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("steps", [1, 2, 31, 32, 33, 60])
def test_they_are_those_of_the_recursion(momentum, steps):
    critical = (1 - np.sqrt(momentum)) ** 2
    steep = np.array([0, 1e-16, 1e-9, critical / 2, critical * (1 - 1e-9), critical, critical * (1 + 1e-9), 0.3, 1.0])
    steep = np.append(steep, [(1 + np.sqrt(momentum)) ** 2 * (1 - 1e-9), 1.99 * (1 + momentum)])
    steep = steep[steep < 2 * (1 + momentum)]
    found = powers_along(steep, np.array([float(steps)]), momentum)
    for place, x in enumerate(steep):
        expected = by_recursion(float(x), momentum, steps)
        # Powers of 33 roundings; W by 1/(1 − √β)² = 4e4 of them at β = 0.99, less what W is above one.
        np.testing.assert_allclose([part[0, place] for part in found], expected, rtol=2e-10, atol=1e-12)


def test_flat_modes_sum_up_for_as_long_as_one_likes():
    k = np.array([1e3, 1e9, 2.0**50])
    found = powers_along(np.array([0.0, 1e-20]), k, 0.9)
    # The other mode has lost a ten-thousandth by then.
    np.testing.assert_allclose(found.response, 10.0, rtol=2e-4)
    exact = (k - 0.9 * (1 - 0.9**k) / 0.1) / 0.1
    np.testing.assert_allclose(found.total[:, 0], exact, rtol=1e-13)
    # 1/x (1 − exp(−xk/(1 − β))), which is k/(1 − β) as long as x k is small.
    np.testing.assert_allclose(found.total[:, 1], exact, rtol=1e-3)


@given(x=st.floats(0, 1.9), momentum=st.floats(0, 0.95), steps=st.integers(2, 200))
def test_one_step_more_is_the_recursion_and_the_sum_is_the_position(x, momentum, steps):
    found = powers_along(np.array([x]), steps + np.array([-1.0, 0.0, 1.0]), momentum)
    before, now, after = found.response[:, 0]
    assert after == pytest.approx((1 + momentum - x) * now - momentum * before, abs=1e-9)
    assert found.previous[1, 0] == pytest.approx(before, abs=1e-9)
    assert x * found.total[1, 0] == pytest.approx(1 - after + momentum * now, abs=1e-9)
