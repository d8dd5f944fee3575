from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory.transfer import transfer_error, transfer_speed

times = np.linspace(0, 2, 6)


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def integrated_error(first, new_map, rate):
    """The loss of a readout from zero, by gradient flow on its weights."""
    shape = (first.shape[1], new_map.shape[1])

    def velocity(_, readout):
        return -rate * (first.T @ (first @ readout.reshape(shape) - new_map)).ravel()

    path = solve_ivp(velocity, (0, times[-1]), np.zeros(shape).ravel(), "DOP853", times, rtol=1e-12, atol=1e-14).y.T
    return np.sum((first @ path.reshape(-1, *shape) - new_map) ** 2, axis=(1, 2)) / 2


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.sampled_from([(3, 3, 1), (4, 2, 2), (2, 5, 1)]), st.integers(0, 10**6), st.floats(0.3, 2))
def test_error_agrees_with_direct_integration(shape, seed, rate):
    inputs, width, outputs = shape
    draw = np.random.default_rng(seed)
    first, new_map = draw.normal(size=(inputs, width)), draw.normal(size=(inputs, outputs))
    solution = transfer_error(first, new_map, times, second_rate=rate)
    # The integrator keeps 12 digits of each step.
    np.testing.assert_allclose(solution.error, integrated_error(first, new_map, rate), atol=1e-9)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6))
def test_error_falls_from_the_power_of_the_targets_to_what_the_features_cannot_express(seed):
    draw = np.random.default_rng(seed)
    first, new_map = draw.normal(size=(4, 2)), draw.normal(size=(4, 2))
    solution = transfer_error(first, new_map, np.array([0.0, 0.1, 1.0, 1e3, 1e9]))
    best, *_ = np.linalg.lstsq(first, new_map)
    np.testing.assert_allclose(solution.floor, np.sum((new_map - first @ best) ** 2) / 2, rtol=1e-9)
    np.testing.assert_allclose(solution.error[0], np.sum(new_map**2) / 2, rtol=1e-12)
    np.testing.assert_allclose(solution.error[-1], solution.floor, rtol=1e-12)
    assert np.all(np.diff(solution.error) <= 1e-12)


def test_each_input_direction_is_learned_at_its_own_speed():
    first = np.diag([2.0, 1.0, 0.0])
    for direction, speed in zip(np.eye(3), [4.0, 1.0, 0.0], strict=True):
        solution = transfer_error(first, direction[:, None], times)
        np.testing.assert_allclose(solution.error, np.exp(-2 * speed * times) / 2, rtol=1e-12)


@pytest.mark.slow
def test_features_that_are_zero_up_to_rounding_express_nothing():
    first = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-16]])
    solution = transfer_error(first, np.array([[1.0], [-1.0]]), np.array([1e12]))
    np.testing.assert_allclose([solution.floor, *solution.error], 1.0, rtol=1e-12)
    zero = transfer_error(np.zeros((2, 2)), np.ones((2, 1)), times)
    np.testing.assert_array_equal([zero.floor, *zero.error], 1.0)


def test_speed_is_that_of_the_converged_first_layer():
    target_map, balance = np.array([[1.0, 0.3], [-0.2, 2.0]]), -0.8
    # W₁ W₁ᵀ = √(ΣΣᵀ + λ²/4) − λ/2 after convergence of a square network.
    squares, directions = np.linalg.eigh(target_map @ target_map.T)
    speeds = np.sqrt(squares + balance**2 / 4) - balance / 2
    np.testing.assert_allclose(transfer_speed(np.sqrt(squares), balance), speeds, rtol=1e-12)
    first = directions * np.sqrt(speeds)
    new_map = directions[:, :1]
    np.testing.assert_allclose(
        transfer_error(first, new_map, times).error, np.exp(-2 * speeds[0] * times) / 2, rtol=1e-12
    )


@pytest.mark.parametrize(
    ("balance", "expected"),
    [(0.0, [2.0, 1e-3, 0.0]), (-1e9, [1e9, 1e9, 1e9]), (1e9, [4e-9, 1e-15, 0.0])],
)
def test_speed_in_the_limits_of_the_balance(balance, expected):
    # Corrections are of order (s/λ)².
    np.testing.assert_allclose(transfer_speed(np.array([2.0, 1e-3, 0.0]), balance), expected, rtol=1e-12)


@settings(max_examples=12, deadline=None)
@given(st.floats(0, 5), st.floats(-5, 5))
def test_speeds_of_both_layers_multiply_to_the_square_of_the_strength(strength, balance):
    # The second layer has the speed of the first at the opposite balance, and W₁ W₂ has the strength s.
    speeds = transfer_speed(strength, balance), transfer_speed(strength, -balance)
    np.testing.assert_allclose(speeds[0] * speeds[1], strength**2, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(speeds[1] - speeds[0], balance, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_derivatives_of_the_speed_are_finite():
    for strength, balance in [(1.0, 0.5), (1.0, -0.5), (1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (0.0, 0.0)]:
        gradient = jax.grad(transfer_speed, (0, 1))(strength, balance)
        assert np.all(np.isfinite(gradient)), (strength, balance)
    np.testing.assert_allclose(jax.grad(transfer_speed)(1.0, 0.5), 1 / np.hypot(1, 0.25), rtol=1e-12)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"first": np.full((2, 2), np.nan)}, "first"),
        ({"new_map": np.full((2, 1), np.inf)}, "new_map"),
        ({"new_map": np.ones((3, 1))}, "new_map"),
        ({"times": np.array([-1.0])}, "times"),
        ({"second_rate": 0.0}, "second_rate"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, name):
    with pytest.raises(InputError) as refusal:
        transfer_error(**{"first": np.eye(2), "new_map": np.ones((2, 1)), "times": times} | arguments)
    assert refusal.value.argument == name


def test_bad_balances_and_strengths_are_refused_by_name():
    with pytest.raises(InputError) as refusal:
        transfer_speed(1.0, np.nan)
    assert refusal.value.argument == "balance"
    with pytest.raises(InputError) as refusal:
        transfer_speed(np.inf, 1.0)
    assert refusal.value.argument == "strength"


@pytest.mark.slow
def test_values_outside_the_domain_give_nan_where_they_are_traced():
    error = jit(lambda first, times, rate: transfer_error(first, np.ones((2, 1)), times, second_rate=rate))
    found = error(np.eye(2), np.array([1.0, -1.0]), 1.0)
    assert np.isnan(found.error).tolist() == [False, True]
    assert np.isfinite(found.floor)
    for outside in ((np.eye(2) * np.nan, np.array([1.0]), 1.0), (np.eye(2), np.array([1.0]), 0.0)):
        assert all(np.isnan(each).all() for each in error(*outside))
    assert np.isnan(jit(transfer_speed)(1.0, -np.inf))


def test_the_slope_of_the_speed_at_balance_zero_is_that_of_both_sides():
    # d/dλ [√(s² + λ²/4) − λ/2] = −½ at λ = 0, d/ds = 1.
    with jax.enable_x64(True):
        assert jax.grad(transfer_speed, argnums=(0, 1))(1.5, 0.0) == (1.0, -0.5)
