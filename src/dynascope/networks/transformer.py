"""A decoder-only transformer on one-hot tokens or token ids, with outputs at the last position or at every position."""

from __future__ import annotations

import math
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Integer

from dynascope.networks.layer_normalisation import LayerNormalisation
from dynascope.networks.mlp import ActivationName
from dynascope.networks.query_value_biases import QueryValueBiases
from dynascope.networks.transformer_block import TransformerBlock
from dynascope.validation import checked, is_traced, require, require_room
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

__all__ = ["Transformer"]


class Transformer(eqx.Module):
    """A decoder-only transformer that predicts an output at a final token "=", or at every position.

    An input is a row of `length` tokens: integers from 0 to `vocabulary` − 1, or concatenated one-hot tokens as in the
    pairs of `ModularArithmetic`. The residual stream is initially h_t = E[token t] + P[t]. After all blocks, the
    residual stream is multiplied by the unembedding U.

    With outputs at the "last" position, the network appends the token "=" and computes the output at its position.
    Causal attention then affects the output only if there are at least two blocks. With outputs at "all" positions,
    there is no token "=", and integer inputs may have fewer than `length` tokens.

    With `layer_norm`, the inputs of attention, MLP and U are (h − mean)/(standard deviation), with learned gains if
    `layer_norm` is "learned", and with learned shifts if there are biases as well.

    Weights are Gaussian with standard deviation `scale`/√fan-in; embeddings have standard deviation `scale`/√width.
    Learned biases are initially zero. The unembedding has no bias.

    `query_value_biases` adds biases that are not weights: they receive no updates and no weight decay, and `scale` does
    not affect them. Training draws them once per step, with `sampled_outputs`; calls and `features` use their means.

    Attributes:
        embedding: E, shape (vocabulary, width); with outputs at the "last" position, one more row for "=".
        positions: P, shape (length, width); with outputs at the "last" position, one more row for "=".
        blocks: The blocks, in order.
        normalisation: Normalisation of the input of U, or None.
        unembedding: U, shape (width, c).
        outputs: "last" or "all".
        query_value_biases: Biases of queries and values that are not learned, or None.

    Args:
        vocabulary: Number of distinct tokens, without "=".
        length: Number of tokens per input, without "=".
        output_dimension: Number c of outputs per position.
        width: Width of the residual stream.
        heads: Number of heads, which must divide the width.
        hidden_width: Number of hidden neurons per block; None for four times the width.
        blocks: Number of blocks.
        activation: "relu", "tanh", "erf", "gelu" or "linear".
        layer_norm: Whether to use layer normalisation; "learned" for normalisation with learned gains.
        scale: Factor on every weight.
        seed: Seed of the draw.
        outputs: "last" for the output at the final token "=", "all" for outputs at every position.
        causal: Whether positions attend only to themselves and to earlier positions.
        biases: Whether projections and MLPs have learned biases.
        key_value_heads: Number of heads with separate keys and values, which must divide `heads`; None for all heads.
        query_value_biases: Biases of queries and values that are not learned, or None.

    Raises:
        InputError: If a number is not a positive integer, if the scale is not positive, if the weights do not fit into
            memory, if the number of heads does not divide the width, if the number of key-value heads does not divide
            the number of heads, if the activation is unknown, or if the length of an array in
            `query_value_biases` differs from the number of columns of a head.

    References:
        N. Nanda et al., Progress measures for grokking via mechanistic interpretability, arXiv:2301.05217: one block of
        width 128 with four heads and 512 hidden neurons, without normalisation. J. Ainslie et al., arXiv:2305.13245,
        for grouped heads.

    Example:
        >>> network = Transformer(5, 2, 5, width=8, heads=2)
        >>> tokens = np.array([[0, 1], [3, 3], [4, 2]])
        >>> pairs = np.eye(5)[tokens].reshape(3, 10)
        >>> outputs, features = jax.eval_shape(lambda x: (network(x), network.features(x)), pairs)
        >>> outputs.shape, features.shape, network.classifier.shape
        ((3, 5), (3, 8), (8, 5))
        >>> everywhere = Transformer(5, 2, 5, width=8, heads=2, outputs="all")
        >>> jax.eval_shape(everywhere, tokens).shape
        (3, 2, 5)
    """

    embedding: Float[Array | np.ndarray, "tokens width"]
    positions: Float[Array | np.ndarray, "positions width"]
    blocks: tuple[TransformerBlock, ...]
    normalisation: LayerNormalisation | None
    unembedding: Float[Array | np.ndarray, "width c"]
    outputs: Literal["last", "all"] = eqx.field(static=True)
    query_value_biases: QueryValueBiases | None = eqx.field(static=True)

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
        layer_norm: bool | Literal["learned"] = False,
        scale: PositiveFloat = 1.0,
        seed: Seed = 0,
        outputs: Literal["last", "all"] = "last",
        causal: bool = True,
        biases: bool = False,
        key_value_heads: PositiveInt | None = None,
        query_value_biases: QueryValueBiases | None = None,
    ):
        hidden = 4 * width if hidden_width is None else hidden_width
        require(
            width % heads == 0,
            f"heads is {heads}, which does not divide the width {width}",
            argument="heads",
            value=heads,
            remedy="choose a number of heads that divides the width",
        )
        grouped = heads if key_value_heads is None else key_value_heads
        require(
            heads % grouped == 0,
            f"key_value_heads is {grouped}, which does not divide the number of heads {heads}",
            argument="key_value_heads",
            value=grouped,
            remedy="choose a number that divides the number of heads",
        )
        if query_value_biases is not None:
            query_value_biases.means(width // heads)
            query_value_biases.deviations(width // heads)
        ends = int(outputs == "last")
        sizes = {"vocabulary": vocabulary, "length": length, "output_dimension": output_dimension}
        layers = blocks * (2 * width + 2 * grouped * (width // heads) + 2 * hidden) + sum(sizes.values()) + 2 * ends
        chosen = {} if hidden_width is None else {"hidden_width": hidden_width}
        require_room(width * layers, **sizes, **chosen, width=width, blocks=blocks)
        draw = np.random.default_rng(seed)

        def drawn(rows: int, columns: int, input_width: int | None = None) -> np.ndarray:
            return draw.normal(size=(rows, columns)) * (scale / math.sqrt(input_width or rows))

        def normalisation() -> LayerNormalisation | None:
            learned = layer_norm == "learned"
            return LayerNormalisation(width, gain=learned, shift=learned and biases) if layer_norm else None

        self.embedding = drawn(vocabulary + ends, width, width)
        self.positions = drawn(length + ends, width, width)
        self.blocks = tuple(
            TransformerBlock(
                drawn,
                width,
                hidden,
                heads=heads,
                key_value_heads=grouped,
                activation=activation,
                causal=causal,
                biases=biases,
                normalisation=normalisation,
            )
            for _ in range(blocks)
        )
        self.normalisation = normalisation()
        self.unembedding = drawn(width, output_dimension)
        self.outputs = outputs
        self.query_value_biases = query_value_biases

    def __call__(self, x: Float[Array | np.ndarray, "... d"] | Integer[Array | np.ndarray, "... d"]) -> Array:
        """Compute the outputs for one row of tokens or a batch: (…, c), or (…, positions, c) at every position."""
        return self.features(x) @ self.unembedding

    def features(self, x: Float[Array | np.ndarray, "... d"] | Integer[Array | np.ndarray, "... d"]) -> Array:
        """Compute the input of the unembedding: the residual stream, with the means of the unlearned biases."""
        biases = self.query_value_biases
        means = None if biases is None else biases.means(self._head_width)
        return self._features(x, [means] * len(self.blocks))

    def sampled_outputs(self, x: Float[Array | np.ndarray, "... d"] | Integer[Array | np.ndarray, "... d"], key: Any):
        """Compute the outputs of a training step, with unlearned biases drawn from a random key for each block.

        All samples share the biases. Without resampled biases, the outputs are those of a call.
        """
        biases = self.query_value_biases
        if biases is None or not biases.resampled:
            return self(x)
        dtype = self.unembedding.dtype
        drawn = [biases.draw(each, self._head_width, dtype) for each in jax.random.split(key, len(self.blocks))]
        return self._features(x, drawn) @ self.unembedding

    @property
    def classifier(self) -> Float[Array | np.ndarray, "width c"]:
        """The unembedding matrix: outputs = features @ classifier."""
        return self.unembedding

    @property
    def classifier_bias(self) -> Float[np.ndarray, " c"]:
        """The output bias, which is zero."""
        return np.zeros(self.unembedding.shape[1])

    @property
    def heads(self) -> int:
        """Number of heads per block."""
        return self.blocks[0].heads

    @property
    def activation(self) -> ActivationName:
        """Name of σ."""
        return self.blocks[0].activation

    @property
    def vocabulary(self) -> int:
        """Number of distinct tokens, without "="."""
        return len(self.embedding) - self._ends

    def check_inputs(self, inputs: Any) -> None:
        """Raise `InputError` unless inputs are rows of tokens within the vocabulary.

        Inside `jax.jit`, only the shape is known; a token outside the vocabulary then gives NaN.

        Raises:
            InputError: If rows have another number of columns, or if a token is outside the vocabulary.

        Example:
            >>> Transformer(5, 2, 5, width=8, heads=2).check_inputs(np.array([[0, 5]]))
            Traceback (most recent call last):
            ...
            dynascope.errors.InputError: inputs contains the token 5, which is outside the vocabulary: give tokens ...
        """
        vocabulary, length = self.vocabulary, len(self.positions) - self._ends
        columns = inputs.shape[-1] if inputs.ndim else 0
        ids = self._are_ids(inputs)
        require(
            ids or columns == length * vocabulary,
            f"inputs has shape {inputs.shape} and type {inputs.dtype}",
            argument="inputs",
            value=columns,
            remedy=f"give {length * vocabulary} columns, which contain {length} concatenated one-hot tokens of length "
            f"{vocabulary}, or {length} columns of integer tokens",
        )
        if ids and not is_traced(inputs) and inputs.size:
            outside = np.asarray(inputs)[(np.asarray(inputs) < 0) | (np.asarray(inputs) >= vocabulary)]
            require(
                outside.size == 0,
                f"inputs contains the token {outside[0] if outside.size else 0}, which is outside the vocabulary",
                argument="inputs",
                value=int(outside[0]) if outside.size else None,
                remedy=f"give tokens from 0 to {vocabulary - 1}, or a network with a larger vocabulary",
            )

    @property
    def _ends(self) -> int:
        """Number of tokens "=" per input."""
        return int(self.outputs == "last")

    @property
    def _head_width(self) -> int:
        return self.unembedding.shape[0] // self.heads

    def _are_ids(self, x: Array | np.ndarray) -> bool:
        length, columns = len(self.positions) - self._ends, x.shape[-1] if x.ndim else 0
        fits = columns == length if self.outputs == "last" else 0 < columns <= length
        return fits and jnp.issubdtype(x.dtype, jnp.integer)

    def _features(self, x: Array | np.ndarray, unlearned: list[Any]) -> Array:
        h = self._embedded(x)
        for block, biases in zip(self.blocks[:-1], unlearned[:-1], strict=True):
            h = block(h, 0, biases)
        # For an output at the last position, the other positions of the last block are not used.
        h = self.blocks[-1](h, self._ends * (h.shape[-2] - 1), unlearned[-1])
        h = h[..., 0, :] if self.outputs == "last" else h
        return h if self.normalisation is None else self.normalisation(h)

    def _embedded(self, x: Array | np.ndarray) -> Array:
        self.check_inputs(x)
        vocabulary, length = self.vocabulary, len(self.positions) - self._ends
        if self._are_ids(x):
            rows = jnp.asarray(self.embedding[:vocabulary])
            tokens = rows.at[x].get(mode="fill", fill_value=jnp.nan, wrap_negative_indices=False)
        else:
            tokens = jnp.reshape(x, (*x.shape[:-1], length, vocabulary)) @ self.embedding[:vocabulary]
        if self.outputs == "last":
            ends = jnp.broadcast_to(self.embedding[-1], (*x.shape[:-1], 1, tokens.shape[-1]))
            tokens = jnp.concatenate([tokens, ends], axis=-2)
        return tokens + self.positions[: tokens.shape[-2]]
