import numpy as np
import optax
import pytest

from dynascope.networks import DeepLinear
from dynascope.tasks import Task
from dynascope.training import descend
from dynascope.training.decay import annealed, decayed, falling

draw = np.random.default_rng(0)
TASK = Task(draw.normal(size=(12, 3)), draw.normal(size=(12, 2)))
NETWORK = DeepLinear((3, 2), seed=1)
STEPS = 12
# The arithmetic of a few steps on numbers of order one, in another order.
ROUNDING = 1e-13


def end(**options):
    _, network = descend(NETWORK, TASK, steps=STEPS, record_steps=[STEPS], return_networks=True, **options)
    return np.asarray(network.weights[0])


def gradient(weights):
    return TASK.inputs.T @ (TASK.inputs @ weights - TASK.targets) / 12


def test_decay_is_part_of_the_gradient_that_momentum_gathers():
    weights, velocity = NETWORK.weights[0], np.zeros((3, 2))
    for _ in range(STEPS):
        velocity = 0.9 * velocity + gradient(weights) + 0.3 * weights
        weights = weights - 0.05 * velocity
    found = end(learning_rate=0.05, optimizer=decayed(optax.sgd, np.array(0.3), momentum=0.9))
    np.testing.assert_allclose(found, weights, rtol=0, atol=ROUNDING)


def test_a_rate_that_falls_is_one_number_until_each_of_its_updates():
    weights = NETWORK.weights[0]
    for step in range(STEPS):
        weights = weights - 0.1 * 0.5 ** ((step >= 4) + (step >= 7)) * gradient(weights)
    found = end(learning_rate=falling(np.array(0.1), np.array([4, 7]), 0.5))
    np.testing.assert_allclose(found, weights, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("most", [None, 0.7])
def test_a_rate_that_is_annealed_is_a_cosine_and_shortens_gradients_that_are_too_long(most):
    weights, shortened = NETWORK.weights[0], 0
    for step in range(STEPS):
        slopes = gradient(weights)
        size = np.linalg.norm(slopes)
        if most is not None and size > most:
            slopes, shortened = slopes * most / size, shortened + 1
        weights = weights - 0.15 * (1 + np.cos(np.pi * step / STEPS)) * (slopes + 0.2 * weights)
    assert most is None or 0 < shortened < STEPS
    found = end(learning_rate=0.3, optimizer=annealed("sgd", STEPS, largest_gradient=most, weight_decay=0.2))
    np.testing.assert_allclose(found, weights, rtol=0, atol=ROUNDING)


def test_runs_that_differ_in_a_number_end_elsewhere():
    found = [
        end(learning_rate=0.05, optimizer=decayed(optax.sgd, np.array(each), momentum=0.5)) for each in (0.0, 0.3, 0.6)
    ]
    assert len({each.tobytes() for each in found}) == 3
