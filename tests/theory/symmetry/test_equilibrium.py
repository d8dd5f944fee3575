from __future__ import annotations

import numpy as np
import pytest
from charged_networks import descend
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.symmetry import (
    equilibration_steps,
    equilibrium_angular_step,
    equilibrium_squared_norm,
    equilibrium_squared_norm_from_steps,
    squared_norm_path,
)


def angles(weights):
    units = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    return 2 * np.arcsin(np.linalg.norm(np.diff(units, axis=0), axis=1) / 2)


@pytest.mark.parametrize(
    ("closure", "squared", "rate", "momentum", "norm"),
    [
        ("white", 199.0, 0.2, 0.0, 31.575211606),
        ("white", 199.0, 0.2, 0.9, 99.802228035),
        ("coherent", 1.0, 0.02, 0.0, 0.707106781187),
        ("coherent", 1.0, 0.02, 0.8, 4.743416490253),
    ],
)
def test_the_norms_are_the_published_ones(closure, squared, rate, momentum, norm):
    sgd = SGD(rate, weight_decay=0.02, momentum=momentum)
    # Ten or twelve digits are published.
    tolerance = 6e-10 if closure == "white" else 6e-13
    assert equilibrium_squared_norm(squared, sgd, closure=closure) == pytest.approx(norm, abs=tolerance)


@pytest.mark.parametrize(
    ("rate", "momentum", "angle"),
    [(0.2, 0.9, 0.06488856845), (0.02, 0.0, 0.028284271247), (0.02, 0.8, 0.021081851068)],
)
def test_the_angles_are_the_published_ones(rate, momentum, angle):
    found = equilibrium_angular_step(SGD(rate, weight_decay=0.02, momentum=momentum))
    assert found == pytest.approx(angle, abs=6e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_descent_along_a_constant_slope_ends_at_the_coherent_norm_and_angle(momentum):
    chosen = {"learning_rate": 0.02, "weight_decay": 0.02, "momentum": momentum}
    run = descend(
        lambda point, _: np.array([-point[1], point[0]]) / (point @ point), np.array([1.0, 0.0]), 20000, **chosen
    )
    # The laws are of first order in ηλ = 4e-4.
    tolerance = 2e-4
    norm = run.weights[-1] @ run.weights[-1]
    assert norm == pytest.approx(equilibrium_squared_norm(1.0, SGD(**chosen)), rel=tolerance)
    assert angles(run.weights[-2:])[0] == pytest.approx(equilibrium_angular_step(SGD(**chosen)), rel=tolerance)
    moved = run.weights[-1] - run.weights[-2]
    assert norm == pytest.approx(equilibrium_squared_norm_from_steps(moved @ moved, SGD(**chosen)), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_white_gradients_end_at_the_white_norm_and_the_same_angle(momentum):
    random, size, count = np.random.default_rng(0), 200, 12000
    chosen = {"learning_rate": 0.2, "weight_decay": 0.02, "momentum": momentum}

    def gradient(weights, _):
        drawn, norm = random.normal(size=size), np.linalg.norm(weights)
        unit = weights / norm
        return (drawn - unit * (unit @ drawn)) / norm

    start = np.zeros(size)
    start[0] = 6.0 if momentum == 0 else 10.0
    run = descend(gradient, start, count, **chosen)
    late = run.weights[2000:]
    norms, moved = np.sum(late**2, axis=1), np.sum(np.diff(late, axis=0) ** 2, axis=1)
    # Within 0.2 % in the source of these numbers; ours is a shorter average of norms with a memory of 125 steps.
    assert norms.mean() == pytest.approx(equilibrium_squared_norm(size - 1, SGD(**chosen), closure="white"), rel=0.02)
    assert np.sqrt(np.mean(angles(late) ** 2)) == pytest.approx(equilibrium_angular_step(SGD(**chosen)), rel=0.005)
    assert norms.mean() == pytest.approx(equilibrium_squared_norm_from_steps(moved.mean(), SGD(**chosen)), rel=0.005)


@given(squared=st.floats(1e-3, 1e3), rate=st.floats(1e-3, 0.1), decay=st.floats(1e-3, 0.1), momentum=st.floats(0, 0.9))
def test_the_coherent_norm_is_where_the_path_stands_still_and_the_steps_say_when(squared, rate, decay, momentum):
    sgd = SGD(rate, weight_decay=decay, momentum=momentum)
    norm = equilibrium_squared_norm(squared, sgd)
    path = squared_norm_path([norm, 2 * norm], np.full((20, 2), squared), sgd)
    np.testing.assert_allclose(path[:, 0], norm, rtol=1e-12)
    left = np.exp(-20 / equilibration_steps(sgd))
    assert path[-1, 1] ** 2 / norm**2 - 1 == pytest.approx(3 * left, rel=1e-9, abs=1e-11)
    white = equilibrium_squared_norm(squared, sgd, closure="white")
    apart = (1 + momentum) / (1 - momentum) * (1 - rate * decay / (2 * (1 + momentum)))
    assert (norm / white) ** 2 == pytest.approx(apart, rel=1e-9)


def test_the_steps_of_a_constant_slope_tell_the_same_angle():
    sgd = SGD(0.05, weight_decay=0.01, momentum=0.6)
    angle = equilibrium_angular_step(sgd)
    assert equilibrium_squared_norm_from_steps(angle**2 * 3.0, sgd) == pytest.approx(3.0, rel=1e-13)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: equilibrium_squared_norm(1.0, SGD(0.1, weight_decay=0.0)), "weight_decay"),
        (lambda: equilibrium_squared_norm(1.0, SGD(9.0, weight_decay=1.0), closure="white"), "weight_decay"),
        (lambda: equilibrium_squared_norm(-1.0, SGD(0.1, weight_decay=0.1)), "squared_gradient"),
        (lambda: equilibrium_squared_norm(1.0, SGD(0.1, weight_decay=0.1), closure="grey"), "closure"),
        (
            lambda: equilibrium_squared_norm_from_steps(-1.0, SGD(0.1, weight_decay=0.1)),
            "squared_displacement",
        ),
        (lambda: equilibrium_squared_norm_from_steps(1.0, SGD(0.1, weight_decay=0.0)), "weight_decay"),
        (lambda: equilibrium_angular_step(SGD(0.1, weight_decay=0.0)), "weight_decay"),
        (lambda: equilibrium_angular_step(SGD(0.0, weight_decay=0.1)), "learning_rate"),
        (lambda: equilibration_steps(SGD(0.1, weight_decay=0.1, momentum=1.0)), "momentum"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
