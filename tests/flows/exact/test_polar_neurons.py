from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import DivergenceError, InputError
from dynascope.flows import GradientFlow, Solver, diagonal_flow, gradient_flow, polar_flow
from dynascope.networks import BiasedTwoLayer, DiagonalLinear, TwoLayer
from dynascope.tasks import Task

DRAW = np.random.default_rng(0)
INPUTS = DRAW.normal(size=(40, 3))
TASK = Task(INPUTS, np.maximum(INPUTS @ DRAW.normal(size=(3, 2)), 0) @ [[1.0], [-0.7]])
EVEN = Task(INPUTS, INPUTS[:, :1] ** 2 - 0.5 * INPUTS[:, 1:2] ** 2)
TIMES = np.linspace(0.0, 40.0, 200)


def network(activation, width=8):
    return TwoLayer(3, width, 1, activation=activation, seed=3)


def losses(record):
    return np.interp(TIMES, record["time"], record["loss"])


def polar(activation, task=TASK, scale=0.05, **options):
    return polar_flow(task, network(activation), duration=TIMES[-1], scale=scale, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("activation", "task", "normalised"), [("relu", TASK, False), ("quadratic", EVEN, False), ("quadratic", EVEN, True)]
)
def test_it_is_the_gradient_flow_of_the_weights(activation, task, normalised):
    solver = Solver(relative_tolerance=1e-6)
    method = GradientFlow(duration=TIMES[-1], normalised=normalised, solver=solver, save=TIMES)
    exact = gradient_flow(task, network(activation), method, scale=0.05)["loss"].to_numpy()
    assert exact[-1] < 0.5 * exact[0]
    # A step is allowed 1e-5 in direction and log-norm, and there are a few hundred.
    np.testing.assert_allclose(losses(polar(activation, task, normalised=normalised, tolerance=1e-5)), exact,
                               atol=1e-3 * exact[0])  # fmt: skip


@pytest.mark.parametrize("activation", ["relu", "quadratic"])
def test_an_output_bias_is_integrated_with_the_neurons(activation):
    hidden = activation == "relu"
    inner = TwoLayer(3 + hidden, 8, 1, activation=activation, seed=3)
    biased = BiasedTwoLayer(inner, np.array([0.5]), has_hidden_biases=hidden)
    task = Task(INPUTS, np.asarray(TASK.targets) + 0.3)
    method = GradientFlow(duration=TIMES[-1], solver=Solver(relative_tolerance=1e-5), save=TIMES)
    exact = gradient_flow(task, biased, method, scale=0.05)["loss"].to_numpy()
    found = polar_flow(task, biased, scale=0.05, duration=TIMES[-1], tolerance=1e-5)
    np.testing.assert_allclose(losses(found), exact, atol=1e-3 * exact[0])
    with pytest.raises(InputError, match="does not support an output bias"):
        polar_flow(task, biased, scale=0.05, duration=1.0, solver="stiff")


def test_the_error_falls_with_the_tolerance():
    best, *others = (losses(polar("relu", tolerance=tolerance)) for tolerance in (1e-5, 3e-3, 3e-4))
    wrong = [np.abs(each - best).max() / best[0] for each in others]
    assert 3e-2 > wrong[0] > 3 * wrong[1] > 0


def test_a_tiny_start_is_followed_as_well_as_any():
    task = Task(np.eye(2) * 2**0.5, np.array([[4.0], [-1.0]]) * 2**0.5)
    curves = [
        polar_flow(task, DiagonalLinear(2), scale=1e-100, duration=300.0, tolerance=1e-4),
        diagonal_flow(task, scale=1e-100, duration=300.0),
    ]
    times = np.linspace(0, 300, 500)
    one, other = (np.interp(times, curve["time"], curve["loss"]) for curve in curves)
    # The first coordinate is learned at t = 57.7, the second at 231; each to within a thousandth of that.
    for level in (5.0, 0.25):
        crossed = [times[np.argmax(curve < level)] for curve in (one, other)]
        assert crossed[0] == pytest.approx(crossed[1], abs=0.7)


@settings(max_examples=10)
@given(st.floats(0.2, 5.0))
def test_other_units_of_targets_are_other_units_of_time_and_loss(factor):
    times = np.linspace(0, 5, 50)
    here = polar_flow(TASK, network("relu"), scale=0.1, duration=5.0, tolerance=1e-3)
    # With y and θ² in units of the factor the same path is gone in 1/factor of the time.
    scaled = Task(TASK.inputs, factor * TASK.targets)
    there = polar_flow(scaled, network("relu"), scale=0.1 * factor**0.5, duration=5.0 / factor, tolerance=1e-3)
    np.testing.assert_allclose(
        np.interp(times, factor * there["time"], there["loss"] / factor**2),
        np.interp(times, here["time"], here["loss"]),
        rtol=1e-6,
    )


