from __future__ import annotations

import numpy as np
import pytest
from charged_networks import NEURONS, RELU, descend
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.symmetry import charge_drift

DIAGONALS = np.transpose(NEURONS)


def drift(weights, diagonals):
    moved = np.diff(weights, axis=0)
    return charge_drift(weights[0] ** 2 @ diagonals, (weights[:-1] * moved) @ diagonals, moved**2 @ diagonals)


def test_plain_descent_without_decay_remembers_nothing():
    run = descend(lambda weights, _: RELU.gradient(weights), RELU.start, 40, learning_rate=0.1)
    found = drift(run.weights, DIAGONALS)
    # The gradient is orthogonal to the symmetry up to the rounding of its forty values.
    np.testing.assert_allclose(found.memory, 0, atol=1e-14)
    np.testing.assert_allclose(found.charge, run.charge(DIAGONALS), rtol=0, atol=1e-13)
    assert np.abs(found.finite_step[-1]).max() > 1e-3


def test_momentum_and_adam_remember():
    for optimizer in ("momentum", "adam"):
        weights, first, second, path = RELU.start, 0.0, 0.0, [RELU.start]
        for k in range(40):
            slope = RELU.gradient(weights)
            first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
            scaled = np.sqrt(second / (1 - 0.99 ** (k + 1))) + 1e-8 if optimizer == "adam" else 1.0
            weights = weights - 0.02 * first / scaled
            path.append(weights)
        found = drift(np.stack(path), DIAGONALS)
        np.testing.assert_allclose(found.charge, np.stack(path) ** 2 @ DIAGONALS, rtol=0, atol=1e-13)
        assert np.abs(found.memory[-1]).max() > np.abs(found.finite_step[-1]).max()


@given(seed=st.integers(0, 10**6))
def test_of_any_path_the_parts_add_up_to_the_charge(seed):
    random = np.random.default_rng(seed)
    weights = random.normal(size=(20, 5)).cumsum(0)
    diagonals = random.normal(size=(5, 3))
    found = drift(weights, diagonals)
    np.testing.assert_allclose(found.charge, weights**2 @ diagonals, rtol=0, atol=1e-11)
    assert not found.memory[0].any()
    assert not found.finite_step[0].any()


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ((1.0, [0.1], [0.1, 0.2]), "crossed"),
        ((1.0, [0.1], [np.nan]), "displacements"),
        (([1.0, 1.0], [0.1], [0.1]), "initial"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, argument):
    with pytest.raises(InputError) as caught:
        charge_drift(*arguments)
    assert caught.value.argument == argument


def test_missing_steps_are_refused():
    with pytest.raises(InputError, match="missing") as caught:
        charge_drift(1.0, [0.1, 0.1], [0.1, 0.2], steps=[0, 100])
    assert caught.value.argument == "steps"
