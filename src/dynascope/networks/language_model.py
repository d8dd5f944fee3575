"""A GPT: a transformer that predicts the next token at every position."""

from __future__ import annotations

from typing import Literal

from dynascope.networks.mlp import ActivationName
from dynascope.networks.query_value_biases import QueryValueBiases
from dynascope.networks.transformer import Transformer
from dynascope.validation import checked
from dynascope.validation.bounded import PositiveInt, Seed

__all__ = ["language_model"]


@checked
def language_model(
    vocabulary: PositiveInt,
    context: PositiveInt,
    *,
    width: PositiveInt = 128,
    heads: PositiveInt = 4,
    blocks: PositiveInt = 4,
    hidden_width: PositiveInt | None = None,
    key_value_heads: PositiveInt | None = None,
    activation: ActivationName = "gelu",
    biases: bool = True,
    broken_symmetry: Literal["resampled", "constant"] | QueryValueBiases | None = None,
    seed: Seed = 0,
) -> Transformer:
    """A GPT, plain or with broken symmetry of its attention.

    The network is a causal `Transformer` on integer tokens with outputs at every position, learned layer normalisation
    before attention, MLP and unembedding, and learned biases. Train it with the loss "cross_entropy" on `Labelled`
    samples: the inputs are tokens (n, context), and the labels are the next tokens (n, context).

    The architecture is that of GPT-2, except that the unembedding is not tied to the embedding and weights have
    standard deviation 1/√fan-in.

    Args:
        vocabulary: Number of distinct tokens.
        context: Largest number of tokens per input.
        width: Width of the residual stream.
        heads: Number of heads, which must divide the width.
        blocks: Number of blocks.
        hidden_width: Number of hidden neurons per block; None for four times the width.
        key_value_heads: Number of heads with separate keys and values; None for all heads.
        activation: "relu", "tanh", "erf", "gelu" or "linear".
        biases: Whether projections, MLPs and normalisations have learned biases. Constant biases of queries and values
            break no symmetry beside learned biases.
        broken_symmetry: None for a plain GPT; "resampled" or "constant" for biases of queries and values that are not
            learned, with the default means and deviations; or `QueryValueBiases`.
        seed: Seed of the draw.

    Raises:
        InputError: If `Transformer` rejects an argument.

    References:
        A. Radford et al., Language Models are Unsupervised Multitask Learners (2019).

    Example:
        >>> import jax, numpy as np
        >>> network = language_model(50, 16, width=32, blocks=2, broken_symmetry="resampled")
        >>> jax.eval_shape(network, np.zeros((3, 16), int)).shape
        (3, 16, 50)
    """
    unlearned = broken_symmetry
    if isinstance(unlearned, str):
        unlearned = QueryValueBiases(resampled=unlearned == "resampled")
    return Transformer(
        vocabulary,
        context,
        vocabulary,
        width=width,
        heads=heads,
        hidden_width=hidden_width,
        blocks=blocks,
        activation=activation,
        layer_norm="learned",
        seed=seed,
        outputs="all",
        biases=biases,
        key_value_heads=key_value_heads,
        query_value_biases=unlearned,
    )
