"""Alignment of the keys of a token class with the mean bias of the queries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.validation import checked, require, require_array
from dynascope.validation.bounded_scalars import PositiveInt, Seed

__all__ = ["Alignment", "alignment"]


class Alignment(NamedTuple):
    """Alignment of keys with a direction, compared with random directions.

    Attributes:
        cosines: A = mean over tokens of cos(k_t, m_Q), shape (blocks, heads).
        largest: max |A| over blocks and heads.
        excess: `largest` minus its mean over random directions.
        quantile: The 95 % quantile of max |A| over random directions.
        p_value: Probability that a random direction reaches `largest`: (1 + number that do)/(1 + directions).
    """

    cosines: Float[np.ndarray, "block head"]
    largest: float
    excess: float
    quantile: float
    p_value: float


@checked
def alignment(
    keys: ArrayLike,
    direction: ArrayLike,
    members: ArrayLike,
    *,
    directions: PositiveInt = 1000,
    seed: Seed = 0,
) -> Alignment:
    """Test whether the keys of a class of tokens are aligned with the mean bias of the queries.

        A_h = mean over tokens t of cos(k_t, m_Q),   k_t = W_K x_t in head h

    The null hypothesis is that m_Q has a random direction, unrelated to the keys. Each of its samples replaces m_Q by
    one uniformly random direction in all heads of all blocks. The statistic is the maximum of |A_h| over heads and
    blocks, for m_Q as for random directions, so the p-value needs no correction for the number of heads. The keys are
    the same in all samples, so dependent tokens and heads do not affect its validity. If several classes are tested,
    multiply the p-values by the number of classes (Bonferroni).

    Args:
        keys: k_t, shape (blocks, heads, tokens, d).
        direction: m_Q, shape (d,), not zero. For d = 1, all directions have the same |A_h|, and the p-value is 1.
        members: Which tokens belong to the class, shape (tokens,).
        directions: Number of random directions; the smallest possible p-value is 1/(1 + directions).
        seed: Seed of the random directions.

    Returns:
        The cosines of each head, the excess of the largest one over the null hypothesis, and its p-value.

    Raises:
        InputError: If shapes do not match, if m_Q or a key of the class is zero, or if the class has no tokens.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> keys, bias = rng.normal(size=(2, 3, 50, 8)), np.full(8, 0.5)
        >>> alignment(keys, bias, np.ones(50, bool)).p_value > 0.05
        True
        >>> alignment(keys + bias, bias, np.ones(50, bool)).p_value < 0.01
        True
    """
    keys = require_array("keys", keys, (None, None, None, None))
    _, _, tokens, dimension = keys.shape
    direction = require_array("direction", direction, (dimension,))
    members = np.asarray(members)
    require(
        members.shape == (tokens,) and members.dtype == bool,
        f"members has shape {members.shape} and type {members.dtype}, but there are {tokens} tokens",
        argument="members",
        value=members.shape,
        remedy="give one truth value for each token",
    )
    require(
        members.any(),
        "members contains no token",
        argument="members",
        value=0,
        remedy="give a class that occurs in the text, or a longer text",
    )
    # The mean of cos(k_t, u) over tokens is the product of u with the mean unit vector of the keys.
    means = _unit("keys", keys[:, :, members]).mean(axis=2)
    cosines = means @ _unit("direction", direction)
    random = np.random.default_rng(seed).normal(size=(directions, dimension))
    null = np.abs(means.reshape(-1, dimension) @ _unit("random directions", random).T).max(axis=0)
    largest = float(np.abs(cosines).max())
    # Rounding must not decide a tie, as in one dimension.
    reached = int(np.count_nonzero(null >= largest * (1 - 1e-12)))
    return Alignment(
        cosines,
        largest,
        largest - float(null.mean()),
        float(np.quantile(null, 0.95)),
        (1 + reached) / (1 + directions),
    )


def _unit(name: str, vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    require(
        bool(np.all(lengths > 0)),
        f"{name} contains a zero vector, whose direction is undefined",
        argument=name,
        value=0.0,
        remedy="give vectors that are not zero",
    )
    return vectors / lengths
