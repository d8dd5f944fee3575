from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory.balanced import product
from dynascope.theory.transfer import converged_layers, joint_transfer

times = np.linspace(0, 2, 5)


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.sampled_from([(3, 2, 2, 1), (2, 2, 2, 2)]), st.floats(-3, 3), st.integers(0, 10**6))
def test_agrees_with_direct_integration_from_a_zero_output(shape, balance, seed):
    inputs, width, outputs, added = shape
    draw = np.random.default_rng(seed)
    old, new = draw.normal(size=(inputs, outputs)), draw.normal(size=(inputs, added))
    first, second = map(np.asarray, converged_layers(old, balance, width))
    target_map, enlarged = np.hstack([old, new]), np.hstack([second, np.zeros((width, added))])
    cut = first.size

    def layers(state):
        return state[:cut].reshape(first.shape), state[cut:].reshape(enlarged.shape)

    def velocity(_, state):
        one, two = layers(state)
        error = one @ two - target_map
        return -np.concatenate([(error @ two.T).ravel(), (one.T @ error).ravel()])

    start = np.concatenate([first.ravel(), enlarged.ravel()])
    states = solve_ivp(velocity, (0, times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-14).y.T
    expected = np.stack([np.matmul(*layers(state)) for state in states])
    # Steps that suit every draw, so that there is one program for each shape.
    solution = joint_transfer(first, second, old, new, times, steps=4)
    # The integrator keeps 12 digits a step, and directions that grow amplify them by e⁹ or less.
    np.testing.assert_allclose(solution.product, expected, atol=1e-7)
    squares = np.sum((expected - target_map) ** 2, axis=1) / 2
    np.testing.assert_allclose(solution.old_error, squares[:, :outputs].sum(axis=1), atol=1e-7)
    np.testing.assert_allclose(solution.new_error, squares[:, outputs:].sum(axis=1), atol=1e-7)


@pytest.mark.slow
def test_starts_with_the_old_task_learned_and_nothing_of_the_new_one():
    old, new = np.diag([2.0, 1.0]), np.array([[1.0], [-3.0]])
    solution = joint_transfer(*converged_layers(old, -1.0, 2), old, new, np.array([0.0, 100.0]))
    np.testing.assert_allclose(solution.product[0], np.hstack([old, 0 * new]), atol=1e-12)
    np.testing.assert_allclose([solution.old_error[0], solution.new_error[0]], [0, 5], atol=1e-12)
    np.testing.assert_allclose([solution.old_error[1], solution.new_error[1]], 0, atol=1e-12)


@pytest.mark.slow
def test_a_new_target_of_zero_changes_nothing():
    old = np.array([[1.0, 0.5], [0.0, -1.0], [0.3, 0.2]])
    first, second = converged_layers(np.ones((3, 2)) + np.eye(3)[:, :2], 0.7, 2)
    solution = joint_transfer(first, second, old, np.zeros((3, 1)), times)
    np.testing.assert_allclose(solution.product[..., :2], product(first, second, old, times), atol=1e-12)
    np.testing.assert_allclose(solution.new_error, 0, atol=1e-12)


@pytest.mark.slow
def test_many_networks_at_once_learn_as_each_on_its_own():
    old, new = np.diag([2.0, 1.0]), np.array([[1.0], [-3.0]])
    layers = [converged_layers(old, balance, 2) for balance in (-1.0, 0.5)]
    first, second = map(np.stack, zip(*layers, strict=True))
    batch = jax.device_get(joint_transfer(first, second, old, new, times))
    for i, each in enumerate(layers):
        single = joint_transfer(*each, old, new, times)
        for found, expected in zip(batch, single, strict=True):
            np.testing.assert_allclose(found[i], expected, atol=1e-10)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"new_map": np.ones((3, 1))}, "new_map"),
        ({"new_map": np.full((2, 1), np.nan)}, "new_map"),
        ({"second": np.ones((2, 3))}, "second"),
        ({"times": np.array([-1.0])}, "times"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, name):
    given = {"first": np.eye(2), "second": np.eye(2), "old_map": np.eye(2), "new_map": np.ones((2, 1)), "times": times}
    with pytest.raises(InputError) as refusal:
        joint_transfer(**given | arguments)
    assert refusal.value.argument == name


@pytest.mark.slow
def test_values_outside_the_domain_give_nan_where_they_are_traced():
    traced = jit(lambda second, new: joint_transfer(np.eye(2), second, np.eye(2), new, np.array([1.0]), steps=2))
    assert all(np.isfinite(each).all() for each in traced(np.eye(2), np.ones((2, 1))))
    assert all(np.isnan(each).all() for each in traced(np.diag([1.0, 2.0]), np.ones((2, 1))))
    assert all(np.isnan(each).all() for each in traced(np.eye(2), np.full((2, 1), np.inf)))
