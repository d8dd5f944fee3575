"""A scale-invariant network, whose outputs do not change if a layer is multiplied by a positive number."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

__all__ = ["ScaleInvariantMLP"]


class ScaleInvariantMLP(eqx.Module):
    """A network with hidden layers h ← tanh(N(h W)) and outputs √c h W/‖W‖.

    N is batch normalisation with ε = 0 and without gain and shift, so the outputs depend only on the directions of the
    weights. N uses batch statistics during evaluation too.

    Attributes:
        weights: One array (inputs, outputs) for each layer, initially Gaussian with variance 1/inputs.

    Args:
        widths: Number of inputs, number of neurons of each hidden layer, and number c of outputs.
        seed: Seed of the initial weights.

    References:
        S. Ioffe, C. Szegedy, Batch Normalization, arXiv:1502.03167; T. Salimans, D. P. Kingma, Weight Normalization,
        arXiv:1602.07868.

    Example:
        >>> network, inputs = ScaleInvariantMLP((2, 3, 2)), np.array([[0.0, 1.0], [2.0, 1.0], [1.0, 5.0]])
        >>> larger = eqx.tree_at(lambda each: each.weights, network, tuple(7 * each for each in network.weights))
        >>> np.allclose(eqx.filter_jit(network)(inputs), eqx.filter_jit(larger)(inputs), atol=1e-5)
        True
    """

    weights: tuple[Float[Array | np.ndarray, "_ _"], ...]

    def __init__(self, widths: Sequence[int], *, seed: int = 0):
        draw = np.random.default_rng(seed)
        self.weights = tuple(draw.normal(size=shape) / shape[0] ** 0.5 for shape in itertools.pairwise(widths))

    def __call__(self, x: Float[Array | np.ndarray, "n d"]) -> Float[Array, "n c"]:
        """Outputs for a batch."""
        h = jnp.asarray(x)
        *hidden, last = self.weights
        for weights in hidden:
            z = h @ weights
            h = jnp.tanh((z - jnp.mean(z, axis=0)) / jnp.std(z, axis=0))
        return last.shape[1] ** 0.5 * (h @ last) / jnp.linalg.norm(last)
