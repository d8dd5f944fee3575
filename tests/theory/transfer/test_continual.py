from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory import LayerRates
from dynascope.theory.transfer import converged_layers, forgetting, lazy_forgetting, reversal_trajectory

times = np.linspace(0, 2, 6)
# Inputs, width, outputs: square, bottleneck, more inputs, more outputs.
shapes = [(3, 3, 3), (3, 1, 2), (3, 2, 2), (2, 2, 3)]


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def integrated_products(first, second, target_map, times, *, rates=LayerRates()):
    """W₁W₂ by gradient flow on the weights."""
    cut = first.size

    def layers(state):
        return state[:cut].reshape(first.shape), state[cut:].reshape(second.shape)

    def velocity(_, state):
        one, two = layers(state)
        error = one @ two - target_map
        return -np.concatenate([(rates.first * error @ two.T).ravel(), (rates.second * one.T @ error).ravel()])

    start = np.concatenate([np.ravel(first), np.ravel(second)])
    states = solve_ivp(velocity, (0, times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-14).y.T
    return np.stack([np.matmul(*layers(state)) for state in states])


def half_square(matrices):
    return np.sum(np.square(matrices), axis=(-2, -1)) / 2


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.sampled_from(shapes), st.floats(-3, 3), st.integers(0, 10**6))
def test_forgetting_agrees_with_direct_integration_on_both_tasks(shape, balance, seed):
    inputs, width, outputs = shape
    draw = np.random.default_rng(seed)
    start, old, new = draw.normal(size=(3, inputs, outputs))
    first, second = map(np.asarray, converged_layers(start, balance, width))
    # Layers with unequal rates are balanced after they are rescaled.
    rates = LayerRates(0.8, 1.3)
    scaled = (first * (0.8 / 1.3) ** 0.25, second * (1.3 / 0.8) ** 0.25)
    expected = integrated_products(*scaled, new, times, rates=rates)
    # Steps that suit every draw, so that there is one program for each shape.
    solution = forgetting(*scaled, old, new, times, rates=rates, steps=4)
    # The integrator keeps 12 digits a step, and directions that grow amplify them by e⁹ or less.
    np.testing.assert_allclose(solution.old_error, half_square(expected - old), atol=1e-7)
    np.testing.assert_allclose(solution.new_error, half_square(expected - new), atol=1e-7)


@pytest.mark.parametrize("balance", [-1.5, 0.0, 1.5])
@pytest.mark.parametrize("shape", [(3, 2, 2), (2, 2, 3), (2, 2, 2)])
def test_converged_layers_are_where_training_ends(shape, balance):
    inputs, width, outputs = shape
    draw = np.random.default_rng(3)
    start, target_map = draw.normal(size=(2, inputs, outputs))
    # Balanced layers cannot change the sign of a determinant, but mirroring an output can.
    if inputs == outputs and np.linalg.det(start) * np.linalg.det(target_map) < 0:
        start[:, 0] *= -1
    state = np.concatenate([np.ravel(layer) for layer in converged_layers(start, balance, width)])
    cut = inputs * width

    def velocity(_, state):
        one, two = state[:cut].reshape(inputs, width), state[cut:].reshape(width, outputs)
        error = one @ two - target_map
        return -np.concatenate([(error @ two.T).ravel(), (one.T @ error).ravel()])

    end = solve_ivp(velocity, (0, 60), state, "DOP853", rtol=1e-10, atol=1e-13).y[:, -1]
    first, second = end[:cut].reshape(inputs, width), end[cut:].reshape(width, outputs)
    expected_first, expected_second = jax.device_get(converged_layers(target_map, balance, width))
    # What a rotation of the hidden neurons leaves unchanged; after this time it is learned to 1e-8 or better.
    np.testing.assert_allclose(first @ first.T, expected_first @ expected_first.T, atol=1e-6)
    np.testing.assert_allclose(second.T @ second, expected_second.T @ expected_second, atol=1e-6)
    np.testing.assert_allclose(first @ second, expected_first @ expected_second, atol=1e-6)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.sampled_from(shapes), st.floats(-3, 3), st.integers(0, 10**6))
