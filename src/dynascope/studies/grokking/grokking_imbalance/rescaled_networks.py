"""Networks whose first and last layers have different relative scales at initialisation."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

from dynascope.networks import Transformer, TwoLayer

__all__ = ["rescaled_transformer", "rescaled_two_layer"]

_DEGREE = 2  # of homogeneity of the quadratic activation


def rescaled_two_layer(p: int, width: int, alpha: float, *, scale: float, seed: int) -> TwoLayer:
    """Draw f(x) = (x W₁/α)² α² W₂, whose outputs do not depend on α.

    The weights of both layers are Gaussian with standard deviation scale/√fan-in before the division by α.

    Args:
        p: Modulus: there are 2p inputs and p outputs.
        width: Number of hidden neurons.
        alpha: Relative scale α > 0; above one, the first layer is smaller (upstream).
        scale: Factor on all weights.
        seed: Seed of the draw.

    Example:
        >>> even, upstream = (rescaled_two_layer(5, 4, alpha, scale=1.0, seed=0) for alpha in (1.0, 2.0))
        >>> inputs = np.eye(10)[:3]
        >>> bool(np.allclose(upstream(inputs), even(inputs))), bool(np.allclose(even.first, 2 * upstream.first))
        (True, True)
    """
    network = TwoLayer(2 * p, width, p, activation="quadratic", scale=scale, seed=seed)
    # `TwoLayer` divides both layers by the square root of the width.
    first = network.first * (np.sqrt(width / (2 * p)) / alpha)
    second = network.second * alpha**_DEGREE
    return eqx.tree_at(lambda each: (each.first, each.second), network, (first, second))


def rescaled_transformer(p: int, width: int, alpha: float, *, scale: float, seed: int, heads: int = 4) -> Transformer:
    """Draw a transformer with one block; divide its embeddings by α, and multiply its unembedding by α.

    Residual stream, values and the ReLU MLP are homogeneous of degree one in the embeddings, but the attention scores
    are of degree two. For this reason, the initial outputs change with α, unless attention is uniform.

    Args:
        p: Modulus: there are p tokens and p outputs.
        width: Width of the residual stream, a multiple of `heads`.
        alpha: Relative scale α > 0; above one, the embeddings are smaller (upstream).
        scale: Factor on all weights.
        seed: Seed of the draw.
        heads: Number of heads.

    Example:
        >>> even, upstream = (rescaled_transformer(5, 8, alpha, scale=1.0, seed=0) for alpha in (1.0, 2.0))
        >>> bool(np.allclose(even.positions, 2 * upstream.positions))
        True
        >>> bool(np.allclose(2 * even.unembedding, upstream.unembedding))
        True
    """
    network = Transformer(p, 2, p, width=width, heads=heads, scale=scale, seed=seed)
    return eqx.tree_at(
        _ends, network, (network.embedding / alpha, network.positions / alpha, network.unembedding * alpha)
    )


def _ends(network: Any) -> tuple[Any, Any, Any]:
    return network.embedding, network.positions, network.unembedding
