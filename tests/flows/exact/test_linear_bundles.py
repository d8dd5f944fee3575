from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.flows import linear_flow
from dynascope.flows.exact.linear_bundles import LinearBundles
from dynascope.flows.exact.neuron_bundles import prepare_bundles
from dynascope.tasks import Task


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def test_an_implicit_step_solves_with_the_jacobian_of_the_velocity():
    draw = np.random.default_rng(0)
    cross, power = draw.normal(size=(2, 3)), np.array([0.1, 2.0, 50.0])
    flow = LinearBundles(cross, power, np.asarray(4.0), np.eye(2), np.eye(3)[:, :2], np.zeros(4))
    columns = draw.normal(size=(5, 4))
    state = jnp.asarray(columns / np.linalg.norm(columns, axis=0)), jnp.asarray([0.1, -0.5, -3.0, -400.0])
    right = jnp.asarray(draw.normal(size=(5, 4)))

    @jit
    def both():
        jacobian = jax.jacfwd(lambda moving: flow.velocity(moving, state))(state[0])
        return jacobian.reshape(20, 20), flow.inverse(jnp.asarray(7.0), state)(right)

    jacobian, solved = both()
    np.testing.assert_allclose((7 * np.eye(20) - jacobian) @ np.ravel(solved), np.ravel(right), rtol=0, atol=1e-11)


def test_bundles_are_rotated_apart_once_one_has_outgrown_the_others():
    task = Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5)
    prepared = prepare_bundles(task, np.array([[1.0, 0.5], [0.3, 1.0]]), np.array([[1.0, 0.2], [0.7, 1.0]]), scale=1e-3)
    flow, (columns, sizes) = prepared.flow, tuple(np.asarray(each) for each in prepared.state)
    assert flow.refreshed((columns, sizes + 15))[1][0] is columns
    needs_refresh = jit(lambda flow, state: flow.needs_refresh(state))
    assert not needs_refresh(flow, (columns, sizes + 15))
    grown = columns, sizes + np.array([17.0, 0.0])
    assert needs_refresh(flow, grown)
    refreshed, rotated = flow.refreshed(grown)
    turned, moved = map(np.asarray, rotated)
    assert not needs_refresh(refreshed, (turned, moved))
    both = [(each * np.exp(2 * size)) @ each.T for each, size in (grown, (turned, moved))]
    np.testing.assert_allclose(both[1], both[0], rtol=0, atol=1e-12 * both[0].max())
    assert abs(turned[:, 0] @ turned[:, 1]) < 0.5


@pytest.mark.slow
def test_inputs_in_units_that_differ_by_a_million_are_followed_as_an_implicit_solver_follows_the_weights():
    draw = np.random.default_rng(1)
    x = draw.normal(size=(30, 3)) * [1000.0, 1.0, 1e-3]
    task = Task(x, x @ [[1e-3], [1.0], [500.0]])
    first, second = draw.normal(size=(3, 2)), draw.normal(size=(2, 1))

    def loss(weights):
        learned = weights[:6].reshape(3, 2) @ weights[6:]
        return np.sum((task.inputs @ learned - task.targets[:, 0]) ** 2) / 60

    def velocity(_, weights):
        a, b = weights[:6].reshape(3, 2), weights[6:]
        pull = task.inputs.T @ (task.targets[:, 0] - task.inputs @ (a @ b)) / 30
        return np.concatenate([np.outer(pull, b).ravel(), a.T @ pull])

    start, times = 1e-2 * np.concatenate([first.ravel(), second[:, 0]]), np.geomspace(1e-4, 1e3, 200)
    path = solve_ivp(velocity, (0, 1e3), start, "Radau", times, rtol=1e-8, atol=1e-11).y
    curve = linear_flow(task, first, second, scale=1e-2, duration=1e3, tolerance=1e-6)
    # Interpolated between its steps.
    expected = np.array([loss(weights) for weights in path.T])
    np.testing.assert_allclose(
        np.interp(times, curve["time"], curve["loss"]), expected, rtol=0, atol=1e-4 * expected[0]
    )
    assert expected[-1] < 0.1 * expected[0]
