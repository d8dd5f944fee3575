from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.flows import diagonal_flow
from dynascope.tasks import Task


def random_task(seed, samples=12, inputs=4):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(samples, inputs)) @ np.triu(np.ones((inputs, inputs)) * 0.3 + 0.7 * np.eye(inputs))
    beta = draw.choice([-1.0, 1.0], inputs) * 2.0 ** -np.arange(inputs)
    return Task(x, (x @ beta + 0.1 * draw.normal(size=samples))[:, None])


def integrated(task, scale, times):
    """Integrate u and v themselves; returns the losses and the coefficients."""
    x, y = task.inputs, task.targets[:, 0]
    inputs = x.shape[1]

    def velocity(_, weights):
        u, v = weights[:inputs], weights[inputs:]
        pull = x.T @ (y - x @ (u * v)) / len(x)
        return np.concatenate([v * pull, u * pull])

    start = np.concatenate([np.full(inputs, scale), np.zeros(inputs)])
    path = solve_ivp(velocity, (0, times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-20).y
    beta = path[:inputs] * path[inputs:]
    return np.sum((y[:, None] - x @ beta) ** 2, axis=0) / (2 * len(x)), beta.T


@pytest.fixture(scope="module")
def curve():
    return diagonal_flow(random_task(0), scale=1e-4, duration=120.0)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-1, 1e-3, 1e-4])
@pytest.mark.parametrize("seed", [0, 1])
def test_agrees_with_direct_integration_of_the_weights(scale, seed):
    task, times = random_task(seed), np.linspace(0, 120, 400)
    losses, maps = integrated(task, scale, times)
    run = diagonal_flow(task, scale=scale, duration=120.0)
    # Interpolation between 4000 points; the solver itself is within 1e-8.
    np.testing.assert_allclose(np.interp(times, run["time"], run["loss"]), losses, rtol=0, atol=1e-4 * losses[0])
    np.testing.assert_allclose(run["coefficient"].interp(time=times), maps, rtol=0, atol=1e-2)
    np.testing.assert_allclose(run["loss"][-1], losses[-1], rtol=1e-7)
    np.testing.assert_allclose(run["coefficient"][-1], maps[-1], rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_single_input_follows_its_closed_form_at_any_scale():
    # β = (α²/2) sinh 2G obeys β' = √(4β² + α⁴) (c − β), here with E x² = 1 and c = 3: a logistic once β ≫ α².
    task = Task([[1.0], [-1.0]], [[3.0], [-3.0]])
    for scale in (1e-6, 1e-300):
        # From the start G' = 3, so that α² e^{2G}/4 takes over as the size of the logistic.
        half = (np.log(4 * 3) - 2 * np.log(scale)) / 6
        run = diagonal_flow(task, scale=scale, duration=half + 6)
        time = run["time"].to_numpy()
        expected = 3 / (1 + np.exp(np.clip(6 * (half - time), -700, 700)))
        # Interpolated between steps of up to two e-folds; the loss better, because its slope is known.
        np.testing.assert_allclose(run["coefficient"][:, 0], expected, rtol=0, atol=6e-3)
        np.testing.assert_allclose(run["loss"], (3 - expected) ** 2 / 2, rtol=0, atol=1e-3)


def test_lost_loss_is_the_integral_of_the_descent_rate(curve):
    # A check of the loss against its slope, which is computed from the weights and not from the loss.
    time, loss, rate = (curve[name].to_numpy() for name in ("time", "loss", "descent_rate"))
    fallen = np.concatenate([[0], np.cumsum(np.diff(time) * (rate[1:] + rate[:-1]) / 2)])
    np.testing.assert_allclose(loss[0] - loss, fallen, rtol=0, atol=1e-3 * loss[0])


def test_loss_is_that_of_the_coefficients(curve):
    task = random_task(0)
    residual = task.targets.T - curve["coefficient"].to_numpy() @ task.inputs.T
    losses = np.sum(residual**2, axis=1) / (2 * task.samples)
    np.testing.assert_allclose(curve["loss"], losses, rtol=0, atol=1e-2 * losses[0])
    np.testing.assert_allclose(curve["loss"][[0, -1]], losses[[0, -1]], rtol=1e-9)


def test_flipping_and_permuting_inputs_does_the_same_to_the_coefficients(curve):
    task, order, signs = random_task(0), [2, 0, 3, 1], np.array([1.0, -1.0, -1.0, 1.0])
    turned = diagonal_flow(Task(task.inputs[:, order] * signs, task.targets), scale=1e-4, duration=120.0)
    times = np.linspace(0, 120, 300)
    one, other = (run["coefficient"].interp(time=times).to_numpy() for run in (curve, turned))
    np.testing.assert_allclose(other, one[:, order] * signs, rtol=0, atol=1e-3)


def test_record_covers_the_run_and_says_what_it_is(curve):
    assert curve["time"][0] == 0
    assert curve["time"][-1] == 120
    assert curve.sizes["time"] <= 4000
    assert curve["feature"].to_numpy().tolist() == ["x1", "x2", "x3", "x4"]
    assert curve.attrs["variables"] == "signed phases"
    assert curve.attrs["scale"] == 1e-4


def test_interpolation_selects_few_inputs():
    # Of all β with x β = y, small initialisation finds the one of smallest ℓ1 norm, here with a single entry.
    task = Task([[1.0, 0.8, 0.3, 0.2], [0.5, 0.7, -0.4, 0.1]], [[2.0], [1.0]])
    run = diagonal_flow(task, scale=1e-40, duration=2000.0)
    np.testing.assert_allclose(run["coefficient"][-1], [2.0, 0.0, 0.0, 0.0], atol=1e-6)


def test_bad_arguments_are_named():
    def attempt(**changes):
        with pytest.raises(InputError) as caught:
            diagonal_flow(**{"task": random_task(0), "scale": 1e-3, "duration": 10.0} | changes)
        return caught.value.argument

    assert attempt(scale=0.0) == "scale"
    assert attempt(scale=float("nan")) == "scale"
    assert attempt(duration=-1.0) == "duration"
    assert attempt(points=0) == "points"
    assert attempt(tolerance=0.0) == "tolerance"
    assert attempt(task=Task(np.eye(3), np.eye(3))) == "task"
    assert attempt(task=Task(np.eye(3), np.zeros((3, 1)))) == "task"
