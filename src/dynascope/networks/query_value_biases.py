"""Biases of queries and values that are not learned, which break the symmetries of attention."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.validation import checked, require
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers, PositiveInt

__all__ = ["QueryValueBiases"]

_QUERY_DEVIATIONS = 0.05, 0.15  # of the first and the last entry of b_Q


@checked
@dataclasses.dataclass(frozen=True)
class QueryValueBiases:
    """Biases b_Q and b_V of queries and values that are not learned: q = W_Q x + b_Q and v = W_V x + b_V.

    In every training step, each attention layer draws

        b_Q = m_Q + s_Q ⊙ ε  and  b_V = m_V + s_V ⊙ ε′

    with standard Gaussian ε and ε′. All heads, tokens and samples of a batch share these biases. In evaluation, the
    biases are their means. A bias of the keys would cancel in the softmax.

    Without the biases, an invertible matrix can be moved from the queries to the keys of a head, or from its values to
    its outputs, without a change of the outputs. A constant bias b breaks this symmetry except for the matrices G with
    Gᵀb = b, and biases that are resampled break it completely over a run. A learned bias beside a constant bias
    restores the symmetry; a learned bias beside resampled biases does not.

    Attributes:
        query_mean: m_Q: a number, or one number for each of the w columns of a head.
        query_deviation: s_Q ≥ 0, as a number or w numbers; None for w numbers that increase linearly from 0.05 to 0.15.
        value_mean: m_V: a number or w numbers.
        value_deviation: s_V ≥ 0: a number or w numbers.
        resampled: Whether every training step draws new biases. If not, the biases are m_Q and m_V in training, too.

    Raises:
        InputError: If a number is not finite, if a deviation is negative, or if an attribute is neither a number nor a
            sequence of numbers.

    References:
        E. Silverstein, D. Kunin, V. Shyam, Symmetry Breaking in Transformers for Efficient and Interpretable Training,
        arXiv:2601.22257; the default means and deviations are those of its public code.

    Example:
        >>> biases = QueryValueBiases(query_mean=[0.5, -0.5], value_mean=0.0)
        >>> biases.means(2)
        (array([ 0.5, -0.5]), array([0., 0.]))
        >>> biases.deviations(2)
        (array([0.05, 0.15]), array([0.05, 0.05]))
    """

    query_mean: FiniteNumbers = 0.5
    query_deviation: NonNegativeNumbers | None = None
    value_mean: FiniteNumbers = 0.5
    value_deviation: NonNegativeNumbers = 0.05
    resampled: bool = True

    def __post_init__(self):
        for name in ("query_mean", "query_deviation", "value_mean", "value_deviation"):
            given = getattr(self, name)
            if given is None:
                continue
            values = np.asarray(given, float)
            require(
                values.ndim <= 1 and values.size > 0,
                f"{name} has shape {values.shape}",
                argument=name,
                value=values.shape,
                remedy="give a number, or one number for each column of a head",
            )
            # Numbers and tuples are hashable, so networks with equal biases share compiled programs.
            object.__setattr__(self, name, tuple(values.tolist()) if values.ndim else float(values))

    @checked
    def means(self, head_width: PositiveInt) -> tuple[Float[np.ndarray, " w"], Float[np.ndarray, " w"]]:
        """The biases in evaluation, m_Q and m_V, each of shape (w,).

        Args:
            head_width: Number w of columns of a head.

        Raises:
            InputError: If an attribute is an array whose length is not w.
        """
        return self._columns("query_mean", head_width), self._columns("value_mean", head_width)

    @checked
    def deviations(self, head_width: PositiveInt) -> tuple[Float[np.ndarray, " w"], Float[np.ndarray, " w"]]:
        """The standard deviations s_Q and s_V, each of shape (w,); zero for constant biases.

        Args:
            head_width: Number w of columns of a head.

        Raises:
            InputError: If an attribute is an array whose length is not w.
        """
        if not self.resampled:
            return np.zeros(head_width), np.zeros(head_width)
        values = self._columns("value_deviation", head_width)
        if self.query_deviation is None:
            return np.linspace(*_QUERY_DEVIATIONS, head_width), values
        return self._columns("query_deviation", head_width), values

    def draw(self, key: Any, head_width: int, dtype: Any = float) -> tuple[Float[Array, " w"], Float[Array, " w"]]:
        """Draw b_Q and b_V for one attention layer in one training step, in pure JAX.

        Args:
            key: JAX random key.
            head_width: Number w of columns of a head.
            dtype: Type of the biases.

        Raises:
            InputError: If an attribute is an array whose length is not w.

        Example:
            >>> constant = QueryValueBiases(resampled=False)
            >>> [bias.tolist() for bias in constant.draw(jax.random.key(0), 2)]
            [[0.5, 0.5], [0.5, 0.5]]
        """
        keys = jax.random.split(key)
        query, value = (
            jnp.asarray(mean, dtype) + jnp.asarray(deviation, dtype) * jax.random.normal(each, (head_width,), dtype)
            for each, mean, deviation in zip(keys, self.means(head_width), self.deviations(head_width), strict=True)
        )
        return query, value

    def _columns(self, name: str, head_width: int) -> np.ndarray:
        values = np.asarray(getattr(self, name))
        require(
            values.shape in ((), (head_width,)),
            f"{name} has {values.size} entries, but a head has {head_width} columns",
            argument=name,
            value=values.size,
            remedy="give a number, or one number for each column of a head",
        )
        return np.broadcast_to(values, (head_width,)).astype(float)
