from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.flows.exact.neuron_curvature import in_closed_form, loss_curvature
from dynascope.flows.objective import Samples
from dynascope.networks import LinearAttention, MergedAttention, TwoLayer

DRAW = np.random.default_rng(0)
SAMPLES = Samples(DRAW.normal(size=(20, 3)), DRAW.normal(size=(20, 2)))


PROMPTS = Samples(DRAW.normal(size=(20, 12)), DRAW.normal(size=(20, 1)))


@pytest.mark.parametrize("kind", ["linear", "quadratic", "relu-power-2", "power-3", "attention"])
def test_it_is_the_hessian_of_the_loss(kind):
    heads = kind == "attention"
    samples = PROMPTS if heads else SAMPLES
    with jax.enable_x64(True):
        network = LinearAttention(3, 5) if heads else TwoLayer(3, 5, 2, activation=kind)
        # Rows of zeros serve to keep the shape of few active neurons.
        rows = jnp.asarray(network.neurons).at[-1].set(0.0)

        @jit
        def both(vector):
            hessian = jax.hessian(lambda each: samples.loss(network.with_neurons(each.reshape(rows.shape))))
            return hessian(vector), loss_curvature(network, samples, vector.reshape(rows.shape))

        expected, found = both(rows.ravel())
    assert in_closed_form(network, samples)
    # Rounding of sums of 20 numbers.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * abs(np.asarray(expected)).max())
    assert abs(np.asarray(found)).max() > 0.1


@pytest.mark.slow
def test_other_networks_are_differentiated():
    with jax.enable_x64(True):
        attention = MergedAttention(2, 1)
        prompts = Samples(DRAW.normal(size=(7, 6)), DRAW.normal(size=(7, 1)))
        rows = jnp.asarray(attention.neurons)
        found = jit(lambda rows: loss_curvature(attention, prompts, rows))(rows)
        # A value enters the loss as a square: its curvature is the mean square of what the head says without it.
        unit = attention.with_neurons(rows.at[:, 0].set(1.0))(prompts.inputs)
    assert not in_closed_form(attention, prompts)
    assert float(found[0, 0]) == pytest.approx(np.mean(np.square(unit)), rel=1e-12)
