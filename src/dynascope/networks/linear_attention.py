"""Linear self-attention for in-context linear regression."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from dynascope.validation import array_namespace, checked, require, require_room
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

__all__ = ["LinearAttention", "MergedAttention", "context_and_query"]


class LinearAttention(eqx.Module):
    """Linear attention with rank-one keys and queries.

        f(prompt) = Σ_h v_h (1/N Σ_n y_n x_n)ᵀ k_h · q_hᵀ x_query

    A prompt is a row of (N + 1)(d + 1) numbers: N labelled examples (x_n, y_n), followed by the query (x_query, 0). The
    network accepts prompts of any length N. The output depends on the weights only through the matrix P = Σ_h v_h k_h
    q_hᵀ, and each head has degree 3 in its weights.

    The weights are Gaussian with standard deviation `scale` for v and `scale`/√d for k and q. At unit scale, v², ‖k‖²
    and ‖q‖² of a head are one in expectation.

    Attributes:
        v: Value weight of each head, shape (H,).
        k: Key weights of each head, shape (H, d).
        q: Query weights of each head, shape (H, d).

    Args:
        dimension: Dimension d of the inputs x.
        heads: Number H of heads.
        scale: Factor on every weight.
        seed: Seed of the draw.

    Raises:
        InputError: If the dimension, the number of heads or the scale is not positive.

    References:
        Zhang, Singh, Latham, Saxe, Training dynamics of in-context learning in linear attention (arXiv:2501.16265).

    Example:
        >>> network = LinearAttention(3, 4, seed=1)
        >>> eqx.filter_jit(network)(np.ones((5, 11 * 4))).shape, network.neurons.shape, network.degree
        ((5, 1), (4, 7), 3)
    """

    v: Float[Array | np.ndarray, " heads"]
    k: Float[Array | np.ndarray, "heads d"]
    q: Float[Array | np.ndarray, "heads d"]

    @checked
    def __init__(self, dimension: PositiveInt, heads: PositiveInt, *, scale: PositiveFloat = 1.0, seed: Seed = 0):
        require_room((2 * dimension + 1) * heads, dimension=dimension, heads=heads)
        draw = np.random.default_rng(seed)
        self.v = draw.normal(size=heads) * scale
        self.k = draw.normal(size=(heads, dimension)) * (scale / np.sqrt(dimension))
        self.q = draw.normal(size=(heads, dimension)) * (scale / np.sqrt(dimension))

    @property
    def degree(self) -> int:
        """Degree of homogeneity κ of a head in its weights."""
        return 3

    @property
    def matrix(self) -> Float[Array | np.ndarray, "d d"]:
        """P = Σ_h v_h k_h q_hᵀ."""
        return (self.k * self.v[:, None]).T @ self.q

    @property
    def neurons(self) -> Float[Array | np.ndarray, "heads weights"]:
        """Θ, shape (H, 2d + 1): each row contains v, k and q of one head."""
        return array_namespace(self.v).concatenate([self.v[:, None], self.k, self.q], axis=1)

    def with_neurons(self, rows: Float[Array | np.ndarray, "heads weights"]) -> LinearAttention:
        """Replace the weights; the number of heads can change."""
        d = self.k.shape[1]
        weights = rows[:, 0], rows[:, 1 : d + 1], rows[:, d + 1 :]
        return eqx.tree_at(lambda network: (network.v, network.k, network.q), self, weights)

    def weighted(self, coefficients: Float[Array | np.ndarray, " heads"]) -> LinearAttention:
        """Multiply the output of each head h by c_h: Σ_h c_h f_h."""
        return eqx.tree_at(lambda network: network.v, self, coefficients * self.v)

    def __call__(self, prompts: Float[ArrayLike, "... D"]) -> Float[Array, "... 1"]:
        """Predict the label of the query for one prompt or a batch."""
        return _attend(prompts, self.matrix)


class MergedAttention(eqx.Module):
    """Linear attention with merged keys and queries.

        f(prompt) = Σ_h v_h (1/N Σ_n y_n x_n)ᵀ K_h x_query

    Prompts have the same format as for `LinearAttention`. The output depends on the weights only through the matrix
    P = Σ_h v_h K_h, and each head has degree 2 in its weights.

    The weights are Gaussian with standard deviation `scale` for v and `scale`/d for K. At unit scale, v² and ‖K‖² of a
    head are one in expectation.

    Attributes:
        v: Value weight of each head, shape (H,).
        K: Merged key and query weights of each head, shape (H, d, d).

    Args:
        dimension: Dimension d of the inputs x.
        heads: Number H of heads.
        scale: Factor on every weight.
        seed: Seed of the draw.

    Raises:
        InputError: If the dimension, the number of heads or the scale is not positive.

    References:
        Zhang, Singh, Latham, Saxe, Training dynamics of in-context learning in linear attention (arXiv:2501.16265).

    Example:
        >>> network = MergedAttention(3, 4, seed=1)
        >>> eqx.filter_jit(network)(np.ones((5, 11 * 4))).shape, network.neurons.shape, network.degree
        ((5, 1), (4, 10), 2)
    """

    v: Float[Array | np.ndarray, " heads"]
    K: Float[Array | np.ndarray, "heads d d"]

    @checked
    def __init__(self, dimension: PositiveInt, heads: PositiveInt, *, scale: PositiveFloat = 1.0, seed: Seed = 0):
        require_room((dimension**2 + 1) * heads, dimension=dimension, heads=heads)
        draw = np.random.default_rng(seed)
        self.v = draw.normal(size=heads) * scale
        self.K = draw.normal(size=(heads, dimension, dimension)) * (scale / dimension)

    @property
    def degree(self) -> int:
        """Degree of homogeneity κ of a head in its weights."""
        return 2

    @property
    def matrix(self) -> Float[Array | np.ndarray, "d d"]:
        """P = Σ_h v_h K_h."""
        heads, dimension, _ = self.K.shape
        return (self.v @ self.K.reshape(heads, -1)).reshape(dimension, dimension)

    @property
    def neurons(self) -> Float[Array | np.ndarray, "heads weights"]:
        """Θ, shape (H, d² + 1): each row contains v of one head, followed by the rows of K."""
        return array_namespace(self.v).concatenate([self.v[:, None], self.K.reshape(len(self.K), -1)], axis=1)

    def with_neurons(self, rows: Float[Array | np.ndarray, "heads weights"]) -> MergedAttention:
        """Replace the weights; the number of heads can change."""
        weights = rows[:, 0], rows[:, 1:].reshape(-1, *self.K.shape[1:])
        return eqx.tree_at(lambda network: (network.v, network.K), self, weights)

    def weighted(self, coefficients: Float[Array | np.ndarray, " heads"]) -> MergedAttention:
        """Multiply the output of each head h by c_h: Σ_h c_h f_h."""
        return eqx.tree_at(lambda network: network.v, self, coefficients * self.v)

    def __call__(self, prompts: Float[ArrayLike, "... D"]) -> Float[Array, "... 1"]:
        """Predict the label of the query for one prompt or a batch."""
        return _attend(prompts, self.matrix)


def context_and_query(
    prompts: Float[ArrayLike, "... D"], dimension: int
) -> tuple[Float[Array, "... d"], Float[Array, "... d"]]:
    """Compute 1/N Σ_n y_n x_n and x_query, which determine the output of linear attention.

    Args:
        prompts: Rows of (N + 1)(d + 1) numbers.
        dimension: Dimension d of the inputs x.

    Raises:
        InputError: If the rows do not have this length.

    Example:
        >>> context, query = context_and_query(np.array([2.0, 1.0, 3.0, 0.0]), 1)
        >>> context.tolist(), query.tolist()
        ([2.0], [3.0])
    """
    prompts = jnp.asarray(prompts)
    width = prompts.shape[-1]
    require(
        width % (dimension + 1) == 0 and width >= 2 * (dimension + 1),
        f"each row of prompts has {width} numbers",
        argument="prompts",
        value=width,
        remedy=f"give rows of (N + 1)·{dimension + 1} numbers, which contain an input and a label for each of N ≥ 1 "
        "examples and the query",
    )
    tokens = prompts.reshape(*prompts.shape[:-1], -1, dimension + 1)
    inputs, labels, query = tokens[..., :-1, :-1], tokens[..., :-1, -1], tokens[..., -1, :-1]
    return jnp.mean(labels[..., None] * inputs, axis=-2), query


def _attend(prompts: ArrayLike, matrix: Any) -> Array:
    context, query = context_and_query(prompts, len(matrix))
    return jnp.sum((context @ matrix) * query, axis=-1, keepdims=True)
