from __future__ import annotations

import time

import jax
import numpy as np
import pytest

from dynascope.networks import MLP, DeepLinear
from dynascope.prediction.lazy_or_rich.jax_network import JaxNetwork
from dynascope.prediction.lazy_or_rich.trained_kernel import kernel_movement
from dynascope.probes.kernel import kernel_distance
from dynascope.training.losses import Loss

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(12, 3))
Y = X @ np.array([[1.0], [-0.5], [0.2]])


def measured(network, targets, *, steps=3000, rate=None):
    made = JaxNetwork(network, X, Loss("squared"), np.arange(len(X)))
    rates = None if rate is None else np.full(len(made.start), rate)
    return kernel_movement(
        made, targets, rates=rates, is_flow=rate is None, steps=steps, deadline=time.monotonic() + 100
    )


def test_the_kernel_of_a_linear_model_does_not_move():
    found = measured(DeepLinear((3, 1)), Y)
    assert found.movement.fitted == found.movement.final == 0
    assert found.removed > 0.99


def test_a_flow_equals_a_loop_of_small_steps():
    first, second = (DRAW.normal(size=shape) * 0.5 for shape in ((3, 6), (6, 1)))
    network = DeepLinear((3, 6, 1))
    with jax.enable_x64(True):
        made = JaxNetwork(network, X, Loss("squared"), np.arange(len(X)))
    first, second = (np.asarray(each, np.float64) for each in network.weights)

    def kernel(first, second):
        # f = x W₁ W₂: ∂f/∂W₁ gives x·x' ‖W₂‖², and ∂f/∂W₂ gives (x W₁)·(x' W₁).
        hidden = X @ first
        return X @ X.T * np.sum(second**2) + hidden @ hidden.T

    start, losses = kernel(first, second), []
    while not losses or losses[-1] > 0.1 * losses[0]:
        residual = X @ first @ second - Y
        losses.append(float(np.mean(residual**2)) / 2)
        signal = residual / len(X)
        first, second = first - 1e-3 * X.T @ signal @ second.T, second - 1e-3 * (X @ first).T @ signal
    expected = kernel_distance(start, kernel(first, second))
    assert measured(network, Y).movement.fitted == pytest.approx(float(expected), rel=1e-2)
    assert made.kernel(made.start, None).reshape(12, 12) == pytest.approx(start)


def test_descent_and_flow_agree_for_small_steps():
    network = MLP((3, 10, 1), activation="tanh")
    flow, descent = measured(network, Y), measured(network, Y, rate=0.01, steps=20_000)
    assert descent.movement.fitted == pytest.approx(flow.movement.fitted, rel=2e-2)
    assert descent.flips == pytest.approx(flow.flips, abs=0.02)


def test_large_steps_are_unstable():
    assert measured(MLP((3, 10, 1), activation="tanh"), Y, rate=30.0).movement.growth > 4


def test_where_the_loss_has_a_floor_most_of_the_removed_loss_counts():
    targets = Y + 5 * DRAW.normal(size=Y.shape)
    network = MLP((3, 4, 1), activation="linear", scale=0.1)
    found = measured(network, targets)
    assert 0.05 < found.removed < 0.99
    assert 0 < found.movement.fitted <= found.movement.final * 1.5
