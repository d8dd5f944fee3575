"""A convolutional network with large first-layer filters, and the relative scale of its first and last layer."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.networks.convolution import mean_pooled
from dynascope.studies.regimes.filters.patches import TURNS

__all__ = ["FilterNetwork", "filter_network"]

_POOLED = 2  # side of the squares over which the responses are averaged


class FilterNetwork(eqx.Module):
    """A convolution, a hidden layer and a linear classifier, with ReLUs and without biases.

    The inputs are the windows of the convolution, so that its filters are the columns of a matrix.

    Attributes:
        filters: Shape (kernel², filters).
        hidden: Shape (positions · filters, width).
        last: Shape (width, 4).
    """

    filters: Float[Array | np.ndarray, "pixels filters"]
    hidden: Float[Array | np.ndarray, "responses width"]
    last: Float[Array | np.ndarray, "width turns"]

    def __call__(self, x: Float[Array | np.ndarray, "n positions pixels"]) -> Any:
        """Compute the logits of a batch of windows."""
        responses = jax.nn.relu(x @ self.filters)
        side = math.isqrt(x.shape[1])
        pooled = mean_pooled(responses.reshape(len(x), side, side, -1), _POOLED)
        features = jax.nn.relu(pooled.reshape(len(x), -1) @ self.hidden)
        return features @ self.last


def filter_network(
    relative_scale: float, *, kernel: int, filters: int, positions: int, width: int, seed: int
) -> FilterNetwork:
    """Draw weights of variance 2/fan-in; then divide the first layer by α, and multiply the last one by α.

    ReLU networks are homogeneous, so the initial function is the same for all α.

    Example:
        >>> one, two = (
        ...     filter_network(scale, kernel=7, filters=3, positions=4, width=5, seed=0) for scale in (0.5, 4.0)
        ... )
        >>> x = np.random.default_rng(0).normal(size=(2, 4, 49)).astype(np.float32)
        >>> bool(np.allclose(one(x), two(x), atol=1e-5))
        True
    """
    draw = np.random.default_rng(seed)
    pooled = (math.isqrt(positions) // _POOLED) ** 2
    shapes = (kernel**2, filters), (pooled * filters, width), (width, TURNS)
    factors = 1 / relative_scale, 1.0, relative_scale
    layers = [
        jnp.asarray(factor * draw.normal(scale=math.sqrt(2 / shape[0]), size=shape), jnp.float32)
        for shape, factor in zip(shapes, factors, strict=True)
    ]
    return FilterNetwork(*layers)
