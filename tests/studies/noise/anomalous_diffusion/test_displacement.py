from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from dynascope.compilation import jit
from dynascope.networks import MLP, DeepLinear
from dynascope.studies.noise.anomalous_diffusion.displacement import (
    noise_modes,
    squared_displacements,
    warmed_up,
)
from dynascope.tasks import Labelled, regression
from dynascope.theory import SGD
from dynascope.theory.noise import discrete_stationary_moments, quadratic_loss, stationary_displacement

TRAINING = {"learning_rate": 0.1, "momentum": 0.5, "weight_decay": 0.05, "batch_size": 8}
TASK = regression(samples=60, input_covariance=[1.0, 0.3, 0.1], target_map=np.zeros(3), noise=1.0, exact_moments=True)
DRAW = np.random.default_rng(0)
CLASSES = Labelled(DRAW.normal(size=(30, 4)), DRAW.integers(3, size=30), ("a", "b", "c"))


def linear(rows: np.ndarray) -> list[DeepLinear]:
    return [eqx.tree_at(lambda each: each.weights, DeepLinear((3, 1)), (row[:, None],)) for row in rows]


@pytest.mark.slow
def test_regressions_at_rest_wander_as_far_as_theory_says():
    loss = quadratic_loss(TASK.inputs, TASK.targets, weight_decay=TRAINING["weight_decay"])
    chosen = {"curvature": loss.curvature, "noise": loss.mode_noise, "sgd": SGD(**TRAINING)}
    still = discrete_stationary_moments(**chosen)
    away = DRAW.normal(size=(300, 3)) * np.sqrt(still.position_variance)
    steps = np.array([1, 7, 40])
    with jax.enable_x64(True):
        networks = linear(loss.centre + away @ loss.directions.T)
        found = squared_displacements(TASK, networks, steps, legs=2, **TRAINING)
    expected = stationary_displacement(steps=steps, **chosen)
    # Standard errors of 600 origins with three modes are 3 %; noise that depends on the weights adds a few percent.
    np.testing.assert_allclose(found.mean(axis=0), expected, rtol=0.15)


@pytest.mark.slow
def test_origins_follow_each_other_and_momentum_has_settled():
    """Without noise the path is known: it is that of momentum on one mode."""
    task = regression(samples=8, input_covariance=[1.0], target_map=[0.0], exact_moments=True)
    still = {"learning_rate": 0.01, "batch_size": 8, "momentum": 0.5, "weight_decay": 0.0}
    with jax.enable_x64(True):
        task = type(task)(np.ones((8, 1)), np.zeros((8, 1)))
        networks = [eqx.tree_at(lambda each: each.weights, DeepLinear((1, 1)), (np.array([[w]]),)) for w in (1.0, 2.0)]
        found = squared_displacements(task, networks, np.array([2, 5]), legs=3, **still)
        resting, losses = warmed_up(task, networks, 10, **still)
    place, speed, path = 1.0, 0.0, []
    for _ in range(20 + 3 * 5):
        path.append(place)
        speed = 0.5 * speed - 0.01 * place
        place += speed
    path = np.array([*path, place])
    expected = [np.mean([(path[20 + leg * 5 + k] - path[20 + leg * 5]) ** 2 for leg in range(3)]) for k in (2, 5)]
    np.testing.assert_allclose(found[0], expected, rtol=1e-10)
    np.testing.assert_allclose(found[1], 4 * found[0], rtol=1e-10)
    assert float(resting[0].weights[0][0, 0]) == pytest.approx(path[10])
    np.testing.assert_allclose(losses, np.outer([1, 4], path[[5, 10]] ** 2 / 2), rtol=1e-10)


@pytest.mark.slow
def test_modes_sum_to_the_noise_and_have_the_curvature_of_the_dense_matrix():
    network = MLP((4, 3, 3))
    with jax.enable_x64(True):
        [found] = noise_modes(CLASSES, [network], batch_size=5, batches=4, products=27, seed=3)
        weights = eqx.filter(network, eqx.is_inexact_array)
        flat, unravel = ravel_pytree(weights)
        chosen = np.random.default_rng(3).integers(30, size=(4, 5))
        x, labels = CLASSES.inputs[chosen], CLASSES.labels[chosen]

        def outputs(w, inputs):
            return eqx.combine(unravel(w), network)(inputs)

        def entropy(w, inputs, classes):
            return -jnp.mean(jax.nn.log_softmax(outputs(w, inputs))[jnp.arange(5), classes])

        @jit
        def derivatives(w):
            gradients = jax.vmap(jax.grad(entropy), in_axes=(None, 0, 0))(w, x, labels)
            inputs = x.reshape(20, 4)
            return gradients, jax.jacobian(outputs)(w, inputs), jax.nn.softmax(outputs(w, inputs))

        gradients, jacobian, shares = map(np.asarray, derivatives(flat))
    noise = 5 * np.cov(gradients.T)
    inner = np.einsum("nc,ck->nck", shares, np.eye(3)) - np.einsum("nc,nk->nck", shares, shares)
    matrix = np.einsum("ncp,nck,nkq->pq", jacobian, inner, jacobian) / 20
    assert found.noise.sum() == pytest.approx(np.trace(noise))
    for power in (1, 2, 5):
        expected = np.trace(noise @ np.linalg.matrix_power(matrix, power))
        assert np.sum(found.noise * found.curvature**power) == pytest.approx(expected, rel=1e-6)


class Centred(eqx.Module):
    """Outputs less their mean, in training over the batch."""

    weights: Any
    mean: Any

    def __call__(self, x):
        return x @ self.weights - self.mean

    def train_step_outputs(self, x):
        return centred(x @ self.weights), self


class OfBatches(eqx.Module):
    """The same, which is not told apart from training."""

    weights: Any
    mean: Any

    def __call__(self, x):
        return centred(x @ self.weights)


def centred(outputs):
    return outputs - jnp.mean(outputs, axis=0)


def test_networks_with_running_statistics_are_taken_as_in_training():
    weights, mean = DRAW.normal(size=(4, 2)).astype(np.float32), np.full(2, 0.5, np.float32)
    task = Labelled(DRAW.normal(size=(20, 4)).astype(np.float32), DRAW.integers(2, size=20), ("a", "b"))
    settings: dict[str, Any] = {"batch_size": 10, "batches": 2, "products": 4, "seed": 0}
    [found] = noise_modes(task, [Centred(weights, mean)], **settings)
    [same] = noise_modes(task, [OfBatches(weights, mean)], **settings)
    assert found.curvature.dtype == np.float32
    # Rounding in single precision is all that may be below zero.
    assert found.curvature.min() > -1e-4 * found.curvature.max()
    np.testing.assert_array_equal(found.curvature, same.curvature)
    np.testing.assert_array_equal(found.noise, same.noise)
