from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.flows import pattern_flow
from dynascope.probes.kernel import kernel_distance
from dynascope.theory import LayerRates
from dynascope.theory.neuron.state import weights_of

X = np.array([[1.0, 0.2], [0.6, 0.9], [-0.5, 1.0], [-0.2, 0.8]])
Y = np.array([1.2, 1.0, 0.5, 0.6])
ANGLES = np.array([-0.9, 1.9, 2.9])


def start(imbalance: float, angles: np.ndarray = ANGLES, scale: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return weights_of(scale**2 * directions, np.full(len(angles), imbalance))


def tangent_kernel(x: np.ndarray, a: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The tangent kernel of a ReLU network."""
    z = x @ w.T
    active = z > 0
    return (z * active) @ (z * active).T + (x @ x.T) * ((active * a**2) @ active.T)


def changes(x, imbalance, times, angles=ANGLES, scale=0.1, y=Y):
    """The flow, and the changes of kernel, pattern and parameters between the initialisation and the last time."""
    a, w = start(imbalance, angles, scale)
    flow = pattern_flow(times, x, y, a, w)
    a_end, w_end = flow.output_weights[-1], flow.input_weights[-1]
    kernel = float(kernel_distance(tangent_kernel(x, a, w), tangent_kernel(x, a_end, w_end)))
    hamming = np.mean((x @ w.T > 0) != (x @ w_end.T > 0))
    return flow, kernel, hamming, np.sqrt(np.sum((a_end - a) ** 2) + np.sum((w_end - w) ** 2))


@pytest.mark.parametrize(
    ("imbalance", "loss", "kernel", "hamming", "distance", "first"),
    [
        (-1.0, 0.1404392460, 0.0237476956, 1 / 12, 0.7470642747, 2.819781),
        (0.0, 0.2451289058, 0.1853033789, 1 / 4, 0.5636505730, 0.751068),
        (1.0, 0.0149225548, 0.1465210689, 1 / 2, 0.6411638323, 0.008841),
    ],
)
def test_golden_three_neurons(imbalance, loss, kernel, hamming, distance, first):
    flow, *found = changes(X, imbalance, [0.0, 3.0])
    # Stored with ten decimals; the stored integrations agree to 2e-11. The time is stored with six.
    np.testing.assert_allclose(flow.loss, [0.3741774624, loss], rtol=0, atol=2e-10)
    np.testing.assert_allclose(found, [kernel, hamming, distance], rtol=0, atol=2e-10)
    np.testing.assert_allclose(flow.flip_time[0], first, rtol=0, atol=6e-7)
    assert flow.status == "complete"


def test_sliding_is_reported():
    flow = pattern_flow([1.0, 24.0, 30.0], X, Y, *start(0.0))
    assert flow.status == "sliding"
    assert flow.time.tolist() == [1.0, 24.0]
    np.testing.assert_allclose(flow.flip_time[-1], 24.6, atol=0.1)


@pytest.mark.parametrize(
    ("imbalance", "kernel", "distance"),
    [
        (-1.0, 0.3755563024, 1.3702830360),
        (-0.25, 0.3704938798, 1.2316616191),
        (0.0, 0.3690923246, 1.1672361649),
        (0.25, 0.3679656108, 1.0568341520),
        (1.0, 0.3662617570, 0.8284562823),
        (4.0, 0.3668581405, 0.4951752925),
    ],
)
def test_golden_end_of_one_neuron(imbalance, kernel, distance):
    x = np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)]])
    flow, *found = changes(x, imbalance, [300.0], np.deg2rad([-40.0]), 0.3, np.array([1.0, 0.8]))
    np.testing.assert_allclose(found, [kernel, 0.5, distance], rtol=0, atol=1e-8)
    assert flow.loss[-1] < 1e-15


@given(seed=st.integers(0, 1000), slope=st.floats(0, 0.9))
def test_the_flow_conserves_imbalances_and_never_increases_the_loss(seed, slope):
    rng, rates = np.random.default_rng(seed), LayerRates(0.7, 1.6)
    x, y, a, w = rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=3), rng.normal(size=(3, 2))
    flow = pattern_flow(np.linspace(0, 2, 6), x, y, a, w, negative_slope=slope, rates=rates)
    imbalance = 0.7 * flow.output_weights**2 - 1.6 * np.sum(flow.input_weights**2, axis=2)
    np.testing.assert_allclose(imbalance, np.broadcast_to(imbalance[0], imbalance.shape), atol=1e-8)
    assert np.all(np.diff(flow.loss) <= 1e-12)
    flips = np.zeros((3, 5))
    np.add.at(flips, (flow.flip_neuron, flow.flip_sample), 1)
    if flow.status == "complete":
        assert np.array_equal(flips % 2 == 1, (flow.input_weights[-1] @ x.T > 0) != (w @ x.T > 0))


def test_small_descent_steps_follow_the_flow():
    a, w = start(1.0)
    expected = pattern_flow([1.0], X, Y, a, w)
    rate = 1e-4
    for _ in range(10_000):
        z = X @ w.T
        active = z > 0
        residual = (z * active) @ a - Y
        gradients = (active * residual[:, None]).T @ X / 4
        a, w = a - rate * np.sum(w * gradients, axis=1), w - rate * a[:, None] * gradients
    # The error of a step is of the order of the learning rate.
    np.testing.assert_allclose(a, expected.output_weights[0], atol=1e-4)
    np.testing.assert_allclose(w, expected.input_weights[0], atol=1e-4)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"times": [1.0, 0.0]}, "times"),
        ({"targets": [1.0]}, "targets"),
        ({"output_weights": [1.0]}, "input_weights"),
        ({"input_weights": np.zeros((3, 2))}, "input_weights"),
        ({"inputs": np.full((4, 2), np.nan)}, "inputs"),
        ({"negative_slope": -1.0}, "negative_slope"),
        ({"rates": LayerRates(0.0, 1.0)}, "rates.first"),
        ({"tolerance": 0.0}, "tolerance"),
    ],
)
def test_bad_input_is_refused_by_name(change, name):
    a, w = start(0.0)
    given = {"times": [1.0], "inputs": X, "targets": Y, "output_weights": a, "input_weights": w}
    with pytest.raises(InputError) as caught:
        pattern_flow(**given | change)
    assert caught.value.argument == name
