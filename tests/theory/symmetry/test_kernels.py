from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp
from scipy.linalg import expm

from dynascope.errors import InputError
from dynascope.theory.symmetry import damped_kernels
from dynascope.theory.symmetry.kernels import mode_response

TIMES = np.array([1e-6, 1e-3, 0.3, 0.99, 1.01, 3.0, 30.0])
PUBLISHED = [
    (0.5263157894736842, np.sqrt(0.04 / 0.19), [0.924916860231, 0.386902303694], [0.597345319205, 0.468116520479]),
    (0.2, 1.5, [0.178604552003, 0.195496727116], [0.548787278125, 0.225859579115]),
    (0.7, 0.7, [0.844195016445, 0.135888225400], [0.496585303791, 0.150986917112]),
]


@pytest.mark.parametrize(("damping", "frequency", "position", "velocity"), PUBLISHED)
def test_over_under_and_critical_damping_give_the_published_kernels(damping, frequency, position, velocity):
    found = damped_kernels([1.0, 5.0], damping=damping, frequency=frequency)
    np.testing.assert_allclose(found.position, position, rtol=0, atol=6e-13)
    np.testing.assert_allclose(found.velocity, velocity, rtol=0, atol=6e-13)
    np.testing.assert_allclose(found.lost, 1 - np.array(position), rtol=0, atol=6e-13)


@pytest.mark.parametrize(("damping", "frequency"), [(0.5, 0.45), (0.2, 1.5), (0.7, 0.7), (3.0, 0.1), (0.0, 2.0)])
def test_they_solve_the_equation_of_the_oscillator(damping, frequency):
    def motion(_, state):
        return state[1], -2 * damping * state[1] - frequency**2 * state[0]

    times = np.linspace(0, 8, 9)
    for start, name in (((1, 0), "position"), ((0, 1), "velocity")):
        path = solve_ivp(motion, (0, 8), start, "DOP853", times, rtol=1e-12, atol=1e-13).y[0]
        found = getattr(damped_kernels(times, damping=damping, frequency=frequency), name)
        np.testing.assert_allclose(found, path, rtol=0, atol=1e-11)


@given(time=st.floats(0, 20), damping=st.floats(0, 3), frequency=st.floats(0, 3))
def test_they_are_the_exponential_of_the_matrix(time, damping, frequency):
    found = damped_kernels(time, damping=damping, frequency=frequency)
    expected = expm(time * np.array([[0.0, 1.0], [-(frequency**2), -2 * damping]]))[0]
    # The exponential of a matrix of norm 180 loses digits of its own.
    np.testing.assert_allclose([found.position, found.velocity], expected, rtol=1e-9, atol=1e-11)
    assert found.position + found.lost == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("gap", [0.0, 1e-15, -1e-15, 1e-10, -1e-10, 1e-5, -1e-5])
def test_nearly_critical_damping_loses_no_digits(gap):
    found = damped_kernels([2.0], damping=0.7, frequency=0.7 * (1 + gap))
    # What the gap moves is of its first order.
    tolerance = 1e-14 + abs(gap)
    assert found.velocity == pytest.approx(2 * np.exp(-1.4), rel=2 * tolerance)
    assert found.position == pytest.approx(2.4 * np.exp(-1.4), rel=2 * tolerance)


def test_what_a_flat_mode_loses_is_known_to_all_digits():
    # Displacements 2 B (1 − h) of modes of curvature ρ, with B = η s/(2 S (1 − β) ρ).
    rate, momentum, noise, batch = 0.05, 0.9, 0.7, 8
    damping = (1 - momentum) / (rate * (1 + momentum))
    # The last by arithmetic of sixty digits: 0.255001512919, which is published, has lost three to cancellation.
    for curvature, published in ((2.0, 0.014144969942), (0.1, 0.219501938087), (1e-6, 0.2550015129215402)):
        frequency = np.sqrt(2 * curvature / (rate * (1 + momentum)))
        variance = rate * noise / (2 * batch * (1 - momentum) * curvature)
        found = damped_kernels(1.0, damping=damping, frequency=frequency)
        assert 2 * variance * found.lost == pytest.approx(published, rel=1e-14 if curvature < 0.1 else 3e-11)


@given(logarithm=st.floats(-12, -0.6), ratio=st.floats(0, 3))
def test_early_losses_are_of_second_order(logarithm, ratio):
    time = 10**logarithm
    found = damped_kernels(time, damping=ratio, frequency=1.0)
    # 1 − h = t²/2 − γ t³/3 + …, whose next terms are of order (γ t)².
    expected = time**2 / 2 - ratio * time**3 / 3
    assert found.lost == pytest.approx(expected, rel=1e-14 + (1 + 4 * ratio**2) * time**2)
    assert found.lost > 0


def test_series_and_closed_form_meet():
    for damping, frequency in ((1.0, 0.3), (0.2, 1.0), (1.0, 1.0)):
        before, after = damped_kernels([0.3 * (1 - 1e-9), 0.3 * (1 + 1e-9)], damping=damping, frequency=frequency).lost
        # A difference of 1e-9 in time, of a loss of second order, and the cancellation of the closed form.
        assert after == pytest.approx(before, rel=1e-8)


def test_late_times_and_huge_rates_overflow_nowhere():
    found = damped_kernels([1e6, 1e300], damping=1e5, frequency=1e-3)
    # The slow rate is ω²/2γ = 5e-12.
    np.testing.assert_allclose(found.position, [np.exp(-5e-6), 0.0], rtol=1e-12)
    fast = damped_kernels([1.0], damping=1e200, frequency=1e190)
    assert fast.position == 0
    assert np.isfinite(fast.velocity).all()


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


@pytest.mark.parametrize(
    ("changes", "argument"),
    [({"times": -1.0}, "times"), ({"damping": -1.0}, "damping"), ({"frequency": np.nan}, "frequency")],
)
def test_bad_input_is_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        damped_kernels(**{"times": 1.0, "damping": 1.0, "frequency": 1.0} | changes)
    assert caught.value.argument == argument
