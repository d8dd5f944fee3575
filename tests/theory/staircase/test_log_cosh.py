from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory.staircase.log_cosh import (
    accumulated_utility,
    activation_phase,
    later_utility,
    log_cosh,
    signed_phase,
)


@given(arrays(np.float64, 5, elements=st.floats(-300, 300)))
def test_log_cosh_is_the_log_of_cosh(phase):
    np.testing.assert_allclose(log_cosh(phase), np.log(np.cosh(phase)), rtol=1e-12, atol=1e-15)


def test_log_cosh_keeps_its_digits_where_cosh_has_none():
    np.testing.assert_allclose(log_cosh([1e-6, -1e-100, 1e5]), [5e-13, 5e-201, 1e5 - np.log(2)], rtol=1e-12)


@given(st.floats(0.1, 700))
def test_signed_phase_undoes_accumulated_utility(integral):
    for sign in (-1.0, 1.0):
        phase = signed_phase(accumulated_utility(sign * integral), aligned=sign)
        np.testing.assert_allclose(phase, 2 * sign * integral, rtol=1e-12)


def test_signed_phase_of_nothing_is_zero():
    assert signed_phase(0.0) == 0.0


def utility_of_one_neuron(gradients, durations, scale):
    """Integrate u and v themselves under a piecewise constant gradient; ½ log((u² + v²)/scale²) after each piece."""
    weights, utilities = np.array([scale, 0.0]), []
    for gradient, duration in zip(gradients, durations, strict=True):
        weights = solve_ivp(
            lambda _, w, g=gradient: g * w[::-1], (0, duration), weights, "DOP853", rtol=1e-12, atol=1e-14 * scale
        ).y[:, -1]
        utilities.append(np.log(weights @ weights / scale**2) / 2)
    return utilities


@pytest.mark.parametrize(
    ("gradients", "durations"),
    [
        ([1.0], [3.0]),
        ([-0.7, -1.3], [1.0, 2.0]),
        # It is pulled back, partly, through zero, and back again.
        ([1.0, -0.5], [2.0, 1.0]),
        ([1.0, -1.5], [2.0, 4.0]),
        ([0.8, -2.0, 1.1, -0.3], [3.0, 2.5, 4.0, 1.0]),
    ],
)
def test_utility_agrees_with_direct_integration_of_a_neuron_whose_gradient_flips(gradients, durations):
    utility, integral, found = np.zeros(1), 0.0, []
    for gradient, duration in zip(gradients, durations, strict=True):
        aligned = np.sign(gradient) * np.sign(integral)
        utility = later_utility(utility, np.array([gradient]), duration, aligned=aligned)
        integral += gradient * duration
        found.append(float(utility[0]))
        assert found[-1] == pytest.approx(float(accumulated_utility(integral)), abs=1e-10)
    # The solver is accurate to 1e-12 of the largest weight on the way.
    np.testing.assert_allclose(found, utility_of_one_neuron(gradients, durations, 1e-3), rtol=0, atol=1e-8)


@given(st.floats(-5, 5), st.floats(-3, 3), st.floats(0, 10), st.floats(0, 10))
def test_waiting_twice_is_waiting_once(integral, gradient, first, second):
    def after(start, duration):
        utility = accumulated_utility(np.array([start]))
        return later_utility(utility, np.array([gradient]), duration, aligned=np.sign(gradient) * np.sign(start))

    # A phase near zero is the square root of the utility, which keeps half of the digits.
    np.testing.assert_allclose(after(integral + gradient * first, second), after(integral, first + second), atol=1e-7)


def test_a_neuron_that_is_pulled_back_first_shrinks_to_its_start():
    start = accumulated_utility(np.array([2.0]))
    there = [float(later_utility(start, np.array([-1.0]), t, aligned=-1.0)[0]) for t in (0.0, 1.0, 2.0, 3.0, 4.0)]
    np.testing.assert_allclose(there, accumulated_utility([2.0, 1.0, 0.0, 1.0, 2.0]), atol=1e-12)


@pytest.mark.parametrize("scale", [0.9, 0.1, 1e-4, 1e-8, 1e-150, 1e-300, 5e-324])
def test_activation_phase_is_where_the_norm_is_one(scale):
    phase = activation_phase(scale)
    assert float(accumulated_utility(phase) + np.log(scale)) == pytest.approx(0.0, abs=1e-12 * max(phase, 1.0))


@pytest.mark.parametrize("scale", [0.5, 0.1, 1e-3, 1e-5])
def test_activation_phase_is_its_closed_form_where_that_does_not_overflow(scale):
    assert activation_phase(scale) == pytest.approx(np.arccosh(scale**-2.0) / 2, rel=1e-12)


def test_activation_phase_over_log_scale_is_one_with_a_correction():
    for scale in (1e-4, 1e-20, 1e-300):
        size = -np.log(scale)
        assert activation_phase(scale) / size == pytest.approx(1 + np.log(2) / (2 * size), rel=1e-14 + scale**4)


@pytest.mark.parametrize("scale", [0.0, 1.0, 2.0, -1.0, np.nan, np.inf])
def test_a_scale_out_of_range_is_named(scale):
    with pytest.raises(InputError) as caught:
        activation_phase(scale)
    assert caught.value.argument == "scale"


@pytest.mark.parametrize("utility", [-1e-3, np.nan, np.inf])
def test_a_utility_that_nothing_accumulates_is_named(utility):
    with pytest.raises(InputError) as caught:
        signed_phase(utility)
    assert caught.value.argument == "utility"
