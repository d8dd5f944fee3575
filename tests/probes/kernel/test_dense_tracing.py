from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.compilation import jit
from dynascope.networks import Convolutional
from dynascope.probes.kernel.dense_tracing import dense_uses, layer_signals
from dynascope.probes.kernel.dense_uses import DenseUse
from dynascope.probes.kernel.model import split

W, V = np.random.default_rng(0).normal(size=(4, 5)), np.random.default_rng(1).normal(size=(5, 2))


def deep(params, x):
    return jnp.tanh(x @ params[0]) @ params[1]


def test_uses_tell_positions_and_sizes():
    model, arrays = split(deep, (W, V))
    assert dense_uses(model, arrays, np.ones(4, np.float32)) == [DenseUse(0, 1, 4, 5, 0), DenseUse(1, 1, 5, 2, 0)]
    words = dense_uses(model, arrays, np.ones((3, 4), np.float32))
    assert [use.positions for use in words] == [3, 3]
    assert dense_uses(model, arrays, np.ones(4, np.float32), excluded=frozenset({0})) == [DenseUse(1, 1, 5, 2, 0)]


def test_a_transposed_weight_is_summed_over_its_other_axis():
    model, arrays = split(lambda p, x: x @ p.T, V)
    (use,) = dense_uses(model, arrays, np.ones(2, np.float32))
    assert (use.inputs, use.outputs, use.orientation) == (2, 5, 1)


def test_a_convolution_has_a_position_for_every_place():
    model, arrays = split(lambda network, x: network(x), Convolutional((8, 8), 3, channels=(4, 5), width=6))
    uses = dense_uses(model, arrays, np.ones(64, np.float32))
    assert [(use.positions, use.inputs, use.outputs) for use in uses] == [
        (64, 9, 4),
        (16, 36, 5),
        (1, 20, 6),
        (1, 6, 3),
    ]


def test_signals_are_the_derivatives_by_what_the_layers_give():
    x = np.random.default_rng(2).normal(size=4)
    with jax.enable_x64(True):
        model, arrays = split(deep, (W, V))
        uses = dense_uses(model, arrays, x)
        layers, others = jit(lambda arrays, x: layer_signals(model, uses, (), arrays, x))(arrays, x)
    hidden = np.tanh(x @ W)
    np.testing.assert_allclose(layers[0][0], x[None, None], rtol=1e-14)
    np.testing.assert_allclose(layers[1][0], hidden[None, None], rtol=1e-14)
    np.testing.assert_allclose(layers[0][1][:, 0, 0], (V * (1 - hidden**2)[:, None]).T, rtol=1e-13)
    np.testing.assert_allclose(layers[1][1][:, 0, 0], np.eye(2), rtol=1e-14)
    assert others == {}
