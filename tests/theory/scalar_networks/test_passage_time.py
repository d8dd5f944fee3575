from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory.scalar_networks.growth import growth_factor
from dynascope.theory.scalar_networks.passage_time import time_to_reach

targets = st.one_of(st.just(0.0), st.floats(-3, 3).filter(lambda s: abs(s) > 1e-3))
sizes = st.one_of(st.just(0.0), st.floats(1e-3, 3))


@jit
@jax.vmap
def gradients(point):
    """Backward and forward."""
    return tuple(derivative(lambda point: time_to_reach(*point))(point) for derivative in (jax.grad, jax.jacfwd))


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


@settings(max_examples=12, deadline=None)
@given(targets, sizes, sizes, st.floats(-300, 0), st.floats(0.1, 0.9))
def test_inverts_the_growth_factor(target, growing, shrinking, log_scale, phase):
    c, d = growing * np.exp(2 * log_scale), shrinking * np.exp(2 * log_scale)
    time = phase * (1 - 2 * log_scale) / (abs(target) + c + d + 1e-3)
    solution = growth_factor(time, target, growing, shrinking, 1.3, log_scale=log_scale)
    theta = float(solution.strength)
    speed = 1.3 * abs(float(solution.residual)) * np.hypot(theta, 2 * np.sqrt(c * d))
    # There is nothing to invert where θ underflows, or where its rounding error is a large step in time.
    assume(abs(theta) > 1e-280)
    rounding = 1e-14 * (abs(theta) + c + d) / speed if speed > 0 else np.inf
    assume(rounding < 1e-3 * time)
    back = float(time_to_reach(theta, target, growing, shrinking, 1.3, log_scale=log_scale, unreachable="infinity"))
    assert back == pytest.approx(time, rel=1e-10, abs=rounding)


@pytest.mark.parametrize("strength", [1e-20, 1e-150, 1e-155, 1e-200, 1e-280])
def test_strengths_whose_squares_vanish_are_reached_as_late_as_they_are(strength):
    # Of s' = s (S − s), for targets far below the start, none, and of the other sign.
    for target in (strength / 10, 0.0, -strength / 1000):
        later = np.log1p(-target / strength) - np.log1p(-target / 0.5)
        expected = -later / target if target else 1 / strength - 2
        assert float(time_to_reach(strength, target, 0.5, 0.0, 1.0)) == pytest.approx(expected, rel=1e-12)


def test_agrees_with_an_integrator_that_stops_at_the_strength():
    target, growing, shrinking, rate = 1.4, 0.02, 0.3, 0.8

    def at_strength(_, log_growth):
        return growing * np.exp(log_growth[0]) - shrinking * np.exp(-log_growth[0]) - 0.9

    def velocity(_, log_growth):
        return rate * (target - growing * np.exp(log_growth) + shrinking * np.exp(-log_growth))

    passage = solve_ivp(velocity, (0, 20), [0.0], "DOP853", rtol=1e-12, atol=1e-13, events=at_strength).t_events[0][0]
    # The integrator keeps twelve digits and its dense output nine.
    np.testing.assert_allclose(time_to_reach(0.9, target, growing, shrinking, rate), passage, rtol=1e-8)


def test_reversal_of_a_learned_mode_golden():
    strength, imbalance = 1.5, 0.2
    omega = np.hypot(strength, imbalance / 2)
    growing, shrinking = (omega + strength) / 2, (omega - strength) / 2
    # The numbers are those of a two-layer mode that has converged to s and is then trained on −s.
    crossing = np.log1p(2 * omega / imbalance) / (2 * omega)
    np.testing.assert_allclose(crossing, 0.922840710953, rtol=1e-10)
    # C is small against D after the fact, so D carries the rounding of ω − s: 12 digits of 16 remain.
    np.testing.assert_allclose(time_to_reach(0.0, -strength, growing, shrinking, 2.0), crossing, rtol=1e-12)
    np.testing.assert_allclose(
        growth_factor(1.0, -strength, growing, shrinking, 2.0).strength, -0.0231718196572, rtol=1e-10
    )


