from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.flows.exact.head_curvature import head_curvatures, head_slopes
from dynascope.networks import LinearAttention


@jit
def derivatives(network, rows, prompts, error):
    """By formulas and by JAX: slopes and curvatures of each head."""

    def output(row):
        return network.with_neurons(row[None])(prompts)

    slopes = jax.vmap(jax.jacfwd(output))(rows)[:, :, 0]
    curvatures = jax.vmap(jax.hessian(lambda row: jnp.mean(output(row) * error)))(rows)
    told = head_slopes(prompts, rows).swapaxes(0, 1), head_curvatures(prompts, error, rows)
    return told, (slopes, curvatures)


@given(seed=st.integers(0, 10**6), size=st.sampled_from([1, 3]))
def test_they_are_the_derivatives_of_each_head(seed, size):
    draw = np.random.default_rng(seed)
    prompts, error = draw.normal(size=(7, 3 * (size + 1))), draw.normal(size=(7, 1))
    with jax.enable_x64(True):
        network = LinearAttention(size, 2, seed=seed)
        told, expected = derivatives(network, network.neurons, prompts, error)
    # Rounding of sums of products of order one.
    for one, other in zip(told, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
