from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import hermite_e
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory.staircase.multi_index import (
    information_exponent,
    overlap_time,
    quadratic_index_staircase,
    utility_polynomial,
)

# Single index.


def test_the_utility_is_the_gaussian_expectation():
    activation, link = [0.3, -1.0, 0.5, 0.2], [1.0, 0.4, -0.7, 0.3, 9.0]
    coefficients = utility_polynomial(activation, link)
    nodes, weights = hermite_e.hermegauss(20)
    u, v = np.meshgrid(nodes, nodes)
    for m in (-0.6, 0.0, 0.3, 0.9):
        values = hermite_e.hermeval(u, activation) * hermite_e.hermeval(m * u + np.sqrt(1 - m**2) * v, link)
        expected = weights @ values @ weights / (2 * np.pi)
        # The quadrature is exact to degree 39; rounding remains.
        np.testing.assert_allclose(np.polynomial.polynomial.polyval(m, coefficients), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("coefficients", "exponent"), [([0, 1], 1), ([5, 0, 0, 2, 1], 3), (hermite_e.poly2herme([0, 0, 1]), 2)]
)
def test_the_information_exponent_is_the_first_order_that_is_there(coefficients, exponent):
    assert information_exponent(coefficients) == exponent


CLOSED = {
    1: lambda m: math.atanh(m),
    2: lambda m: math.log(m / math.sqrt(1 - m**2)) / 2,
    3: lambda m: (math.atanh(m) - 1 / m) / 3,
}


@pytest.mark.parametrize("initial", [1e-12, 1e-3, 0.2])
@pytest.mark.parametrize("order", CLOSED)
def test_the_time_of_one_power_is_an_elementary_function(order, initial):
    utility = np.eye(order + 1)[order]
    expected = CLOSED[order](0.95) - CLOSED[order](initial)
    np.testing.assert_allclose(overlap_time(utility, initial, 0.95), expected, rtol=1e-9)