def test_tiny_start_emerges_after_its_logarithm():
    # θ = S/2 at ln(S/C)/(k S) for C → 0, here with C = exp(−1380).
    np.testing.assert_allclose(time_to_reach(0.5, 1.0, 1.0, 0.0, 2.0, log_scale=-690.0), 690.0, rtol=1e-14)
    # From D = 4 C the strength crosses zero when g = 2, long before it grows: t = ln(2)/(k S), whatever the scale.
    np.testing.assert_allclose(time_to_reach(0.0, 1.0, 1.0, 4.0, 2.0, log_scale=-690.0), np.log(2) / 2, rtol=1e-12)


def test_power_law_without_target():
    # r = 0 is approached as 1e-154, whose logarithm costs two of the sixteen digits.
    np.testing.assert_allclose(time_to_reach(0.1, 0.0, 0.5, 0.0, 2.0), (10 - 2) / 2, rtol=1e-12)
    np.testing.assert_allclose(time_to_reach(-0.1, 0.0, 0.0, 0.5, 2.0), (10 - 2) / 2, rtol=1e-12)


@pytest.mark.slow
def test_start_takes_no_time_and_the_limit_for_ever():
    np.testing.assert_array_equal(time_to_reach(np.array([0.3, 2.0]), 2.0, 0.5, 0.2, 1.0), [0, np.inf])
    assert time_to_reach(0.0, 2.0, 0.0, 0.2, 1.0) == np.inf
    assert time_to_reach(0.0, 2.0, 0.0, 0.0, 1.0) == 0


@pytest.mark.parametrize(
    ("strength", "target", "growing", "shrinking"),
    [(0.2, 2.0, 0.5, 0.2), (2.1, 2.0, 0.5, 0.2), (0.1, 2.0, 0.0, 0.2), (0.1, 2.0, 0.0, 0.0), (0.4, 0.0, 0.5, 0.2)],
)
def test_strengths_off_the_path_are_refused(strength, target, growing, shrinking):
    with pytest.raises(InputError, match="which the flow never reaches"):
        time_to_reach(strength, target, growing, shrinking, 1.0)
    assert time_to_reach(strength, target, growing, shrinking, 1.0, unreachable="infinity") == np.inf
    assert jit(time_to_reach)(strength, target, growing, shrinking, 1.0) == np.inf


@pytest.mark.usefixtures("unchecked_types")
def test_unknown_way_to_treat_the_unreachable_is_refused():
    with pytest.raises(InputError) as refusal:
        time_to_reach(0.5, 1.0, 0.5, 0.2, 1.0, unreachable="ignore")
    assert refusal.value.argument == "unreachable"


@pytest.mark.slow
def test_gradients_agree_with_finite_differences():
    points = np.array(
        [
            *([0.7, 1.0, 0.01, 0.3, 1.3], [-0.7, -1.0, 0.3, 0.01, 1.3], [0.7, 1.0, 0.01, 0.0, 1.0]),
            *([0.2, 0.0, 0.5, 0.1, 1.0], [0.3, 1.0, 0.1, 0.2, 0.7]),
        ]
    )
    backward, forward = gradients(points)
    np.testing.assert_allclose(backward, forward, rtol=1e-12)
    # D cannot be negative: one-sided differences of second order, whose error is the step squared.
    steps = 1e-4 * np.maximum(np.abs(points), 1e-2)
    moved = points[:, None, None] + np.arange(3)[:, None, None] * steps[:, None, None] * np.eye(5)
    shifted = np.asarray(time_to_reach(*np.moveaxis(moved, -1, 0)))
    differences = (-3 * shifted[:, 0] + 4 * shifted[:, 1] - shifted[:, 2]) / (2 * steps)
    np.testing.assert_allclose(backward, differences, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_gradients_are_finite_where_the_time_is_not():
    points = np.array(
        [[2.0, 2.0, 0.5, 0.2], [0.0, 2.0, 0.0, 0.2], [0.3, 2.0, 0.5, 0.2], [0.0, 0.0, 0.0, 0.0], [5.0, 2.0, 0.5, 0.2]]
    )
    assert all(np.isfinite(each).all() for each in gradients(np.column_stack([points, np.ones(5)])))
