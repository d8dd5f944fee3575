from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.flows import linear_flow
from dynascope.flows.exact.orthogonal_bundles import orthogonal_bundles
from dynascope.tasks import Task

seeds = st.integers(0, 10**6)


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def random_task(seed, inputs=3, outputs=2):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(20, inputs)) * np.linspace(1.5, 0.7, inputs)
    return Task(x, x @ draw.normal(size=(inputs, outputs)) + 0.2 * draw.normal(size=(20, outputs)))


def random_start(seed, width=5, inputs=3, outputs=2):
    draw = np.random.default_rng(seed)
    return draw.normal(size=(inputs, width)) / 2, draw.normal(size=(width, outputs)) / 2


def loss_at(curve, times):
    return np.interp(times, curve["time"], curve["loss"])


def integrated_losses(task, first, second, scale, times):
    """Integrate the weights themselves."""
    split = first.size

    def layers(weights):
        return weights[:split].reshape(first.shape), weights[split:].reshape(second.shape)

    def velocity(_, weights):
        a, b = layers(weights)
        error = (task.targets - task.inputs @ a @ b) / task.samples
        return np.concatenate([(task.inputs.T @ error @ b.T).ravel(), (a.T @ task.inputs.T @ error).ravel()])

    start = scale * np.concatenate([first.ravel(), second.ravel()])
    path = solve_ivp(velocity, (0, times[-1]), start, "DOP853", times, rtol=1e-11, atol=1e-16).y
    outputs = [task.inputs @ a @ b for a, b in map(layers, path.T)]
    return np.array([np.sum((each - task.targets) ** 2) / (2 * task.samples) for each in outputs])


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-2, 1e-4])
@pytest.mark.parametrize("seed", [0, 1])
def test_agrees_with_direct_integration_of_the_weights(scale, seed):
    task, start = random_task(seed), random_start(seed)
    times = np.linspace(0, 25, 200)
    curve = linear_flow(task, *start, scale=scale, duration=25.0)
    # Linear interpolation between 4000 points; the solver itself is within 1e-8.
    integrated = integrated_losses(task, *start, scale, times)
    np.testing.assert_allclose(loss_at(curve, times), integrated, rtol=0, atol=2e-4 * task.target_power)
    np.testing.assert_allclose(curve["loss"][-1], integrated[-1], rtol=1e-8)


@pytest.fixture(scope="module")
def curve():
    return linear_flow(random_task(0), *random_start(0), scale=1e-6, duration=40.0)


@pytest.mark.slow
def test_lost_loss_is_the_integral_of_the_descent_rate(curve):
    # A check of the loss against its slope, which is computed from the weights and not from the loss.
    time, loss, rate = (curve[name].to_numpy() for name in ("time", "loss", "descent_rate"))
    fallen = np.concatenate([[0], np.cumsum(np.diff(time) * (rate[1:] + rate[:-1]) / 2)])
    np.testing.assert_allclose(loss[0] - loss, fallen, rtol=0, atol=1e-3 * loss[0])


@pytest.mark.slow
def test_record_covers_the_run_and_says_what_it_is(curve):
    assert curve["time"][0] == 0
    assert curve["time"][-1] == 40
    assert curve.sizes["time"] <= 4000
    assert np.all(np.diff(curve["loss"]) <= 0)
    assert curve.attrs["variables"] == "neuron bundles"
    assert curve.attrs["scale"] == 1e-6


@pytest.mark.slow
def test_modes_end_at_least_squares(curve):
    task = random_task(0)
    left, _, right = np.linalg.svd(task.cross_moment, full_matrices=False)
    learned = np.linalg.lstsq(task.inputs, task.targets, rcond=None)[0].T
    np.testing.assert_allclose(curve["mode_strength"][-1], np.einsum("ck,cd,kd->k", left, learned, right), rtol=1e-6)
    assert float(curve["mode_strength"][0, 0]) < 1e-11


@pytest.mark.slow
def test_rotating_neurons_changes_nothing(curve):
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))
    first, second = random_start(0)
    turned = linear_flow(random_task(0), first @ turn, turn.T @ second, scale=1e-6, duration=40.0)
    times = np.linspace(0, 40, 300)
    np.testing.assert_allclose(
        loss_at(turned, times), loss_at(curve, times), rtol=0, atol=1e-4 * float(curve["loss"][0])
    )
    np.testing.assert_allclose(turned["loss"][-1], curve["loss"][-1], rtol=1e-9)


def test_unlearnable_directions_of_the_input_change_nothing(curve):
    # Two more inputs, all three turned together, of which the data span only the old ones.
    task, (first, second) = random_task(0), random_start(0)
    draw = np.random.default_rng(2)
    turn, _ = np.linalg.qr(draw.normal(size=(5, 5)))
    wider = Task(np.pad(task.inputs, ((0, 0), (0, 2))) @ turn, task.targets)
    start = turn.T @ np.vstack([first, draw.normal(size=(2, 5))])
    same = linear_flow(wider, start, second, scale=1e-6, duration=40.0)
    times = np.linspace(0, 40, 300)
    np.testing.assert_allclose(loss_at(same, times), loss_at(curve, times), rtol=0, atol=1e-4 * float(curve["loss"][0]))