def test_the_loss_never_rises_and_the_rate_of_its_descent_is_its_slope():
    curve = polar("relu", tolerance=1e-4)
    time, loss, rate = (curve[name].to_numpy() for name in ("time", "loss", "descent_rate"))
    assert (np.diff(loss) <= 0).all()
    assert time[0] == 0
    assert time[-1] == TIMES[-1]
    fallen = np.sum((rate[1:] + rate[:-1]) / 2 * np.diff(time))
    assert fallen == pytest.approx(loss[0] - loss[-1], rel=0.01)


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"scale": 0.0}, "scale"),
        ({"duration": -1.0}, "duration"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"points": 0}, "points"),
        ({"max_steps": 0}, "max_steps"),
        ({"network": network("relu").with_neurons(np.zeros((2, 4)))}, "network"),
    ],
)
def test_bad_input_is_named(changed, argument):
    usual = {"network": network("relu"), "task": TASK, "scale": 0.1, "duration": 1.0}
    with pytest.raises(InputError) as error:
        polar_flow(**usual | changed)
    assert error.value.argument == argument


def test_a_flow_of_too_many_steps_is_given_up():
    with pytest.raises(DivergenceError, match=r"max_steps \(100\)"):
        polar("relu", tolerance=1e-6, max_steps=100)


WEIGHTS = {"first": (lambda network: network.first, ("feature", "neuron"))}


@pytest.mark.parametrize(("activation", "task"), [("relu", TASK), ("quadratic", EVEN)])
def test_weights_are_recorded_at_the_requested_times_and_in_the_initial_order(activation, task):
    times = np.array([0.0, 3.0, 11.0, TIMES[-1]])
    found = polar(activation, task, tolerance=1e-5, save=times, statistics=WEIGHTS, scale=0.3)
    with jax.enable_x64(True):
        method = GradientFlow(
            duration=TIMES[-1], save=times, statistics=WEIGHTS, solver=Solver(relative_tolerance=1e-8)
        )
        exact = gradient_flow(task, network(activation), method, scale=0.3)
    np.testing.assert_array_equal(found["time"], times)
    assert found["first"].dims == exact["first"].dims
    assert float(abs(exact["first"][-1] - exact["first"][0]).max()) > 0.3
    for name, limit in (("first", 1e-3), ("loss", 1e-4)):
        np.testing.assert_allclose(found[name], exact[name], atol=limit)
    # The loss is that of the recorded weights.
    curve = polar(activation, task, tolerance=1e-5, scale=0.3)
    np.testing.assert_allclose(np.interp(times, curve["time"], curve["loss"]), found["loss"], atol=1e-3)


@pytest.mark.parametrize("save", [None, list(TIMES)])
def test_it_stops_once_the_loss_has_fallen_to_a_share_of_its_start(save):
    whole, part = (polar("relu", scale=0.5, save=save, until=each) for each in (0.0, 0.1))
    assert float(whole["time"][-1]) == TIMES[-1]
    assert float(part["time"][-1]) < 0.8 * TIMES[-1]
    assert float(part["loss"][-1]) <= 0.1 * float(part["loss"][0]) < float(part["loss"][-1 if save is None else -2]) * 2
    np.testing.assert_allclose(
        part["loss"], np.interp(part["time"], whole["time"], whole["loss"]), rtol=0.02, atol=1e-4
    )


def test_an_output_bias_is_part_of_the_recorded_network():
    biased = BiasedTwoLayer(network("quadratic"), np.array([0.5]), has_hidden_biases=False)
    statistics = {"bias": (lambda network: network.bias, ("target",))}
    options = {"scale": 1.0, "duration": 5.0, "save": [0.0, 5.0], "statistics": statistics, "tolerance": 1e-5}
    found = polar_flow(EVEN, biased, **options)["bias"].to_numpy().ravel()
    with jax.enable_x64(True):
        solver = Solver(relative_tolerance=1e-8)
        exact = gradient_flow(
            EVEN, biased, GradientFlow(duration=5.0, save=[0.0, 5.0], statistics=statistics, solver=solver)
        )["bias"]
    np.testing.assert_allclose(found, exact.to_numpy().ravel(), atol=1e-4)
    assert abs(found[1] - found[0]) > 0.01


@pytest.mark.parametrize("activation", ["relu", "quadratic"])
def test_a_partial_record_ends_where_the_limit_is_reached(activation):
    options = {"tolerance": 1e-4, "save": TIMES, "statistics": WEIGHTS}
    whole, found = polar(activation, **options), polar(activation, **options, max_steps=100, partial=True)
    reached = found.sizes["time"] - 1
    assert 0 < reached < len(TIMES) - 1
    assert TIMES[reached - 1] < float(found["time"][-1]) <= TIMES[reached]
    np.testing.assert_array_equal(found["first"][:reached], whole["first"][:reached])


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"save": [0.0, 2.0]}, "save"),
        ({"save": [0.5, 0.2]}, "save"),
        ({"save": 1}, "save"),
        ({"statistics": {"loss": (lambda network: 0.0, ())}}, "statistics"),
        ({"statistics": {"first": (lambda network: network.first, ())}}, "statistics"),
    ],
)
def test_bad_times_and_statistics_are_named(changed, argument):
    with pytest.raises(InputError) as error:
        polar_flow(TASK, network("relu"), scale=0.1, duration=1.0, **changed)
    assert error.value.argument == argument
