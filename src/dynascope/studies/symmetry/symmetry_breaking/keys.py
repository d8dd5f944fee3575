"""The keys of every head of a transformer."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Integer

from dynascope.compilation import filter_jit
from dynascope.networks import Transformer

__all__ = ["keys"]


def keys(
    network: Transformer, tokens: Integer[np.ndarray, "windows positions"]
) -> Float[np.ndarray, "block head token d"]:
    """Compute the keys k_t = W_K x_t of every head, for the normalised inputs x_t of attention.

    Args:
        network: A transformer on integer tokens with outputs at all positions.
        tokens: Windows of tokens.

    Returns:
        The keys, shape (blocks, heads, windows · positions, head width), in double precision.
    """
    return np.asarray(_keys(network, tokens), float)


@filter_jit
def _keys(network: Transformer, tokens: Any) -> Any:
    head_width = network.blocks[0].queries.shape[1] // network.heads
    means = None if network.query_value_biases is None else network.query_value_biases.means(head_width)
    h = jnp.asarray(network.embedding)[tokens] + network.positions[: tokens.shape[1]]
    found = []
    for block in network.blocks:
        normal = h if block.attention_normalisation is None else block.attention_normalisation(h)
        flat = jnp.reshape(normal @ block.keys, (tokens.size, -1, head_width))
        found.append(jnp.moveaxis(flat, 1, 0))
        h = block(h, 0, means)
    return jnp.stack(found)
