"""A block of a transformer: multi-head attention and an MLP, both added to the residual stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.networks.layer_normalisation import LayerNormalisation
from dynascope.networks.mlp import ACTIVATIONS, ActivationName

__all__ = ["TransformerBlock"]


class TransformerBlock(eqx.Module):
    """A transformer block: h ← h + attention(h), then h ← h + σ(h W₁ + b₁) W₂ + b₂.

    Each head has w columns of the queries q = h W_Q + b_q, keys k = h W_K + b_k and values v = h W_V + b_v. At position
    s, a head attends to the positions t ≤ s, or to all positions t without the causal mask, with the weights
    softmax_t(q_s·k_t/√w). The w rows of W_O that belong to the head map the weighted mean of the values to the output,
    to which b_o is added. With layer normalisation, attention and MLP receive the normalised h.

    With grouped heads, several consecutive heads share the keys and values of one key-value head.

    Attributes:
        queries: W_Q, shape (width, width), one block of columns per head.
        keys: W_K, shape (width, key_value_heads · w), one block of columns per key-value head.
        values: W_V, shape (width, key_value_heads · w), one block of columns per key-value head.
        outputs: W_O, shape (width, width), one block of rows per head.
        first: W₁, shape (width, hidden_width).
        second: W₂, shape (hidden_width, width).
        query_bias: b_q, shape (width,); None, like all other biases, without learned biases.
        key_bias: b_k, shape (key_value_heads · w,).
        value_bias: b_v, shape (key_value_heads · w,).
        output_bias: b_o, shape (width,).
        first_bias: b₁, shape (hidden_width,).
        second_bias: b₂, shape (width,).
        attention_normalisation: Normalisation of the input of attention, or None.
        mlp_normalisation: Normalisation of the input of the MLP, or None.
        heads: Number of heads.
        activation: Name of σ.
        causal: Whether positions attend only to themselves and to earlier positions.
    """

    queries: Float[Array | np.ndarray, "width width"]
    keys: Float[Array | np.ndarray, "width grouped"]
    values: Float[Array | np.ndarray, "width grouped"]
    outputs: Float[Array | np.ndarray, "width width"]
    first: Float[Array | np.ndarray, "width hidden"]
    second: Float[Array | np.ndarray, "hidden width"]
    query_bias: Float[Array | np.ndarray, " width"] | None
    key_bias: Float[Array | np.ndarray, " grouped"] | None
    value_bias: Float[Array | np.ndarray, " grouped"] | None
    output_bias: Float[Array | np.ndarray, " width"] | None
    first_bias: Float[Array | np.ndarray, " hidden"] | None
    second_bias: Float[Array | np.ndarray, " width"] | None
    attention_normalisation: LayerNormalisation | None
    mlp_normalisation: LayerNormalisation | None
    heads: int = eqx.field(static=True)
    activation: ActivationName = eqx.field(static=True)
    causal: bool = eqx.field(static=True)

    def __init__(
        self,
        drawn: Callable[[int, int], np.ndarray],
        width: int,
        hidden: int,
        *,
        heads: int,
        key_value_heads: int,
        activation: ActivationName,
        causal: bool,
        biases: bool,
        normalisation: Callable[[], LayerNormalisation | None],
    ):
        """Draw the weights.

        Args:
            drawn: Function that draws a matrix of the given numbers of rows and columns.
            width: Width of the residual stream.
            hidden: Number of hidden neurons of the MLP.
            heads: Number of heads.
            key_value_heads: Number of heads with separate keys and values, a divisor of `heads`.
            activation: Name of σ.
            causal: Whether attention is causal.
            biases: Whether biases are learned; they are initially zero.
            normalisation: Function that makes a normalisation, or returns None.
        """

        def zeros(length: int) -> np.ndarray | None:
            return np.zeros(length) if biases else None

        grouped = key_value_heads * (width // heads)
        # The order of the draws fixes the initial weights of a seed.
        self.first, self.second = drawn(width, hidden), drawn(hidden, width)
        self.queries, self.keys = drawn(width, width), drawn(width, grouped)
        self.values, self.outputs = drawn(width, grouped), drawn(width, width)
        self.query_bias, self.key_bias = zeros(width), zeros(grouped)
        self.value_bias, self.output_bias = zeros(grouped), zeros(width)
        self.first_bias, self.second_bias = zeros(hidden), zeros(width)
        self.attention_normalisation, self.mlp_normalisation = normalisation(), normalisation()
        self.heads, self.activation, self.causal = heads, activation, causal

    def __call__(
        self,
        h: Float[Array, "... positions width"],
        start: int = 0,
        unlearned: tuple[Float[Array | np.ndarray, " w"], Float[Array | np.ndarray, " w"]] | None = None,
    ) -> Float[Array, "... _ width"]:
        """Compute the residual stream at position `start` and all later positions.

        Args:
            h: Residual stream at all positions.
            start: First position of the result.
            unlearned: Biases of the queries and the values, shared by all heads and positions, which are not weights of
                the block; None for zero.
        """
        affine = _affine_of_rows if start == 0 else _affine
        normal = h if self.attention_normalisation is None else self.attention_normalisation(h)
        mixed = self._attention(normal, start, unlearned)
        h = h[..., start:, :] + affine(mixed, self.outputs, self.output_bias)
        normal = h if self.mlp_normalisation is None else self.mlp_normalisation(h)
        hidden = ACTIVATIONS[self.activation](affine(normal, self.first, self.first_bias))
        return h + affine(hidden, self.second, self.second_bias)

    def _attention(self, normal: Array, start: int, unlearned: tuple[Any, Any] | None) -> Array:
        """Compute the weighted means of the values, with the heads concatenated."""
        width = self.queries.shape[1] // self.heads
        affine = _affine_of_rows if start == 0 else _affine
        query_bias, value_bias = (None, None) if unlearned is None else unlearned
        queries = _in_heads(affine(normal[..., start:, :], self.queries, self.query_bias), width, query_bias)
        keys = _in_heads(affine(normal, self.keys, self.key_bias), width)
        values = _in_heads(affine(normal, self.values, self.value_bias), width, value_bias)
        if keys.shape[-2] < self.heads:
            keys, values = (jnp.repeat(each, self.heads // each.shape[-2], axis=-2) for each in (keys, values))
        scores = jnp.einsum("...shk,...thk->...hst", queries, keys) / math.sqrt(width)
        if self.causal:
            place = jnp.arange(normal.shape[-2])
            scores = jnp.where(place <= place[start:, None], scores, -jnp.inf)
        mixed = jnp.einsum("...hst,...thk->...shk", jax.nn.softmax(scores), values)
        return jnp.reshape(mixed, (*mixed.shape[:-2], -1))


def _affine(h: Array, weights: Array | np.ndarray, bias: Array | np.ndarray | None) -> Array:
    z = h @ weights
    return z if bias is None else z + bias


def _affine_of_rows(h: Array, weights: Array | np.ndarray, bias: Array | np.ndarray | None) -> Array:
    """Compute `_affine` as one product of matrices, which is faster on CPUs but rounds gradients differently."""
    z = _affine(jnp.reshape(h, (-1, h.shape[-1])), weights, bias)
    return jnp.reshape(z, (*h.shape[:-1], z.shape[-1]))


def _in_heads(z: Array, width: int, bias: Array | np.ndarray | None = None) -> Array:
    """Split the columns into heads of the given width, and add a bias to each head."""
    z = jnp.reshape(z, (*z.shape[:-1], -1, width))
    return z if bias is None else z + jnp.asarray(bias, z.dtype)
