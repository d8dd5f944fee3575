from __future__ import annotations

import itertools

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import (
    discrete_moments,
    finite_data_moments,
    finite_data_stationary_moments,
    quadratic_loss,
)

CHOSEN = {"learning_rate": 0.1, "momentum": 0.6, "weight_decay": 0.05}
STEEP = np.diag([9.0, 1.0, 1.0])[:, :2]


def regression(seed=0, samples=3, inputs=2):
    random = np.random.default_rng(seed)
    return random.normal(size=(samples, inputs)), random.normal(size=samples)


def all_runs(x, y, steps, batch_size, replacement, learning_rate, momentum, weight_decay):
    """The weights and velocities after every sequence of batches that there is."""
    drawn = itertools.product if replacement else itertools.combinations
    batches = list(drawn(range(len(x)), **{"repeat": batch_size} if replacement else {"r": batch_size}))
    ends = []
    for sequence in itertools.product(batches, repeat=steps):
        weights, velocity = np.array([1.0, -0.5]), np.zeros(2)
        for batch in sequence:
            part, wanted = x[list(batch)], y[list(batch)]
            gradient = part.T @ (part @ weights - wanted) / batch_size
            velocity = momentum * velocity - gradient - weight_decay * weights
            weights = weights + learning_rate * velocity
        ends.append(np.concatenate([weights, velocity]))
    return np.array(ends)


@pytest.mark.parametrize(("batch_size", "replacement"), [(1, True), (2, True), (2, False), (3, False)])
def test_moments_are_those_of_all_runs_that_there_are(batch_size, replacement):
    x, y = regression()
    ends = all_runs(x, y, 3, batch_size, replacement, **CHOSEN)
    sgd = SGD(**CHOSEN, batch_size=batch_size, samples=None if replacement else 3)
    found = finite_data_moments(3, x, y, sgd, start=[1.0, -0.5])
    mean, spread = ends.mean(0), np.cov(ends.T, bias=True)
    np.testing.assert_allclose(np.concatenate([found.position, found.velocity]), mean, rtol=1e-12)
    for part, rows, columns in (
        (found.position_covariance, slice(2), slice(2)),
        (found.covariance, slice(2), slice(2, 4)),
        (found.velocity_covariance, slice(2, 4), slice(2, 4)),
    ):
        np.testing.assert_allclose(part, spread[rows, columns], rtol=0, atol=1e-14)
    losses = [np.mean((x @ end[:2] - y) ** 2) / 2 for end in ends]
    assert found.loss == pytest.approx(np.mean(losses), rel=1e-13)


@pytest.mark.parametrize(("seed", "momentum"), [(0, 0.0), (1, 0.5), (2, 0.8)])
def test_late_moments_are_stationary(seed, momentum):
    x, y = regression(seed, samples=6)
    sgd = SGD(0.05, momentum=momentum, weight_decay=0.3, batch_size=3)
    rest = finite_data_stationary_moments(x, y, sgd)
    late = finite_data_moments(2000, x, y, sgd)
    # The slowest mode falls by 0.015 a step at least, to exp(−30), and iteration settles to 1e-14 of a step.
    for one, other in zip(late, rest, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11)


def test_additive_noise_is_the_limit_of_small_steps_from_the_centre():
    x, y = regression(3, samples=50)
    loss = quadratic_loss(x, y)
    errors = []
    for rate in (0.02, 0.01):
        exact = finite_data_moments(20, x, y, SGD(rate, batch_size=2), start=loss.centre)
        additive = discrete_moments(20, SGD(rate, batch_size=2), curvature=loss.curvature, noise=loss.mode_noise)
        along = np.diag(loss.directions.T @ exact.position_covariance @ loss.directions)
        errors.append(np.abs(along / additive.position_variance - 1).max())
    # The noise grows with the variance so far, which after as many steps is of the second order of the rate.
    assert errors[1] == pytest.approx(errors[0] / 4, rel=0.1)
    assert errors[1] < 0.01


def test_full_batches_have_no_noise_and_interpolating_weights_come_to_rest():
    x, y = regression(samples=4)
    found = finite_data_moments([0, 5], x, y, SGD(**CHOSEN, batch_size=4, samples=4))
    np.testing.assert_allclose(found.position_covariance, 0, atol=1e-15)
    exact = finite_data_stationary_moments(x, x @ [1.0, 2.0], SGD(0.1))
    np.testing.assert_allclose(exact.position, [1.0, 2.0])
    np.testing.assert_allclose(exact.position_covariance, 0, atol=1e-25)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda x, y: finite_data_moments(1, x, y, SGD(9.0)), "learning_rate"),
        (lambda x, y: finite_data_moments(1, x, y, SGD(0.1), start=[1.0]), "start"),
        (lambda x, y: finite_data_moments(1, x, y, SGD(0.1), velocity=1.0), "velocity"),
        (lambda x, y: finite_data_moments(1, x, y, SGD(0.1, samples=4)), "samples"),
        (lambda x, y: finite_data_stationary_moments(x[:1], y[:1], SGD(0.1)), "curvature"),
        # Stable in the mean, η‖H‖ < 2, and not in the second moment.
        (lambda x, y: finite_data_stationary_moments(STEEP, y, SGD(0.05)), "learning_rate"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call(*regression())
    assert caught.value.argument == argument
