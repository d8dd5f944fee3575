from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.flows import deep_diagonal_flow, diagonal_flow
from dynascope.results.steps_seen import crossing_times
from dynascope.tasks import Task

GOLDEN = Task(
    [[1, -0.75, -0.15, -0.43], [0.85, 0.94, -0.97, -0.96], [-0.99, 0.96, 0.7, -0.15]], [[-0.39], [-1.15], [1.98]]
)
GOLDEN_LEVELS = np.array([0.89916666666667, 0.21626950035768, 0.11543425308171, 0.02130584129321, 0.0])


def random_task(seed, samples=12, inputs=4):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(samples, inputs))
    beta = draw.choice([-1.0, 1.0], inputs) * 2.0 ** -np.arange(inputs)
    return Task(x, (x @ beta + 0.1 * draw.normal(size=samples))[:, None])


def integrated(task, depth, scale, times):
    """Integrate u and v themselves; returns the losses and the coefficients."""
    x, y = task.inputs, task.targets[:, 0]
    inputs = x.shape[1]

    def velocity(_, weights):
        u, v = weights[:inputs], weights[inputs:]
        pull = x.T @ (y - x @ (u**depth - v**depth)) / len(x)
        return np.concatenate([depth * u ** (depth - 1) * pull, -depth * v ** (depth - 1) * pull])

    start = np.full(2 * inputs, scale)
    path = solve_ivp(velocity, (0, times[-1]), start, "LSODA", times, rtol=1e-11, atol=1e-15).y
    beta = path[:inputs] ** depth - path[inputs:] ** depth
    return np.sum((y[:, None] - x @ beta) ** 2, axis=0) / (2 * len(x)), beta.T


@pytest.mark.parametrize(("depth", "scale"), [(2, 1e-3), (3, 1e-2), (3, 0.3), (4, 0.1), (5, 0.2)])
def test_agrees_with_direct_integration_of_the_weights(depth, scale):
    task, duration = random_task(depth), 3.0 * scale ** (2 - depth) if depth > 2 else 60.0
    times = np.linspace(0, duration, 300)
    losses, maps = integrated(task, depth, scale, times)
    run = deep_diagonal_flow(task, depth=depth, scale=scale, duration=duration)
    # Interpolation between 4000 points; the solver itself is within 1e-6.
    np.testing.assert_allclose(np.interp(times, run["time"], run["loss"]), losses, rtol=0, atol=1e-4 * losses[0])
    np.testing.assert_allclose(run["coefficient"].interp(time=times), maps, rtol=0, atol=1e-2)
    np.testing.assert_allclose(run["coefficient"][-1], maps[-1], rtol=1e-5, atol=1e-7)


def test_golden_times_of_depth_three():
    unit = 1e3 / 3
    run = deep_diagonal_flow(GOLDEN, depth=3, scale=1e-3, duration=14 * unit)
    found = crossing_times(run["time"].to_numpy(), run["loss"].to_numpy(), (GOLDEN_LEVELS[1:] + GOLDEN_LEVELS[:-1]) / 2)
    # Where the loss is halfway between two plateaus. Integration of the weights by an implicit Runge-Kutta method at a
    # tolerance of 1e-9 gives these digits.
    np.testing.assert_allclose(found / unit, [0.900469, 2.263784, 4.700006, 12.689956], rtol=2e-6)
    # The table has .90035 for the first, by a threshold that is not known.
    np.testing.assert_allclose(found / unit, [0.90035, 2.26377, 4.70000, 12.68994], rtol=2e-4)


@pytest.mark.slow
def test_depth_two_is_the_flow_of_products_at_twice_the_pace():
    # β = 2α² sinh 4G and β = (a²/2) sinh 2G are the same with a = 2α and time halved.
    task, scale = random_task(1), 1e-6
    deep = deep_diagonal_flow(task, depth=2, scale=scale, duration=60.0)
    product = diagonal_flow(task, scale=2 * scale, duration=120.0)
    times = np.linspace(0, 60, 200)
    one, other = np.interp(times, deep["time"], deep["loss"]), np.interp(2 * times, product["time"], product["loss"])
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-4 * float(product["loss"][0]))


