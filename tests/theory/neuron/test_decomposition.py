from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory import LayerRates
from dynascope.theory.neuron.decomposition import decompose
from dynascope.theory.neuron.state import TargetedNeuron

TARGET = np.array([1.0, -0.5, 0.25])


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def taken_apart(*start, rates=LayerRates()):
    return jax.device_get(jit(decompose)(TargetedNeuron.checked(*start, rates)))


@pytest.mark.parametrize("output", [2.0, 0.3, 0.0, -0.3])
def test_the_growing_direction_is_an_eigenvector_and_the_parts_add_up(output):
    weights = np.array([0.5, 1.5, -1.0])
    start = taken_apart(output, weights, TARGET, rates=LayerRates(first=2.0, second=0.5))
    half, s = start.imbalance / 2, start.strength
    growing = np.array([start.along, start.out])
    # A few roundings of numbers of order one.
    np.testing.assert_allclose(np.array([[-half, s], [s, half]]) @ growing, start.omega * growing, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(growing), 1, atol=1e-14)
    again = start.aligned * start.direction + start.across
    np.testing.assert_allclose(start.ratio * again, weights, atol=1e-14)
    np.testing.assert_allclose(start.growing**2 + start.shrinking**2, start.aligned**2 + start.output**2, atol=1e-14)
    np.testing.assert_allclose(start.rate * start.imbalance, 2.0 * output**2 - 0.5 * weights @ weights, atol=1e-14)


def test_numbers_below_their_rounding_are_zero():
    balanced = taken_apart(np.linalg.norm(TARGET), TARGET, TARGET)
    orthogonal = taken_apart(0.0, np.array([0.3, 0.4, -0.4]), TARGET)
    escaping = taken_apart(1e-14, np.array([0.3, 0.4, -0.4]), TARGET)
    assert balanced.imbalance == 0
    assert orthogonal.growing == 0
    assert escaping.growing > 0


def test_batches_that_do_not_broadcast_are_refused_by_name():
    with pytest.raises(InputError, match=r"rates\.second"):
        TargetedNeuron.checked(np.ones(3), np.ones((3, 2)), np.ones(2), LayerRates(second=np.ones(2)))
    with pytest.raises(InputError, match="initial_output"):
        TargetedNeuron.checked(np.ones(2), np.ones((3, 2)), np.ones(2), LayerRates())
