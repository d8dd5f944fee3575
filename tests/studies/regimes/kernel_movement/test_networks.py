from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.networks import MLP
from dynascope.studies.regimes.kernel_movement.networks import DeepReLU, deep_relu, layer_rates, setting
from dynascope.training import Descent, descend

SIZES = {"inputs": 5, "samples": 20, "test_samples": 10, "width": 7, "depth": 2, "teacher_width": 3}
DRAW = setting([0, 0], **SIZES)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@given(st.floats(0.1, 10), st.booleans())
def test_the_relative_scale_does_not_change_the_initial_function(scale, normalised):
    with jax.enable_x64(True):
        one, other = (deep_relu(DRAW.weights, each, 0.1, normalised=normalised) for each in (1.0, scale))
        np.testing.assert_allclose(other(DRAW.task.inputs), one(DRAW.task.inputs), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("normalised", [False, True])
def test_the_output_scale_multiplies_the_initial_outputs(normalised):
    one, tenth = (deep_relu(DRAW.weights, 2.0, each, normalised=normalised) for each in (1.0, 0.1))
    np.testing.assert_allclose(tenth(DRAW.task.inputs), 0.1 * one(DRAW.task.inputs), rtol=1e-11)


def test_a_network_without_normalisation_is_a_multilayer_perceptron():
    mlp = MLP((5, 7, 7, 1), bias=False)
    layers = DeepReLU(mlp.weights, normalised=False).layers(DRAW.task.inputs, DRAW.task.inputs)
    for one, other in zip(layers, mlp.preactivations(DRAW.task.inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_normalised_inputs_of_each_relu_have_mean_zero_and_variance_one_on_the_batch():
    network = deep_relu(DRAW.weights, 3.0, 0.1, normalised=True)
    for z in network.layers(DRAW.task.inputs, DRAW.task.inputs)[:-1]:
        np.testing.assert_allclose(np.mean(z, axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(np.var(z, axis=0), 1, rtol=1e-12)


def test_outputs_with_the_statistics_of_a_batch_do_not_depend_on_other_samples():
    network = deep_relu(DRAW.weights, 3.0, 0.1, normalised=True)
    together = network.layers(DRAW.test.inputs, DRAW.task.inputs)[-1]
    alone = network.layers(DRAW.test.inputs[:1], DRAW.task.inputs)[-1]
    np.testing.assert_allclose(together[:1], alone, rtol=1e-12)


@pytest.mark.parametrize("normalised", [False, True])
def test_matched_rates_of_the_layers_replace_the_relative_scale_at_every_step(normalised):
    scaled, one = (deep_relu(DRAW.weights, each, 0.1, normalised=normalised) for each in (3.0, 1.0))
    matched = layer_rates(0.01, 3.0, 3, normalised=normalised)
    run, twin, plain = (
        descend(DRAW.task, network, Descent(learning_rate=rate, steps=50, save=range(51)))["loss"].to_numpy()
        for network, rate in ((scaled, 0.01), (one, matched), (one, 0.01))
    )
    np.testing.assert_allclose(twin, run, rtol=1e-10)
    assert np.abs(plain / run - 1).max() > 1e-3


def test_scaling_all_normalised_layers_divides_their_rates_by_the_square():
    network = deep_relu(DRAW.weights, 1.0, 0.1, normalised=True)
    larger = DeepReLU((*(4.0 * each for each in network.weights[:-1]), network.weights[-1]), normalised=True)
    rates = [{"weights.0": rate, "weights.1": rate, "weights.2": 0.01} for rate in (0.01, 0.16)]
    run, twin = (
        descend(DRAW.task, each, Descent(learning_rate=rate, steps=50, save=range(51)))["loss"].to_numpy()
        for each, rate in zip((network, larger), rates, strict=True)
    )
    np.testing.assert_allclose(twin, run, rtol=1e-10)


def test_targets_have_unit_power_and_one_teacher_serves_all_depths():
    deeper = setting([0, 0], **SIZES | {"depth": 4})
    assert np.mean(DRAW.task.targets**2) == pytest.approx(1)
    np.testing.assert_array_equal(DRAW.task.targets, deeper.task.targets)
    assert [each.shape for each in deeper.weights] == [(5, 7), (7, 7), (7, 7), (7, 7), (7, 1)]