@pytest.mark.slow
def test_single_mode_follows_its_logistic_at_any_scale():
    # White inputs, of which the first output needs the first, and the second output none.
    x = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
    task, one = Task(x, x[:, :1] * [3.0, 0.0]), np.sqrt([[0.5, 0.0, 0.0]])
    for scale in (1e-2, 1e-300):
        log_start = 2 * np.log(scale) + np.log(0.5)
        half = (np.log(3) - log_start) / 6
        curve = linear_flow(task, one.T, one[:, :2], scale=scale, duration=half + 6)
        time = curve["time"].to_numpy()
        expected = 3 / (1 + np.exp(np.clip(np.log(3) - log_start - 6 * time, -700, 700)) * (1 - np.exp(log_start) / 3))
        # The balanced start stays balanced, so p = a b grows as p' = 2 p (3 − p). At the solver's steps this holds to
        # 1e-8, between them it is interpolated.
        np.testing.assert_allclose(curve["mode_strength"][:, 0], expected, rtol=0, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, pytest.param(2, marks=pytest.mark.slow), 7, 300])
def test_rank_is_bounded_by_the_width(width):
    task = random_task(3)
    steps = np.linalg.svd(task.targets.T @ task.inputs @ np.linalg.inv(np.linalg.cholesky(task.input_moment).T))[1]
    strengths = (steps / task.samples) ** 2
    curve = linear_flow(task, *random_start(3, width), scale=1e-6, duration=60.0)
    np.testing.assert_allclose(curve["loss"][-1], (task.target_power - strengths[:width].sum()) / 2, rtol=1e-6)


@pytest.mark.slow
def test_copies_of_a_neuron_and_dead_neurons_add_no_rank():
    task, (first, second) = random_task(3), random_start(3, 1)
    alone = linear_flow(task, first, second, scale=2e-6, duration=30.0)
    copies = linear_flow(task, np.repeat(first, 5, 1), np.repeat(second, 5, 0), scale=1e-6, duration=30.0)
    padded = linear_flow(
        task, np.pad(first, ((0, 0), (0, 4))), np.pad(second, ((0, 4), (0, 0))), scale=2e-6, duration=30.0
    )
    for other in (copies, padded):
        np.testing.assert_allclose(other["loss"][-1], alone["loss"][-1], rtol=1e-9)


def second_moment(directions, log_norms):
    return (directions * np.exp(2 * log_norms)) @ directions.T


def orthogonal(directions, log_norms):
    return jax.device_get(orthogonal_bundles((jnp.asarray(directions), jnp.asarray(log_norms))))


@settings(max_examples=12, deadline=None)
@given(seeds, st.sampled_from([0.0, 3.0, 30.0, 600.0]))
def test_bundles_become_orthogonal_without_changing_the_function(seed, spread):
    draw = np.random.default_rng(seed)
    directions = draw.normal(size=(6, 4))
    bundles = directions / np.linalg.norm(directions, axis=0), -spread * draw.uniform(size=4)
    turned, log_norms = orthogonal(*bundles)
    np.testing.assert_allclose(turned.T @ turned, np.eye(4), atol=1e-12)
    before = second_moment(*bundles)
    np.testing.assert_allclose(second_moment(turned, log_norms), before, rtol=0, atol=1e-13 * float(before.max()))


@given(seeds)
def test_volume_of_bundles_is_kept_where_their_norms_underflow(seed):
    # The volume that the neurons span is the product of the orthogonal norms, whatever their ratio.
    draw = np.random.default_rng(seed)
    directions = draw.normal(size=(6, 4))
    directions /= np.linalg.norm(directions, axis=0)
    log_norms = np.array([-900.0, 0.0, -300.0, -600.0])
    _, turned = orthogonal(directions, log_norms)
    log_volume = np.linalg.slogdet(directions.T @ directions)[1] / 2 + log_norms.sum()
    np.testing.assert_allclose(turned.sum(), log_volume, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_copies_stay_finite(count):
    directions, log_norms = orthogonal(np.ones((6, count)) / np.sqrt(6), np.zeros(count))
    np.testing.assert_allclose(second_moment(directions, log_norms), count / 6 * np.ones((6, 6)), rtol=1e-12)


@pytest.mark.slow
def test_bad_arguments_are_named():
    def attempt(**changes):
        first, second = random_start(0)
        usual = {"task": random_task(0), "first": first, "second": second, "scale": 1e-3, "duration": 10.0}
        with pytest.raises(InputError) as caught:
            linear_flow(**usual | changes)
        return caught.value.argument

    assert attempt(scale=0.0) == "scale"
    assert attempt(duration=-1.0) == "duration"
    assert attempt(points=0) == "points"
    assert attempt(tolerance=0.0) == "tolerance"
    assert attempt(first=np.ones((5, 5))) == "first"
    assert attempt(second=np.ones((5, 5))) == "second"
    assert attempt(first=np.full((3, 5), np.nan)) == "first"
    assert attempt(first=np.zeros((3, 5)), second=np.zeros((5, 2))) == "first"
    assert attempt(task=Task(np.eye(3), np.zeros((3, 2)))) == "task"
    assert attempt(task=Task(np.zeros((3, 3)), np.ones((3, 2)))) == "task"
