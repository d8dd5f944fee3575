from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory import LayerRates
from dynascope.theory.neuron import neuron_speeds
from dynascope.theory.neuron.state import weights_of

MAP, GRADIENT = np.array([0.06, 0.08]), np.array([-0.5, 0.2])
IMBALANCES = np.array([-10.0, -1.0, 0.0, 1.0, 10.0])


@pytest.mark.parametrize("rates", [LayerRates(), LayerRates(0.5, 2.0)])
def test_golden_speeds(rates):
    speeds = neuron_speeds(MAP, GRADIENT, IMBALANCES, rates=rates)
    radial = [1.4002799720, 0.1427725464, 0.0280000000, 0.1427725464, 1.4002799720]
    angular = [0.0051994801, 0.0514901471, 0.52, 5.2514901471, 52.0051994801]
    share = [0.0000999700, 0.0097096622, 0.5, 0.9902903378, 0.9999000300]
    # Stored with ten decimals.
    for found, expected in zip(speeds, (radial, angular, share), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=6e-11)


@pytest.mark.parametrize(
    ("imbalance", "radial", "angular"),
    [(-2.0, (2.0, 0), (0.5, 1)), (0.0, (2.0, 1), (1.0, 0)), (2.0, (2.0, 0), (2.0, -1))],
)
def test_small_maps_follow_the_power_laws_of_their_imbalance(imbalance, radial, angular):
    sizes = np.array([1e-7, 1e-5])
    speeds = neuron_speeds(sizes[:, None] * [0.6, 0.8], np.array([-1.0, 7.0]) / np.sqrt(2), imbalance)
    along, across = np.array([0.6, 0.8]) @ [-1, 7] / np.sqrt(2), np.array([0.8, -0.6]) @ [-1, 7] / np.sqrt(2)
    for speed, part, (factor, exponent) in ((speeds.radial, along, radial), (speeds.angular, across, angular)):
        # Corrections are of the order of ‖β‖²/δ².
        np.testing.assert_allclose(speed, factor * sizes**exponent * abs(part), rtol=1e-9)


def test_initial_angular_factor_of_a_scale_and_an_imbalance():
    a, w = weights_of(np.broadcast_to([0.01, 0.0], (3, 2)), np.array([-1.0, 0.0, 1.0]))
    factor = neuron_speeds(a[:, None] * w, np.array([0.0, 1.0]), a**2 - np.sum(w**2, axis=1)).angular
    np.testing.assert_allclose(factor, [0.0099990002, 1, 100.0099990002], rtol=0, atol=1e-10)


@given(
    output=st.floats(0.1, 2),
    weights=st.lists(st.floats(-2, 2), min_size=3, max_size=3).filter(lambda w: np.linalg.norm(w) > 0.1),
    gradient=st.lists(st.floats(-2, 2), min_size=3, max_size=3),
    rates=st.builds(LayerRates, st.floats(0.3, 3), st.floats(0.3, 3)),
)
def test_speeds_are_those_of_the_weights(output, weights, gradient, rates):
    w, g = np.array(weights), np.array(gradient)
    imbalance = rates.first * output**2 - rates.second * w @ w
    speeds = neuron_speeds(output * w, g, imbalance, rates=rates)
    velocity = -rates.second * (w @ g) * w - rates.first * output * output * g
    size, direction = np.linalg.norm(output * w), w / np.linalg.norm(w)
    turned = velocity - direction * (direction @ velocity)
    np.testing.assert_allclose(speeds.radial, abs(direction @ velocity), rtol=0, atol=1e-10)
    np.testing.assert_allclose(speeds.angular, np.linalg.norm(turned) / size, rtol=0, atol=1e-10)


def test_the_zero_map_is_refused_and_gives_nan_where_it_is_traced():
    with pytest.raises(InputError) as caught:
        neuron_speeds(np.zeros(2), GRADIENT, 1.0)
    assert caught.value.argument == "coefficients"
    with jax.enable_x64(True):
        assert np.isnan(jax.jit(neuron_speeds)(np.zeros(2), GRADIENT, 1.0).angular)