@pytest.mark.parametrize(("depth", "scale"), [(3, 1e-12), (4, 1e-6), (6, 1e-3), (2, 1e-300)])
def test_the_longest_plateaus_are_crossed(depth, scale):
    # One input with E x² = 1 and E xy = 3: u^(2−D) falls at rate D(D−2)·3, and β leaves zero when it gets to zero.
    task = Task([[1.0], [-1.0]], [[3.0], [-3.0]])
    unit = -np.log(scale) / 2 if depth == 2 else scale ** (2 - depth) / (depth * (depth - 2))
    run = deep_diagonal_flow(task, depth=depth, scale=scale, duration=0.5 * unit)
    rise = float(crossing_times(run["time"].to_numpy(), run["loss"].to_numpy(), np.array([2.25]))[0])
    # The rise takes a time of order one, which at 1e-300 is a thousandth of the wait.
    assert rise == pytest.approx(unit / 3, rel=2e-3 if depth == 2 else 1e-6)
    assert float(run["coefficient"][-1, 0]) == pytest.approx(3.0, rel=1e-6)


def test_lost_loss_is_the_integral_of_the_descent_rate():
    run = deep_diagonal_flow(random_task(0), depth=3, scale=0.05, duration=100.0)
    time, loss, rate = (run[name].to_numpy() for name in ("time", "loss", "descent_rate"))
    fallen = np.concatenate([[0], np.cumsum(np.diff(time) * (rate[1:] + rate[:-1]) / 2)])
    np.testing.assert_allclose(loss[0] - loss, fallen, rtol=0, atol=1e-3 * loss[0])


def test_flipping_and_permuting_inputs_does_the_same_to_the_coefficients():
    task, order, signs = random_task(2), [2, 0, 3, 1], np.array([1.0, -1.0, -1.0, 1.0])
    turned = Task(task.inputs[:, order] * signs, task.targets)
    one, other = (deep_diagonal_flow(each, depth=4, scale=0.1, duration=100.0) for each in (task, turned))
    times = np.linspace(0, 100, 200)
    maps, moved = (run["coefficient"].interp(time=times).to_numpy() for run in (one, other))
    # Different steps of the solver, interpolated.
    np.testing.assert_allclose(moved, maps[:, order] * signs, rtol=0, atol=2e-3)


def test_record_covers_the_run_and_says_what_it_is():
    run = deep_diagonal_flow(random_task(0), depth=3, scale=0.1, duration=50.0, points=500)
    assert run["time"][0] == 0
    assert run["time"][-1] == pytest.approx(50)
    assert run.sizes["time"] <= 500
    assert run.attrs["depth"] == 3
    assert run.attrs["scale"] == 0.1


@pytest.mark.usefixtures("unchecked_types")
def test_bad_arguments_are_named():
    def attempt(**changes):
        usual = {"task": random_task(0), "depth": 3, "scale": 1e-3, "duration": 10.0}
        with pytest.raises(InputError) as caught:
            deep_diagonal_flow(**usual | changes)
        return caught.value.argument

    assert [attempt(scale=bad) for bad in (0.0, -1.0, float("nan"), 1e-13, 1e-200)] == ["scale"] * 5
    assert [attempt(depth=bad) for bad in (1, 0, -3, 2.5)] == ["depth"] * 4
    assert attempt(duration=-1.0) == "duration"
    assert attempt(points=0) == "points"
    assert attempt(tolerance=0.0) == "tolerance"
    assert attempt(task=Task(np.eye(3), np.eye(3))) == "task"
    assert attempt(task=Task(np.eye(3), np.zeros((3, 1)))) == "task"
