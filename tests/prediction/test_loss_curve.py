from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dynascope.errors import DivergenceError
from dynascope.flows import GradientFlow, Solver, gradient_flow, polar_flow
from dynascope.networks import DiagonalLinear, LinearAttention, MergedAttention, TwoLayer
from dynascope.prediction.loss_curve import distance_between, loss_curve
from dynascope.tasks import InContextRegression, Task

DRAW = np.random.default_rng(1)
INPUTS = DRAW.normal(size=(60, 4)) * [1.5, 1.0, 0.8, 0.5]
TASK = Task(INPUTS, INPUTS @ DRAW.normal(size=(4, 1)) + 0.3 * DRAW.normal(size=(60, 1)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "network",
    [TwoLayer(4, 10, 1, activation="relu"), TwoLayer(4, 10, 1), DiagonalLinear(4)],
    ids=["relu", "linear", ""],
)
def test_the_stated_error_covers_that_of_the_weights_followed_closely(network):
    curve = loss_curve(TASK, network, scale=1e-2, duration=30.0)
    assert curve is not None
    # Read between so many that lines between them are nearer than a millionth.
    times = np.concatenate([[0.0], np.geomspace(0.03, 30, 8000)])
    close = gradient_flow(
        TASK, network, GradientFlow(duration=30.0, solver=Solver(relative_tolerance=1e-7), save=times), scale=1e-2
    )
    assert close["loss"][-1] < 0.5 * close["loss"][0]
    error = distance_between(curve, close)
    assert error < curve.attrs["error"] < 5e-3


@pytest.mark.slow
def test_where_two_curves_part_at_a_kink_finer_steps_decide():
    draw = np.random.default_rng(54)
    inputs, noise = draw.normal(size=(40, 4)), draw.normal(size=(40, 1))
    targets = inputs[:, :1] - 0.5 * inputs[:, 1:2] + 0.5 * noise
    task = Task(inputs - inputs.mean(axis=0), targets - targets.mean())
    network = TwoLayer(4, 10, 1, activation="relu", seed=54)
    pair = [polar_flow(task, network, scale=1e-8, duration=500.0, tolerance=each) for each in (3e-3, 1.5e-3)]
    curve = loss_curve(task, network, scale=1e-8, duration=500.0)
    close = polar_flow(task, network, scale=1e-8, duration=500.0, tolerance=5e-5)
    assert curve is not None
    # The better of the two is off by five per cent,.
    assert distance_between(pair[1], close) > 0.04
    assert distance_between(curve, close) < 1e-4 < curve.attrs["error"]


def test_other_tasks_and_networks_have_none():
    prompts = InContextRegression([1.0, 0.5], 10.0)
    assert loss_curve(prompts, TwoLayer(2, 3, 1), scale=1e-3, duration=1.0) is None
    assert loss_curve(TASK, lambda x: x, scale=1e-3, duration=1.0) is None


@pytest.mark.slow
@pytest.mark.parametrize("network", [LinearAttention(2, 3), MergedAttention(2, 3)], ids=["", "merged"])
def test_attention_is_followed_in_expectation_over_prompts(network):
    task = InContextRegression([1.0, 0.5], 10.0)
    curve = loss_curve(task, network, scale=1e-2, duration=1e4)
    assert curve is not None
    assert curve.attrs["error"] < 1e-3
    # Of independent inputs the least loss is ½ Σ (σ − σ³/γ).
    variances, moments = np.diag(task.covariance), np.diag(task.context_moment)
    np.testing.assert_allclose(curve["loss"][-1], np.sum(variances - variances**3 / moments) / 2, rtol=1e-3)


@pytest.mark.slow
def test_neurons_of_degree_three_have_one_at_tiny_scales():
    curve = loss_curve(TASK, TwoLayer(4, 10, 1, activation="quadratic"), scale=1e-8, duration=1e11)
    assert curve is not None
    assert curve["time"][-1] == 1e11
    assert curve.attrs["error"] < 1e-3
    assert curve["loss"][-1] < 0.95 * curve["loss"][0]


def test_a_flow_that_cannot_leave_its_start_is_told_and_not_read_as_a_curve(monkeypatch):
    stays = xr.Dataset({"loss": ("time", [0.5])}, {"time": [0.0]})
    monkeypatch.setattr("dynascope.flows.polar_flow", lambda *_, **__: stays)
    task = Task(np.eye(2), [1.0, 2.0])
    with pytest.raises(DivergenceError, match=r"at scale 1e-160, .*: choose a larger scale"):
        loss_curve(task, TwoLayer(2, 3, 1, activation="relu"), scale=1e-160, duration=1.0)


@pytest.mark.parametrize("network", [TwoLayer(4, 10, 1), DiagonalLinear(4)], ids=["linear", ""])
def test_inputs_in_very_different_units_are_followed_to_the_end(network):
    units = Task(INPUTS * [3000.0, 1.0, 1e-2, 1.0], TASK.targets)
    curve = loss_curve(units, network, scale=1e-8, duration=1e5)
    assert curve is not None
    assert curve["time"][-1] == 1e5
    assert curve.attrs["error"] < 1e-3
    least = np.linalg.lstsq(TASK.inputs, TASK.targets, rcond=None)[1][0] / (2 * TASK.samples)
    np.testing.assert_allclose(curve["loss"][-1], least, rtol=1e-3)


def test_the_distance_is_a_mean_over_the_logarithm_of_time():
    def step(time):
        times = np.array([0.0, time, time * (1 + 1e-9), 100.0])
        return xr.Dataset({"loss": ("time", [2.0, 2.0, 0.0, 0.0])}, {"time": times})

    # From 5 on, half of the first time at which anything falls, to 100; they differ from 10 to 20, by all there is.
    assert distance_between(step(20.0), step(10.0)) == pytest.approx(np.log(2) / np.log(20), rel=0.01)
    assert distance_between(step(10.0), step(10.0)) == 0
