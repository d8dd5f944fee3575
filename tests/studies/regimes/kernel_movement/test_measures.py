from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.probes.kernel import neural_tangent_kernel
from dynascope.studies.regimes.kernel_movement.measures import at_fractions, flat_weights, movement, tangent_kernel
from dynascope.studies.regimes.kernel_movement.networks import DeepReLU, deep_relu, setting
from dynascope.studies.regimes.student_teacher.students import Weights, distances
from dynascope.studies.regimes.student_teacher.students import tangent_kernel as two_layer_kernel

SIZES = {"inputs": 5, "samples": 20, "test_samples": 10, "width": 7, "teacher_width": 3}


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def det(shape, factor):
    return np.sin(factor * np.arange(1, np.prod(shape) + 1)).reshape(shape)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_kernel_of_a_deep_network_equals_that_of_the_probe():
    draw = setting([0, 0], depth=3, **SIZES)
    network = deep_relu(draw.weights, 2.0, 0.1, normalised=False)
    other = neural_tangent_kernel(lambda net, x: net(x), network, draw.task.inputs[:6], contraction="trace").values
    np.testing.assert_allclose(tangent_kernel(network, draw.task.inputs, 6), other, rtol=1e-10)


def test_the_kernel_with_one_hidden_layer_has_the_published_values():
    first, signs = unit(det((2, 3), 1)), np.array([1.0, -1.0])
    alpha = 0.3619995498132642
    rows, output = 0.2 * alpha * np.tile(first, (2, 1)), 0.2 / alpha * np.concatenate([signs, -signs])
    inputs = unit(det((4, 3), 0.5))
    kernel = np.asarray(tangent_kernel(DeepReLU((rows.T, output[:, None]), normalised=False), inputs, 4))
    np.testing.assert_allclose(kernel, two_layer_kernel(Weights(rows, output), inputs), atol=1e-14)
    golden = {
        **{(0, 0): 0.6164637221290126, (0, 1): 0.4398416462019478, (1, 1): 0.6203710728514071},
        **{(2, 2): 0.6169457347932468, (2, 3): 0.45217084462483637, (3, 3): 0.6202666552914224, (0, 2): 0.0},
    }
    for place, value in golden.items():
        assert kernel[place] == pytest.approx(value, abs=1e-14)


def test_the_kernel_with_batch_norm_predicts_the_change_of_the_outputs_in_a_small_step():
    draw = setting([0, 0], depth=2, **SIZES)
    network, inputs = deep_relu(draw.weights, 2.0, 0.1, normalised=True), draw.task.inputs
    residual = np.asarray(draw.task.targets - network(inputs))[:, 0]
    gradient = jax.grad(lambda net: jnp.sum(net(inputs)[:, 0] * residual))(network)
    step = 1e-7
    moved = jax.tree.map(lambda weight, slope: weight + step * slope, network, gradient)
    change = np.asarray(moved(inputs) - network(inputs))[:, 0] / step
    np.testing.assert_allclose(tangent_kernel(network, inputs, 20) @ residual, change, rtol=1e-4, atol=1e-4)


def test_distances_with_one_hidden_layer_equal_those_of_two_layer_students():
    draw = setting([0, 0], depth=1, **SIZES)
    before, after = (deep_relu(draw.weights, scale, 0.1, normalised=False) for scale in (1.0, 1.5))
    after = jax.tree.map(lambda weight: weight + 0.02 * det(weight.shape, 0.7), after)
    path = np.stack([np.asarray(flat_weights(each)) for each in (before, after)])
    moved = movement(before, path, draw.task, draw.test, 20)
    pair = [Weights(np.asarray(each.weights[0]).T, np.asarray(each.weights[1])[:, 0]) for each in (before, after)]
    for name, value in distances(*pair, draw.task.inputs).items():
        assert getattr(moved, name)[1] == pytest.approx(value, rel=1e-8)
        assert getattr(moved, name)[0] == pytest.approx(0, abs=1e-14)
    errors = np.asarray(after(draw.test.inputs)) - draw.test.targets
    assert moved.test_loss[1] == pytest.approx(np.mean(errors**2) / 2)


def test_measures_are_read_at_the_first_time_of_a_loss():
    loss, values = np.array([1.0, 0.5, 0.6, 0.25]), np.array([0.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(at_fractions(loss, values, [1.0, 2**-0.5, 0.25, 0.1]), [0.0, 0.5, 3.0, 3.0])