def test_the_time_is_that_of_the_flow_on_the_sphere():
    activation, link = [0.0, 0.2, 1.0, 0.5], [0.0, 0.3, 1.0, 1.0]
    slope = np.polynomial.Polynomial(utility_polynomial(activation, link)).deriv()
    target = np.array([1.0, 0.0, 0.0, 0.0])
    start = np.array([0.1, 0.5, -0.7, 0.2])
    start /= np.linalg.norm(start)

    def velocity(_, w):
        return slope(w @ target) * (target - (w @ target) * w)

    time = overlap_time(utility_polynomial(activation, link), start[0], 0.9)
    end = solve_ivp(velocity, (0, time), start, rtol=1e-10, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(end[0], 0.9, rtol=1e-8)


@pytest.mark.parametrize(("order", "exponent"), [(1, 0.0), (3, 0.5), (4, 1.0), (5, 1.5)])
def test_escape_takes_a_power_of_the_dimension(order, exponent):
    times = [overlap_time(np.eye(order + 1)[order], d**-0.5, 0.9) for d in (1e6, 1e8)]
    # What is left out is of relative order d^(−1/2), or log(d)/d^(1/2).
    np.testing.assert_allclose(np.log(times[1] / times[0]) / np.log(100), exponent, atol=2e-3)


def test_escape_from_a_quadratic_saddle_takes_the_logarithm_of_the_dimension():
    times = [overlap_time([0, 0, 1.0], d**-0.5, 0.9) for d in (1e4, 1e6, 1e8)]
    # m grows as exp(2 s) from d^(−1/2).
    np.testing.assert_allclose(np.diff(times), np.log(100) / 4, rtol=1e-4)


@pytest.mark.parametrize(
    ("utility", "initial", "final", "argument"),
    [
        ([0, 1.0], 0.0, 0.5, "initial"),
        ([0, 1.0], 0.6, 0.5, "final"),
        ([0, 1.0], 0.5, 1.0, "final"),
        ([0, -1.0], 0.1, 0.5, "utility"),
        ([1.0], 0.1, 0.5, "utility"),
        # The slope vanishes at 0.5.
        ([0, 1.0, -1.0], 0.1, 0.9, "utility"),
        ([], 0.1, 0.9, "utility"),
        ([np.nan, 1.0], 0.1, 0.9, "utility"),
    ],
)
def test_an_overlap_that_is_not_reached_is_refused(utility, initial, final, argument):
    with pytest.raises(InputError) as refusal:
        overlap_time(utility, initial, final)
    assert refusal.value.argument == argument


def test_links_without_a_direction_are_refused():
    for bad in ([], [1.0], [1.0, 0.0]):
        with pytest.raises(InputError):
            information_exponent(bad)
    with pytest.raises(InputError):
        utility_polynomial([1.0], [])


# Several indices, quadratic network.

positive = st.lists(st.floats(0.05, 2.0), min_size=1, max_size=5)


def population_loss(g, learned, coefficients):
    error = g.copy()
    error[learned] -= coefficients
    return np.sum(error**2) + np.sum(error) ** 2 / 2


@settings(max_examples=12, deadline=None)
@given(strengths=positive)
def test_each_level_is_the_least_loss_of_the_directions_learned(strengths):
    g = np.sort(strengths)[::-1]
    steps = quadratic_index_staircase(strengths, scale=1e-6)
    np.testing.assert_allclose(steps.levels[0], population_loss(g, [], []), rtol=1e-12)
    for strength, level, last in zip(
        steps.features["index_strength"][1], steps.levels[1:], steps.features["index_coefficient"][1], strict=True
    ):
        learned = np.flatnonzero(g >= strength * (1 - 1e-9))
        curvature = 2 * np.eye(len(learned)) + 1
        best = np.linalg.solve(curvature, 2 * g[learned] + g.sum())
        np.testing.assert_allclose(level, population_loss(g, learned, best), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(last, best[-1], rtol=1e-7)


@settings(max_examples=12, deadline=None)
@given(strengths=positive, factor=st.floats(0.1, 10))
def test_the_unit_of_the_target_is_that_of_rate_and_root_loss(strengths, factor):
    one = quadratic_index_staircase(strengths, scale=1e-6)
    other = quadratic_index_staircase(factor * np.array(strengths), scale=1e-6)
    np.testing.assert_allclose(other.accelerated_times * factor, one.accelerated_times, rtol=1e-8)
    np.testing.assert_allclose(other.levels, factor**2 * one.levels, rtol=1e-8, atol=1e-12)
    assert np.all(np.diff(one.accelerated_times) > 0)
    assert np.all(np.diff(one.levels) < 0)


def crossings(g, log_inverse_scale):
    """Times at which aligned neurons a_r (√2 e_r·x)² a_r² … pass half of their final strength, by integration.

    A balanced neuron has ‖w‖² = 2a², so that in the normalised flow (log a_r)' = (2/√3)(2(g_r − μ_r) + tr(G − M)), with
    μ_r = 2 a_r³.
    """

    def velocity(_, log_a):
        # A trial step may go too far.
        error = g - 2 * np.exp(3 * np.minimum(log_a, 2.0))
        return 2 / np.sqrt(3) * (2 * error + error.sum())

    events = [lambda _, log_a, r=r: 2 * np.exp(3 * log_a[r]) - g[r] / 2 for r in np.flatnonzero(g)]
    solution = solve_ivp(
        velocity,
        (0, log_inverse_scale / g[g > 0].min()),
        np.full(len(g), -log_inverse_scale),
        method="LSODA",
        rtol=1e-9,
        atol=1e-9,
        max_step=0.3,
        events=events,
    )
    return np.array([event[0] for event in solution.t_events]), solution.y


def test_times_are_those_of_aligned_neurons():
    g = np.array([1.0, 0.4, 0.15, 0.0])
    (first, _), (second, paths) = crossings(g, 60.0), crossings(g, 120.0)
    slopes = (second - first) / 60
    expected = quadratic_index_staircase(g[:3], scale=1e-10).accelerated_times
    # Overlaps of neighbouring jumps fall exponentially with the logarithm of the scale.
    np.testing.assert_allclose(slopes, expected, rtol=1e-4)
    # The direction on which the target does not depend grows meanwhile, and stays small.
    assert -119 < paths[3].max() < -40


def test_the_numbers_for_three_directions():
    steps = quadratic_index_staircase([0.4, 1.0, 0.15], scale=1e-10)
    np.testing.assert_allclose(steps.accelerated_times, [0.24395082, 0.49487166, 1.15470054], rtol=1e-7)
    np.testing.assert_allclose(steps.levels, [2.38375, 0.28333333, 0.028125, 0], atol=1e-8)
    np.testing.assert_allclose(steps.times, steps.accelerated_times * 10 * np.log(10), rtol=1e-12)
    assert (steps.degree, steps.normalised) == (3, True)


def test_one_direction_is_learned_at_the_inverse_of_its_utility():
    # max a wᵀ(3g)w on the sphere is 3g · 2/(3√3), and the growth rate three times that.
    steps = quadratic_index_staircase([0.7], scale=1e-3)
    np.testing.assert_allclose(steps.accelerated_times, [np.sqrt(3) / (2 * 3 * 0.7)], rtol=1e-12)
    np.testing.assert_allclose(steps.features["growth_rate"][1], 1 / steps.accelerated_times, rtol=1e-12)


def test_equal_strengths_are_learned_together():
    steps = quadratic_index_staircase([0.5, 1.0, 0.5, 0.5], scale=1e-3)
    assert [re.findall(r"[\d.]+", each) for each in steps.learned] == [["1"], ["3", "0.5"]]
    assert len(steps.levels) == 3


@pytest.mark.parametrize(
    ("strengths", "scale", "argument"),
    [
        ([], 0.1, "strengths"),
        ([1.0, -1.0], 0.1, "strengths"),
        ([0.0], 0.1, "strengths"),
        ([np.inf], 0.1, "strengths"),
        ([1.0], 1.0, "scale"),
        ([1.0], 0.0, "scale"),
    ],
)
def test_bad_arguments_of_the_staircase_are_refused_by_name(strengths, scale, argument):
    with pytest.raises(InputError) as refusal:
        quadratic_index_staircase(strengths, scale=scale)
    assert refusal.value.argument == argument
