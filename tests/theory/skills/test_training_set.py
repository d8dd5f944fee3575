from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp
from scipy.special import expn

from dynascope.errors import InputError
from dynascope.theory.skills import finite_size_fraction, skill_strength
from dynascope.theory.skills.training_set import from_fraction, to_fraction


def interpolant(features):
    """Coefficients of the interpolant of least norm of a target of one, after multiplying every feature by the skill.

    The first feature is the skill, which has become one, and the others are those beside it.
    """
    return np.linalg.lstsq(features, np.ones(len(features)), rcond=None)[0]


def drawn(draw, count, needed):
    return np.column_stack([np.ones(count), draw.normal(size=(count, needed - 1))])


@pytest.mark.parametrize(("count", "needed"), [(1, 4), (3, 6), (5, 6), (10, 16)])
def test_the_finite_size_law_is_the_mean_over_interpolants_and_so_is_their_loss(count, needed):
    draw = np.random.default_rng(count)
    found = np.array([interpolant(drawn(draw, count, needed)) for _ in range(3000)])
    error = found[:, 0].std() / np.sqrt(3000)
    assert abs(found[:, 0].mean() - finite_size_fraction(count, needed)) < 5 * error
    # For each training set E(f/S − g)² is exactly what is missing of the strength.
    losses = (found[:, 0] - 1) ** 2 + np.sum(found[:, 1:] ** 2, axis=1)
    np.testing.assert_allclose(losses, 1 - found[:, 0], atol=1e-12)


def test_many_features_give_the_correlation_and_not_the_printed_strength():
    draw = np.random.default_rng(0)
    found = np.array([interpolant(drawn(draw, 40, 64))[0] for _ in range(200)])
    error = found.std() / np.sqrt(200)
    # 1/D_c = 1.6 % is the size of the correction to the law of many features; the printed law is off by half.
    assert abs(found.mean() - skill_strength(40, 64)) < 5 * error + 0.016
    assert abs(found.mean() - skill_strength(40, 64, definition="loss_equivalent")) > 0.2


def test_a_network_trained_from_a_small_start_ends_at_the_interpolant():
    target = 5.0
    features = drawn(np.random.default_rng(1), 3, 6)

    def velocity(_, weights):
        a, b = weights[0], weights[1:]
        pull = (target - a * features @ b) @ features / len(features)
        return np.concatenate([[pull @ b], a * pull])

    start = 1e-5 * np.concatenate([[1.0], np.random.default_rng(2).normal(size=6)])
    end = solve_ivp(velocity, (0, 400), start, "LSODA", rtol=1e-9, atol=1e-12).y[:, -1]
    # What is left of the start outside the span of the samples is of its own size.
    np.testing.assert_allclose(end[0] * end[1:], target * interpolant(features), atol=1e-3)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 60), st.integers(1, 49))
def test_the_finite_size_law_is_an_exponential_integral(count, extra):
    z = count / 2
    exact = z * quad(lambda y: np.exp(-z * y) * (1 + y) ** (-extra / 2), 0, np.inf, epsabs=0, epsrel=1e-12)[0]
    np.testing.assert_allclose(finite_size_fraction(count, count + extra), exact, rtol=1e-11)
    # With an even number of missing samples SciPy has it in closed form, to 1e-6 only from order 50.
    np.testing.assert_allclose(
        finite_size_fraction(count, count + 2 * extra), z * np.exp(z) * expn(extra, z), rtol=1e-12
    )


@settings(max_examples=12, deadline=None)
@given(st.floats(1, 500), st.sampled_from(["correlation", "loss_equivalent"]), st.booleans())
def test_strength_grows_from_zero_to_one(needed, definition, finite_size):
    counts = np.linspace(0, 1.2 * needed, 50)
    strength = skill_strength(counts, needed, definition=definition, finite_size=finite_size)
    assert strength[0] == 0
    assert np.all(strength[counts >= needed] == 1)
    # Clipping a count below one half makes no rise there, hence "not below".
    assert np.all(np.diff(strength[1:]) >= -1e-15)
    fraction = to_fraction(strength, definition)
    np.testing.assert_allclose(from_fraction(fraction, definition), strength, atol=1e-15)


def test_both_definitions_have_their_half_points():
    assert skill_strength(400, 800) == 0.5
    np.testing.assert_allclose(skill_strength(600, 800, definition="loss_equivalent"), 0.5, rtol=1e-15)
    # S − √(2 L) with L = ½ S² (1 − φ), at the values of the ledger: S = 5, d/D_c = 5/8.
    np.testing.assert_allclose(5 * skill_strength(40, 64), 3.125, rtol=1e-15)
    np.testing.assert_allclose(5 * skill_strength(40, 64, definition="loss_equivalent"), 1.938138, rtol=1e-6)


def test_the_finite_size_law_tends_to_the_simple_one():
    counts = np.array([1, 200, 799]) * 10
    np.testing.assert_allclose(finite_size_fraction(counts, 8000), counts / 8000, rtol=1e-3)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: skill_strength([-1], 4), "counts"),
        (lambda: skill_strength([np.nan], 4), "counts"),
        (lambda: skill_strength([1], 0.5), "needed"),
        (lambda: finite_size_fraction([1], np.inf), "needed"),
    ],
)
def test_bad_input_is_named(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
