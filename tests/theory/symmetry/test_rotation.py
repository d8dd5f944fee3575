from __future__ import annotations

import numpy as np
import pytest
from charged_networks import ATTENTION, LINEAR, descend
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.symmetry import rotation_charge

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


@pytest.mark.parametrize("name", NETWORKS)
def test_momentum_forgets_the_angular_momentum_at_every_step_of_a_schedule(name):
    network, parts = NETWORKS[name]
    momenta = 0.9 - 0.02 * np.arange(20)
    buffer, weights, path = np.cos(np.arange(network.start.size)), network.start, []
    # From a buffer that turns, as from rest there is nothing to see.
    for momentum in [*momenta, 0.0]:
        field = turned(network, parts, weights)
        path.append(buffer @ field)
        buffer = momentum * buffer + network.gradient(weights) + 0.1 * weights
        weights = weights - 0.03 * buffer
    assert abs(path[0]) > 0.05
    np.testing.assert_allclose(path, rotation_charge(path[0], momenta), rtol=0, atol=1e-13)


def test_from_rest_it_stays_zero():
    run = descend(
        lambda weights, _: LINEAR.gradient(weights), LINEAR.start, 50, learning_rate=0.1, weight_decay=0.1, momentum=0.9
    )
    fields = [turned(*NETWORKS["linear"], weights) for weights in run.weights[1:]]
    found = np.einsum("ki,ki->k", run.buffers, fields)
    np.testing.assert_allclose(found, rotation_charge(0.0, np.full(50, 0.9))[1:], atol=1e-14)


@given(seed=st.integers(0, 10**6), count=st.integers(0, 30))
def test_it_is_the_product_of_the_momenta(seed, count):
    random = np.random.default_rng(seed)
    momenta, start = random.uniform(0, 0.99, count), random.normal(size=3)
    found = rotation_charge(start, momenta)
    np.testing.assert_allclose(found[-1], np.prod(momenta) * start, rtol=1e-13)
    assert found.shape == (count + 1, 3)


@pytest.mark.parametrize(
    ("initial", "momentum", "argument"),
    [(np.nan, [0.5], "initial"), (1.0, 0.5, "momentum"), (1.0, [1.0], "momentum"), (1.0, [-0.1], "momentum")],
)
def test_bad_input_is_refused_by_name(initial, momentum, argument):
    with pytest.raises(InputError) as caught:
        rotation_charge(initial, momentum)
    assert caught.value.argument == argument
