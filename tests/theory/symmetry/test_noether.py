from __future__ import annotations

import numpy as np
import pytest
from charged_networks import ATTENTION, COLUMNS, LINEAR, NEURONS, RELU, descend
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.symmetry import noether_charge, noether_charge_rate

CHOSEN = {"learning_rate": 0.1, "weight_decay": 0.01, "momentum": 0.9}
SPIN = np.array([[0.0, -1.0], [1.0, 0.0]])


def turned(network, parts, weights):
    """What a rotation of the hidden units moves the weights by: rows of those into them, columns of those out."""
    weights = network.split(weights)
    moved = {name: np.zeros_like(each) for name, each in weights.items()}
    for name, sides in parts.items():
        moved[name] = SPIN @ weights[name] if sides == "rows" else weights[name] @ SPIN.T
    return np.concatenate([each.ravel() for each in moved.values()])


NETWORKS = {
    "linear": (LINEAR, {"first": "rows", "second": "columns"}),
    "queries and keys": (ATTENTION, {"query": "rows", "key": "rows"}),
    "values and outputs": (ATTENTION, {"value": "rows", "output": "columns"}),
}


def run_of(count=50, **changes):
    return descend(lambda weights, _: RELU.gradient(weights), RELU.start, count, **CHOSEN | changes)


def test_a_neuron_and_a_column_follow_the_exact_motion():
    run = run_of()
    moved = np.diff(run.weights, axis=0)
    for diagonal in NEURONS:
        found = noether_charge(run.displacements(diagonal), run.charge(diagonal)[:-1], SGD(**CHOSEN))
        np.testing.assert_allclose(found[1:], (moved * run.weights[1:]) @ diagonal, rtol=0, atol=1e-13)
    for column in COLUMNS:
        found = noether_charge(np.zeros(50), run.weights[:-1] @ column, SGD(**CHOSEN))
        np.testing.assert_allclose(found[1:], moved @ column, rtol=0, atol=1e-13)


def test_momentum_conserves_no_rescaling_even_without_decay():
    run = run_of(weight_decay=0.0)
    charges = run.charge(NEURONS[0])
    assert np.ptp(charges) > 0.5
    # Gradient flow does: what plain steps move vanishes with their size.
    plain = run_of(2000, learning_rate=1e-4, weight_decay=0.0, momentum=0.0).charge(NEURONS[0])
    assert np.ptp(plain) < 1e-4


@pytest.mark.parametrize("name", NETWORKS)
def test_rotations_lose_only_what_momentum_forgets(name):
    network, parts = NETWORKS[name]
    rate, decay, momentum = CHOSEN["learning_rate"], CHOSEN["weight_decay"], CHOSEN["momentum"]
    moved, weights, path = np.cos(np.arange(network.start.size)), network.start, []
    # From a displacement that turns, as from rest there is nothing to see.
    for _ in range(21):
        path.append(moved @ turned(network, parts, weights))
        moved = momentum * moved - rate * (network.gradient(weights) + decay * weights)
        weights = weights + moved
    assert abs(path[0]) > 0.05
    found = noether_charge(np.zeros(20), np.zeros(20), SGD(**CHOSEN), initial=path[0])
    np.testing.assert_allclose(path, found, rtol=0, atol=1e-12)


@given(seed=st.integers(0, 10**6), momentum=st.floats(0, 0.95), decay=st.floats(0, 1))
def test_any_generator_and_any_gradients_along_which_nothing_changes(seed, momentum, decay):
    random = np.random.default_rng(seed)
    generator, shift = random.normal(size=(5, 5)), random.normal(size=5)

    def gradient(weights, _):
        slope, field = random.normal(size=5), generator @ weights + shift
        return slope - field * (field @ slope) / (field @ field)

    chosen = {"learning_rate": 0.05, "weight_decay": decay, "momentum": momentum}
    run = descend(gradient, random.normal(size=5), 20, **chosen)
    moved = np.diff(run.weights, axis=0)
    fields = run.weights @ generator.T + shift
    found = noether_charge(
        np.einsum("ki,ij,kj->k", moved, generator, moved), np.sum(run.weights[:-1] * fields[:-1], axis=1), SGD(**chosen)
    )
    size = np.abs(run.weights).max() ** 2 + 1
    np.testing.assert_allclose(found[1:], np.sum(moved * fields[1:], axis=1), rtol=0, atol=1e-11 * size)


def test_the_rate_is_that_of_the_oscillator_itself():
    # m x'' + μ x' + λ x + ∂L/∂x = 0 in the plane with L a function of the product x y, of which G = diag(1, −1).
    rate, decay, momentum = 0.1, 0.3, 0.6
    mass, friction = rate * (1 + momentum) / 2, 1 - momentum
    place, speed = np.array([0.8, -0.5]), np.array([0.3, 0.7])
    slope = 2 * (place[0] * place[1] - 1) * place[::-1]
    pull = -(friction * speed + decay * place + slope) / mass
    signs = np.array([1.0, -1.0])
    found = noether_charge_rate(
        mass * signs @ (speed * place),
        signs @ speed**2,
        signs @ place**2,
        SGD(rate, weight_decay=decay, momentum=momentum),
    )
    expected = mass * (signs @ (pull * place) + signs @ speed**2)
    assert found.total == pytest.approx(expected, rel=1e-12)
    assert found.total == pytest.approx(found.friction + found.kinetic + found.decay, rel=1e-14)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: noether_charge_rate(1.0, [1.0], 1.0, SGD(0.1)), "kinetic"),
        (lambda: noether_charge_rate(1.0, 1.0, 1.0, SGD(0.0)), "learning_rate"),
        (lambda: noether_charge([1.0], [1.0, 2.0], SGD(0.1)), "overlaps"),
        (lambda: noether_charge([1.0], [1.0], SGD(0.1, momentum=-0.1)), "momentum"),
        (lambda: noether_charge([1.0, 1.0], [1.0, 1.0], SGD(0.1), steps=[0, 5]), "steps"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
