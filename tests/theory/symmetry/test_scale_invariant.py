from __future__ import annotations

import numpy as np
import pytest
from charged_networks import BATCH_NORM, BATCH_NORM_EPSILON, CHANNELS, RELU, descend
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.symmetry import (
    effective_learning_rate,
    equilibrium_angular_step,
    implicit_rmsprop,
    squared_norm_path,
    unit_gradient,
)


def polar(kappas):
    """The slope of κ · polar angle in the plane, at each step."""
    return lambda point, k: kappas[k] * np.array([-point[1], point[0]]) / (point @ point)


def test_weights_before_a_batch_norm_turn_and_those_with_a_large_epsilon_do_not_only():
    channel = CHANNELS[0] > 0
    weights, slope = RELU.start[channel], BATCH_NORM.gradient(RELU.start)[channel]
    found = unit_gradient(weights, slope)
    np.testing.assert_allclose(found, np.linalg.norm(weights) * slope, rtol=1e-14)
    # Its weights at unit norm have that gradient, and it is orthogonal to them. One of its elements is zero but for the
    # rounding of the samples that it is a sum over, and so is the product: 1e-16 where the elements are 0.1 and less.
    norm = np.linalg.norm(weights)
    at_unit = np.where(channel, RELU.start / norm, RELU.start)
    np.testing.assert_allclose(BATCH_NORM.gradient(at_unit)[channel], found, rtol=1e-12, atol=1e-15)
    assert slope @ weights == pytest.approx(0, abs=1e-15)
    broken = BATCH_NORM_EPSILON.gradient(RELU.start)[channel]
    assert broken @ weights == pytest.approx(-0.000335387677, abs=6e-13)
    with pytest.raises(InputError, match="cosine"):
        unit_gradient(weights, broken)


@pytest.mark.parametrize(
    ("momentum", "decay", "simulated", "law"),
    [(0.0, 0.05, 0.270184740546, 0.270189254077), (0.9, 0.005, 11.284677799546, 11.355328956044)],
)
def test_the_norm_under_a_changing_slope_is_the_published_one(momentum, decay, simulated, law):
    kappas = 1 + 0.8 * np.sin(2 * np.pi * np.arange(3000) / 1500)
    chosen = {"learning_rate": 0.01, "weight_decay": decay, "momentum": momentum}
    run = descend(polar(kappas), np.array([1.2, 0.0]), 3000, **chosen)
    norms = np.sum(run.weights**2, axis=1)
    assert norms[-1] == pytest.approx(simulated, rel=1e-11)
    found = squared_norm_path(1.44, kappas**2, SGD(**chosen))
    # Published with its last digits cut off.
    assert found[-1] == pytest.approx(law, abs=1e-12)
    # At 4ηλ/(1 − β)² = 0.02 the law is off by 3 %, once momentum has its speed.
    np.testing.assert_allclose(found[100:], norms[100:], rtol=0.035 if momentum else 1e-3)


def test_without_decay_the_fourth_power_of_the_norm_grows_by_the_squared_gradients():
    found = squared_norm_path(0.5, np.full(40, 2.0), SGD(0.1, momentum=0.5))
    grown = 0.25 + 2 * 0.1 * 1.5 / 0.125 * 2.0 * 0.1 * np.arange(41)
    np.testing.assert_allclose(found**2, grown, rtol=1e-13)


@given(seed=st.integers(0, 10**6), rate=st.floats(1e-3, 0.3), decay=st.floats(1e-4, 0.3), momentum=st.floats(0, 0.95))
def test_the_direction_is_trained_by_rmsprop(seed, rate, decay, momentum):
    squares = np.random.default_rng(seed).uniform(0.1, 2, 30)
    sgd = SGD(rate, weight_decay=decay, momentum=momentum)
    path = squared_norm_path(0.7, squares, sgd)
    implicit = implicit_rmsprop(sgd)
    moment = 0.7**2 / implicit.squared_norm_per_moment
    for k, square in enumerate(squares):
        moment = implicit.memory * moment + (1 - implicit.memory) * square
        assert path[k + 1] ** 2 == pytest.approx(implicit.squared_norm_per_moment * moment, rel=1e-9)
        effective = effective_learning_rate(path[k + 1], learning_rate=rate, momentum=momentum)
        assert effective == pytest.approx(implicit.learning_rate / np.sqrt(moment), rel=1e-9)
    assert implicit.learning_rate == equilibrium_angular_step(sgd)


def test_norms_and_gradients_of_any_size_are_followed():
    found = squared_norm_path([1e200, 1e-200], [[1e-300, 1e300]], SGD(0.1, weight_decay=0.1))
    assert found[1, 0] == pytest.approx(1e200 * np.exp(-0.02), rel=1e-12)
    assert found[1, 1] == pytest.approx(np.sqrt(0.02 * 0.9801) * 1e150, rel=1e-3)
    np.testing.assert_allclose(unit_gradient([3e200, 4e200], [0.8e-200, -0.6e-200]), [4, -3], rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: unit_gradient([0.0, 0.0], [1.0, 0.0]), "weights"),
        (lambda: unit_gradient([1.0, 0.0], [1.0]), "gradient"),
        (lambda: unit_gradient([1.0, 0.0], [1.0, 1.0]), "gradient"),
        (lambda: squared_norm_path(0.0, [1.0], SGD(0.1)), "initial"),
        (lambda: squared_norm_path(1.0, [-1.0], SGD(0.1)), "squared_gradients"),
        (lambda: squared_norm_path(1.0, [1.0], SGD(0.1, momentum=1.0)), "momentum"),
        (lambda: effective_learning_rate(0.0, learning_rate=0.1), "squared_norm"),
        (lambda: implicit_rmsprop(SGD(0.1, weight_decay=0.0)), "weight_decay"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
