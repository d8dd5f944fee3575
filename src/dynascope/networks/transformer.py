"""A small decoder-only transformer."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.networks.mlp import ACTIVATIONS, ActivationName
from dynascope.validation import checked, require, require_room
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

__all__ = ["Transformer"]

_SMALLEST_VARIANCE = 1e-5  # added to the variance in layer normalisation


class TransformerBlock(eqx.Module):
    """A transformer block: h ← h + attention(h), then h ← h + σ(h W₁) W₂.

    Each head has w columns of the queries q = h W_Q, keys k = h W_K and values v = h W_V. At position s, a head attends
    to the positions t ≤ s with the weights softmax_t(q_s·k_t/√w). The w rows of W_O that belong to the head map the
    weighted mean of the values to the output. With layer normalisation, attention and MLP receive the normalised h.

    Attributes:
        queries: W_Q, shape (width, width), one block of columns per head.
        keys: W_K, shape (width, width), one block of columns per head.
        values: W_V, shape (width, width), one block of columns per head.
        outputs: W_O, shape (width, width), one block of rows per head.
        first: W₁, shape (width, hidden_width).
        second: W₂, shape (hidden_width, width).
    """

    queries: Float[Array | np.ndarray, "width width"]
    keys: Float[Array | np.ndarray, "width width"]
    values: Float[Array | np.ndarray, "width width"]
    outputs: Float[Array | np.ndarray, "width width"]
    first: Float[Array | np.ndarray, "width hidden"]
    second: Float[Array | np.ndarray, "hidden width"]


class Transformer(eqx.Module):
    """A decoder-only transformer without biases that predicts an output at a final token "=".

    An input is a row of `length` concatenated one-hot tokens, as in the pairs of `ModularArithmetic`. The residual
    stream is initially h_t = E[token t] + P[t], with the token "=" at the last position. After all blocks, the residual
    stream at the last position is multiplied by the unembedding U. Attention is causal, which affects the output only
    if there are at least two blocks. With `layer_norm`, the inputs of attention, MLP and U are (h − mean)/(standard
    deviation), without gain and bias.

    Weights are Gaussian with standard deviation `scale`/√fan-in; embeddings have standard deviation `scale`/√width.

    Attributes:
        embedding: E, shape (vocabulary + 1, width); the last row is "=".
        positions: P, shape (length + 1, width).
        blocks: The blocks, in order.
        unembedding: U, shape (width, c).
        heads: Number of heads per block.
        activation: Name of σ.
        layer_norm: Whether the network has layer normalisation.

    Args:
        vocabulary: Number of distinct tokens, without "=".
        length: Number of tokens per input, without "=".
        output_dimension: Number c of outputs.
        width: Width of the residual stream.
        heads: Number of heads, which must divide the width.
        hidden_width: Number of hidden neurons per block; None for four times the width.
        blocks: Number of blocks.
        activation: "relu", "tanh", "erf", "gelu" or "linear".
        layer_norm: Whether to use layer normalisation.
        scale: Factor on every weight.
        seed: Seed of the draw.

    Raises:
        InputError: If a number is not a positive integer, if the scale is not positive, if the weights do not fit into
            memory, if the number of heads does not divide the width, or if the activation is unknown.

    References:
        N. Nanda et al., Progress measures for grokking via mechanistic interpretability, arXiv:2301.05217: one block of
        width 128 with four heads and 512 hidden neurons, without normalisation.

    Example:
        >>> network = Transformer(5, 2, 5, width=8, heads=2)
        >>> pairs = np.eye(5)[[[0, 1], [3, 3], [4, 2]]].reshape(3, 10)
        >>> outputs, features = jax.eval_shape(lambda x: (network(x), network.features(x)), pairs)
        >>> outputs.shape, features.shape, network.classifier.shape
        ((3, 5), (3, 8), (8, 5))
    """

    embedding: Float[Array | np.ndarray, "tokens width"]
    positions: Float[Array | np.ndarray, "positions width"]
    blocks: tuple[TransformerBlock, ...]
    unembedding: Float[Array | np.ndarray, "width c"]
    heads: int = eqx.field(static=True)
    activation: ActivationName = eqx.field(static=True)
    layer_norm: bool = eqx.field(static=True)

    @checked
    def __init__(
        self,
        vocabulary: PositiveInt,
        length: PositiveInt,
        output_dimension: PositiveInt,
        *,
        width: PositiveInt = 128,
        heads: PositiveInt = 4,
        hidden_width: PositiveInt | None = None,
        blocks: PositiveInt = 1,
        activation: ActivationName = "relu",
        layer_norm: bool = False,
        scale: PositiveFloat = 1.0,
        seed: Seed = 0,
    ):
        hidden = 4 * width if hidden_width is None else hidden_width
        require(
            width % heads == 0,
            f"heads is {heads}, which does not divide the width {width}",
            argument="heads",
            value=heads,
            remedy="choose a number of heads that divides the width",
        )
        sizes = {"vocabulary": vocabulary, "length": length, "output_dimension": output_dimension}
        layers = blocks * (4 * width + 2 * hidden) + sum(sizes.values()) + 2
        chosen = {} if hidden_width is None else {"hidden_width": hidden_width}
        require_room(width * layers, **sizes, **chosen, width=width, blocks=blocks)
        draw = np.random.default_rng(seed)

        def drawn(rows: int, columns: int, input_width: int) -> np.ndarray:
            return draw.normal(size=(rows, columns)) * (scale / math.sqrt(input_width))

        self.embedding = drawn(vocabulary + 1, width, width)
        self.positions = drawn(length + 1, width, width)
        self.blocks = tuple(
            TransformerBlock(
                *(drawn(width, width, width) for _ in range(4)),
                first=drawn(width, hidden, width),
                second=drawn(hidden, width, hidden),
            )
            for _ in range(blocks)
        )
        self.unembedding = drawn(width, output_dimension, width)
        self.heads = heads
        self.activation = activation
        self.layer_norm = layer_norm

    def __call__(self, x: Float[Array | np.ndarray, "... d"]) -> Float[Array, "... c"]:
        """Compute the outputs for one row of tokens or a batch."""
        return self.features(x) @ self.unembedding

    def features(self, x: Float[Array | np.ndarray, "... d"]) -> Float[Array, "... width"]:
        """Compute the input of the unembedding: the residual stream at the last position."""
        h = self._embedded(x)
        for block in self.blocks[:-1]:
            h = self._passed(block, h, 0)
        # The other positions of the last block are not used.
        return self._normalised(self._passed(self.blocks[-1], h, h.shape[-2] - 1)[..., 0, :])

    @property
    def classifier(self) -> Float[Array | np.ndarray, "width c"]:
        """The unembedding matrix: outputs = features @ classifier."""
        return self.unembedding

    @property
    def classifier_bias(self) -> Float[np.ndarray, " c"]:
        """The output bias, which is zero."""
        return np.zeros(self.unembedding.shape[1])

    def _embedded(self, x: Array | np.ndarray) -> Array:
        vocabulary, length = len(self.embedding) - 1, len(self.positions) - 1
        require(
            x.shape[-1] == length * vocabulary,
            f"inputs has shape {x.shape}",
            argument="inputs",
            value=x.shape[-1],
            remedy=f"give {length * vocabulary} columns, which contain {length} concatenated one-hot tokens of length "
            f"{vocabulary}",
        )
        tokens = jnp.reshape(x, (*x.shape[:-1], length, vocabulary)) @ self.embedding[:-1]
        ends = jnp.broadcast_to(self.embedding[-1], (*x.shape[:-1], 1, tokens.shape[-1]))
        return jnp.concatenate([tokens, ends], axis=-2) + self.positions

    def _passed(self, block: TransformerBlock, h: Array, start: int) -> Array:
        """Apply a block, and return the residual stream at position `start` and all later positions."""
        normal = self._normalised(h)
        queries, keys, values = (
            jnp.reshape(part @ weights, (*part.shape[:-1], self.heads, -1))
            for part, weights in (
                (normal[..., start:, :], block.queries),
                (normal, block.keys),
                (normal, block.values),
            )
        )
        scores = jnp.einsum("...shk,...thk->...hst", queries, keys) / math.sqrt(keys.shape[-1])
        place = jnp.arange(h.shape[-2])
        weights = jax.nn.softmax(jnp.where(place <= place[start:, None], scores, -jnp.inf))
        mixed = jnp.einsum("...hst,...thk->...shk", weights, values)
        h = h[..., start:, :] + jnp.reshape(mixed, (*mixed.shape[:-2], -1)) @ block.outputs
        return h + ACTIVATIONS[self.activation](self._normalised(h) @ block.first) @ block.second

    def _normalised(self, h: Array) -> Array:
        if not self.layer_norm:
            return h
        centred = h - jnp.mean(h, axis=-1, keepdims=True)
        return centred / jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + _SMALLEST_VARIANCE)