def test_converged_layers_are_balanced_and_give_the_best_approximation_of_their_rank(shape, balance, seed):
    inputs, width, outputs = shape
    target_map = np.random.default_rng(seed).normal(size=(inputs, outputs))
    first, second = jax.device_get(converged_layers(target_map, balance, width))
    left, strengths, right = np.linalg.svd(target_map, full_matrices=False)
    best = left[:, :width] * strengths[:width] @ right[:width]
    np.testing.assert_allclose(first @ second, best, atol=1e-12)
    np.testing.assert_allclose(second @ second.T - first.T @ first, balance * np.eye(width), atol=1e-12)


@pytest.mark.slow
def test_layers_wider_than_there_are_modes_keep_the_balance():
    for target_map, balance, width in [(np.ones((3, 1)), -2.0, 3), (np.ones((1, 3)), 2.0, 3), (np.eye(2), 0.0, 5)]:
        first, second = jax.device_get(converged_layers(target_map, balance, width))
        np.testing.assert_allclose(first @ second, target_map, atol=1e-14)
        np.testing.assert_allclose(second @ second.T - first.T @ first, balance * np.eye(width), atol=1e-14)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.floats(-3, 3).filter(lambda balance: abs(balance) > 0.1), st.integers(0, 10**6))
def test_forgetting_ends_at_the_distance_of_the_tasks_whatever_the_balance(balance, seed):
    old, new = np.random.default_rng(seed).normal(size=(2, 2, 2)) + 3 * np.eye(2)
    solution = forgetting(*converged_layers(old, balance, 2), old, new, np.array([0.0, 200.0]))
    np.testing.assert_allclose(solution.old_error[0], 0, atol=1e-12)
    np.testing.assert_allclose(solution.old_error[1], half_square(new - old), rtol=1e-6)
    np.testing.assert_allclose(solution.end, half_square(new - old), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("balance", [-1e3, 1e3])
def test_lazy_limit(balance):
    old, new = np.random.default_rng(1).normal(size=(2, 3, 3))
    late = times / abs(balance)
    exact = forgetting(*converged_layers(old, balance, 3), old, new, late)
    lazy = lazy_forgetting(old, new, late, balance)
    # Corrections are of order s/λ.
    np.testing.assert_allclose(exact.old_error, lazy, atol=1e-2 * float(exact.end))
    np.testing.assert_allclose(lazy[-1], half_square(new - old) * (1 - np.exp(-2.0)) ** 2, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the determinants of the start")  # where λ = 0 is drawn
@settings(max_examples=10, deadline=None)
@given(st.floats(-3, 3), st.integers(0, 10**6))
def test_reversal_is_forgetting_of_a_task_for_its_negative(balance, seed):
    target_map = np.random.default_rng(seed).normal(size=(3, 3))
    solution = forgetting(*converged_layers(target_map, balance, 3), target_map, -target_map, times, steps=4)
    modes = reversal_trajectory(times[:, None], np.linalg.svd(target_map)[1], balance)
    # Near the saddle, at small λ, rounding is amplified by e^(2 s t).
    np.testing.assert_allclose(solution.new_error, np.sum(modes.residual**2, axis=1) / 2, atol=1e-7)


def test_the_layers_can_be_compiled_for_all_balances_at_once():
    target_map = np.diag([2.0, 1.0])
    balances = np.array([-1.0, 0.0, 2.0])
    first, second = jax.device_get(jit(jax.vmap(lambda balance: converged_layers(target_map, balance, 2)))(balances))
    for i, balance in enumerate(balances):
        np.testing.assert_allclose(first[i], converged_layers(target_map, balance, 2)[0], atol=1e-14)
    np.testing.assert_allclose(first @ second, np.broadcast_to(target_map, (3, 2, 2)), atol=1e-14)


@pytest.mark.slow
def test_many_networks_at_once_forget_as_each_on_its_own():
    old, new = np.random.default_rng(2).normal(size=(2, 2, 2))
    layers = [converged_layers(old, balance, 2) for balance in (-1.0, 0.5)]
    first, second = map(np.stack, zip(*layers, strict=True))
    batch = jax.device_get(forgetting(first, second, old, new, times))
    assert batch.old_error.shape == (2, len(times))
    for i, each in enumerate(layers):
        single = forgetting(*each, old, new, times)
        np.testing.assert_allclose(batch.old_error[i], single.old_error, atol=1e-10)
        np.testing.assert_allclose(batch.new_error[i], single.new_error, atol=1e-10)


@pytest.mark.slow
def test_layers_that_are_not_balanced_are_refused_unless_asked_for():
    first, second = np.random.default_rng(0).normal(size=(2, 3, 3))
    with pytest.raises(InputError) as refusal:
        forgetting(first, second, np.eye(3), -np.eye(3), times)
    assert refusal.value.argument == "second"
    with pytest.warns(UserWarning, match="differs from λ I by"):
        rough = forgetting(first, second, np.eye(3), -np.eye(3), times, approximate=True)
    assert np.all(np.isfinite(rough.old_error))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"width": 3}, "width"),  # more than the outputs, with λ > 0
        ({"width": 0}, "width"),
        ({"balance": -1.0, "width": 2}, "width"),  # one of the two unused inputs would be kept
        ({"target_map": np.eye(3)[:, :2], "width": 1}, "width"),  # one of two equal modes would be kept
        ({"balance": np.nan}, "balance"),
        ({"target_map": np.full((3, 1), np.inf)}, "target_map"),
        ({"target_map": np.ones(3)}, "target_map"),
    ],
)
def test_layers_that_do_not_exist_or_are_not_unique_are_refused_by_name(arguments, name):
    with pytest.raises(InputError) as refusal:
        converged_layers(**{"target_map": np.ones((3, 1)), "balance": 1.0, "width": 1} | arguments)
    assert refusal.value.argument == name


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"new_map": np.ones((3, 2))}, "new_map"),
        ({"old_map": np.full((2, 2), np.nan)}, "old_map"),
        ({"times": np.array([-1.0])}, "times"),
    ],
)
def test_bad_tasks_and_times_are_refused_by_name(arguments, name):
    given = {"old_map": np.eye(2), "new_map": np.ones((2, 2)), "times": times} | arguments
    with pytest.raises(InputError) as refusal:
        forgetting(np.eye(2), np.eye(2), **given)
    assert refusal.value.argument == name
    with pytest.raises(InputError) as refusal:
        lazy_forgetting(**given, balance=1.0)
    assert refusal.value.argument == name


