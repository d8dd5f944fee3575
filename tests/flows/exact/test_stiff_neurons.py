from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.flows import GradientFlow, gradient_flow, polar_flow
from dynascope.flows.exact.stiff_neurons import Neurons, StiffNeurons
from dynascope.networks import TwoLayer
from dynascope.tasks import Task

DRAW = np.random.default_rng(0)
INPUTS = DRAW.normal(size=(40, 3)) * [1.5, 1.0, 0.5]
TASK = Task(INPUTS, (INPUTS**2 @ [[1.0], [-1.0], [0.5]]) + INPUTS[:, :1] * INPUTS[:, 1:2])
QUADRATIC = TwoLayer(3, 14, 1, activation="quadratic", seed=1)


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("samples", [5, 40], ids=["by samples", "by large neurons"])
def test_an_implicit_step_solves_with_the_jacobian_but_for_what_small_neurons_add(samples):
    # 48 numbers to fit are as many as weights of twelve neurons of four; of fewer there is a system for the samples.
    task = TASK if samples > 12 else Task(INPUTS[:samples], TASK.targets[:samples])
    inputs, targets = np.tile(task.inputs, (2, 1)), np.tile(task.targets, (2, 1))
    frame = jax.tree.map(lambda leaf: jnp.asarray(leaf) if eqx.is_inexact_array(leaf) else leaf, QUADRATIC)
    rows = np.asarray(QUADRATIC.neurons)
    log_norms = np.where(np.arange(14) < 5, -0.5, -12.0)
    state = Neurons(jnp.asarray(rows / np.linalg.norm(rows, axis=1)[:, None]), jnp.asarray(log_norms))
    flow = StiffNeurons(frame, inputs, targets, 5)
    right = jnp.asarray(DRAW.normal(size=rows.shape))

    @jit
    def both():
        jacobian = jax.jacfwd(lambda moving: flow.velocity(moving, state))(state.directions)
        return jacobian.reshape(rows.size, rows.size), flow.inverse(jnp.asarray(20.0), state)(right)

    jacobian, solved = both()
    left = (20 * np.eye(rows.size) - np.asarray(jacobian)) @ np.ravel(solved)
    # The cube of e^-12.
    np.testing.assert_allclose(left, np.ravel(right), rtol=0, atol=1e-11 if samples == 5 else 1e-12)
    assert abs(np.asarray(jacobian)).max() > 1


@pytest.mark.slow
def test_it_agrees_with_the_weights_followed_by_an_implicit_solver():
    small = TwoLayer(3, 5, 1, activation="quadratic", seed=1)
    times = np.concatenate([[0.0], np.geomspace(1.0, 3000, 300)])
    close = gradient_flow(TASK, small, GradientFlow(duration=3000.0, solver="stiff", save=times), scale=1e-2)
    curve = polar_flow(TASK, small, scale=1e-2, duration=3000.0, tolerance=1e-4)
    initial = float(close["loss"][0])
    assert close["loss"][-1] < 0.3 * initial
    off = np.abs(np.interp(times, curve["time"], curve["loss"]) - close["loss"].to_numpy()) / initial
    # Read between the 4000 times that are kept, where the loss falls in a hundredth of the time before.
    assert off.mean() < 1e-4
    assert off.max() < 5e-3


@pytest.fixture(scope="module")
def curves():
    return [polar_flow(TASK, QUADRATIC, scale=1e-4, duration=3e5, tolerance=tolerance) for tolerance in (1e-3, 1e-5)]


@pytest.mark.slow
def test_looser_steps_give_the_same_curve(curves):
    rough, close = (each["loss"].to_numpy() for each in curves)
    times = np.geomspace(100, 3e5, 500)
    off = np.abs(np.interp(times, curves[0]["time"], rough) - np.interp(times, curves[1]["time"], close)) / close[0]
    assert off.mean() < 1e-3
    assert close[-1] < 0.1 * close[0]


@pytest.mark.slow
def test_times_grow_as_the_scale_falls_as_they_do_of_degree_three(curves):
    smaller = polar_flow(TASK, QUADRATIC, scale=1e-5, duration=3e6, tolerance=1e-5)

    def half(curve):
        return np.interp(-0.5, -curve["loss"] / curve["loss"][0], curve["time"])

    # In proportion to one over the scale, but for what happens once a neuron is large.
    assert half(smaller) / half(curves[1]) == pytest.approx(10, rel=0.01)


@pytest.mark.slow
def test_what_takes_too_many_steps_ends_early_if_that_is_asked_for():
    begun = polar_flow(TASK, QUADRATIC, scale=1e-4, duration=3e5, tolerance=1e-3, max_steps=20, partial=True)
    assert 0 < begun["time"][-1] < 3e5
