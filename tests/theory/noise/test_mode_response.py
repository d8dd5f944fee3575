from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from dynascope.theory.noise.mode_response import mode_response
from dynascope.theory.symmetry import damped_kernels

TIMES = np.array([1e-6, 1e-3, 0.3, 0.99, 1.01, 3.0, 30.0])


@pytest.mark.parametrize("square", [50.0, 1.5, 1.0, 1 - 1e-9, 0.3, 1e-8, 0.0, -0.4])
def test_areas_and_powers_are_the_integrals_at_any_damping(square):
    found = mode_response(TIMES, 1.0, np.array(square))

    def integral(square, end):
        def velocity(t):
            return float(mode_response(np.array(t), 1.0, np.array(square)).velocity)

        def slope(t):
            return float(mode_response(np.array(t), 1.0, np.array(square)).slope)

        functions = (velocity, lambda t: velocity(t) ** 2, lambda t: slope(t) ** 2)
        return [quad(each, 0, end, epsabs=0, epsrel=1e-12, limit=400)[0] for each in functions]

    for place, end in enumerate(TIMES[:6]):
        got = [found.area[place], found.power[place], found.slope_power[place]]
        # What quadrature promises of a sum that may change sign.
        np.testing.assert_allclose(got, integral(square, end), rtol=1e-10)


@given(square=st.floats(0, 30), time=st.floats(0, 20))
def test_kernels_are_those_of_a_single_oscillator(square, time):
    found = mode_response(np.array(time), 0.8, np.array(square))
    known = damped_kernels(time, damping=0.8, frequency=np.sqrt(square))
    np.testing.assert_allclose(found.position, known.position, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(found.velocity, known.velocity, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(square * found.area, known.lost, rtol=1e-9, atol=1e-13)


def test_flat_and_nearly_flat_modes_are_one_and_times_and_modes_broadcast():
    found = mode_response(TIMES[:, None], 1.0, np.array([0.0, 1e-18]))
    for part in found:
        assert part.shape == (7, 2)
        np.testing.assert_allclose(part[:, 1], part[:, 0], rtol=1e-12, atol=1e-15)


def test_critical_damping_is_known_in_closed_form():
    found = mode_response(np.array([0.5, 4.0]), 1.0, np.array(1.0))
    for t, velocity, power in zip((0.5, 4.0), found.velocity, found.power, strict=True):
        assert velocity == pytest.approx(t * np.exp(-t), rel=1e-14)
        assert power == pytest.approx((1 - np.exp(-2 * t) * (1 + 2 * t + 2 * t * t)) / 4, rel=1e-13)