@pytest.mark.slow
def test_values_outside_the_domain_give_nan_where_they_are_traced():
    layers = jit(lambda target_map, balance: converged_layers(target_map, balance, 2))
    assert all(np.isfinite(each).all() for each in layers(np.ones((3, 2)), 1.0))
    # At most two neurons for λ > 0 and three for λ < 0.
    assert all(np.isnan(each).all() for each in layers(np.ones((1, 2)), -1.0))
    assert all(np.isnan(each).all() for each in layers(np.ones((3, 2)), np.inf))
    lazy = jit(lambda times, balance: lazy_forgetting(np.eye(2), -np.eye(2), times, balance))
    np.testing.assert_array_equal(np.isnan(lazy(np.array([1.0, -1.0]), 40.0)), [False, True])
    assert np.isnan(lazy(np.array([1.0]), np.inf)).all()
    first, second = jax.device_get(converged_layers(np.eye(2), 0.5, 2))
    both = jit(lambda old, first: forgetting(first, second, old, -np.eye(2), np.array([1.0]), steps=2))
    assert all(np.isfinite(each).all() for each in both(np.eye(2), first))
    assert np.isnan(both(np.eye(2) * np.nan, first).end)
    assert np.isnan(both(np.eye(2), first @ np.diag([1.0, 2.0])).new_error).all()


def test_the_rounding_of_a_target_is_not_taken_for_a_feature_at_small_balances():
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    target = (turn * [5.0, 1.0, 0.0]) @ turn.T
    first, _ = converged_layers(target, balance=1e-6, width=3)
    assert np.linalg.svd(np.asarray(first), compute_uv=False)[2] == pytest.approx(0.0, abs=1e-15)
