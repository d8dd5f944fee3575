"""Modes of in-context regression, loss levels of linear attention, and utilities of its heads."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Float, Real
from numpy.typing import ArrayLike

from dynascope.results.named_tuples import short_repr
from dynascope.theory.finite_answers import finite_answers
from dynascope.validation import checked, require, require_at_least, require_covariance, require_shape
from dynascope.validation.bounded import FiniteNumbers, PositiveInt

__all__ = [
    "AttentionModes",
    "Heads",
    "attention_levels",
    "attention_modes",
    "attention_utility",
    "context_correlation",
    "split_heads",
]

# Variances below this fraction of the largest variance are rounding errors.
_NO_VARIANCE = 1e-12

Heads: TypeAlias = IsFinite[Real[ArrayLike, "heads weights"]]


@dataclasses.dataclass(frozen=True)
class AttentionModes:
    """Eigendirections of Σ with positive variance, strongest first.

    Attributes:
        variances: Positive eigenvalues λ of Σ in decreasing order, shape (m,).
        gains: Gain γ = (1 + 1/N) λ + tr Σ/N of each mode, for contexts of N examples, shape (m,). After learning, the
            attention matrix P has the value 1/γ along the mode.
        axes: Unit eigenvectors as columns, each with a positive largest entry, shape (d, m).
        trace: tr Σ.
    """

    variances: Float[np.ndarray, " mode"]
    gains: Float[np.ndarray, " mode"]
    axes: Float[np.ndarray, "d mode"]
    trace: float

    __repr__ = short_repr

    def levels(self, order: Sequence[int]) -> Float[np.ndarray, " level"]:
        """Return the loss before and after each of the given modes is learned, in the given order."""
        drops = (self.variances**2 / self.gains)[list(order)]
        levels = (self.trace - np.concatenate([[0.0], np.cumsum(drops)])) / 2
        # With infinite context the last level is zero up to rounding.
        return np.where(levels > _NO_VARIANCE * self.trace, levels, 0.0)


@finite_answers()
def attention_modes(covariance: FiniteNumbers, context_length: float) -> AttentionModes:
    """Compute the modes of in-context regression: the eigenvectors of Σ with positive variance.

    The empirical covariance Σ̂ of a context of N examples satisfies E[Σ̂²] = Σ (Σ + (Σ + tr Σ I)/N), so a mode of
    variance λ has the gain λ + (λ + tr Σ)/N. The variances and gains determine the loss and the levels of
    `attention_levels`.

    Args:
        covariance: Σ, symmetric and positive semidefinite, shape (d, d), or the d variances of independent inputs.
        context_length: Number of examples N ≥ 1; ∞ is allowed.

    Raises:
        InputError: If N is below one, or Σ is not symmetric, positive semidefinite and nonzero.

    Example:
        >>> attention_modes([0.5, 1.0], 10).gains
        array([1.25, 0.7 ])
    """
    sigma, length = require_covariance("covariance", covariance), require_at_least("context_length", context_length, 1)
    variances, axes = np.linalg.eigh(sigma)
    kept = variances[::-1] > _NO_VARIANCE * variances[-1]
    variances, axes = variances[::-1][kept], axes[:, ::-1][:, kept]
    trace = float(np.trace(sigma))
    gains = variances + (variances + trace) / length
    largest = np.argmax(np.abs(axes).round(9), axis=0)
    return AttentionModes(variances, gains, axes * np.sign(axes[largest, np.arange(len(variances))]), trace)


@finite_answers()
def attention_levels(
    covariance: FiniteNumbers, context_length: float, heads: PositiveInt | None = None
) -> Float[np.ndarray, " J"]:
    """Plateaus of the population loss of linear attention with rank-one heads.

    Let λ₁ ≥ … ≥ λ_d be the eigenvalues of Σ and γ_j = (1 + 1/N) λ_j + tr(Σ)/N. After m modes are learned, the attention
    matrix is P = Σ_{j≤m} e_j e_jᵀ/γ_j and the loss is

        L_m = ½ [tr Σ − Σ_{j≤m} λ_j²/γ_j].

    Args:
        covariance: Σ, symmetric and positive semidefinite, shape (d, d), or the d variances of independent inputs.
        context_length: Number of examples N ≥ 1; ∞ is allowed.
        heads: Number of heads, each of which learns one mode; if None, enough to learn all modes.

    Returns:
        L_0 … L_J, shape (J + 1,), where J is the smaller of the number of heads and the number of positive eigenvalues.

    Raises:
        InputError: If N is below one, or Σ is not symmetric, positive semidefinite and nonzero.

    Source: arXiv:2501.16265, section 5.

    Example:
        >>> attention_levels([1.0, 0.7, 0.4], np.inf)
        array([1.05, 0.55, 0.2 , 0.  ])
    """
    modes = attention_modes(covariance, context_length)
    return modes.levels(range(len(modes.variances))[:heads])


@checked
def context_correlation(
    covariance: FiniteNumbers, context_length: float, matrix: IsFinite[Real[ArrayLike, "d d"]] | None = None
) -> Float[np.ndarray, "d d"]:
    """Correlation between the context and the residual: the negative gradient of the loss with respect to P.

        M = −∂L/∂P = Σ² − C P Σ,  C = (1 + 1/N) Σ² + tr(Σ)/N Σ

    Args:
        covariance: Σ, shape (d, d), or the d variances of independent inputs.
        context_length: Number of examples N ≥ 1; ∞ is allowed.
        matrix: P, shape (d, d); zero if not given.

    Example:
        >>> context_correlation([1.0, 0.5], 10)
        array([[1.  , 0.  ],
               [0.  , 0.25]])
    """
    sigma, length = require_covariance("covariance", covariance), require_at_least("context_length", context_length, 1)
    square = sigma @ sigma
    if matrix is None:
        return square
    context_moment = (1 + 1 / length) * square + np.trace(sigma) / length * sigma
    learned = np.asarray(matrix)
    require_shape("matrix", learned, square.shape)
    return square - context_moment @ learned @ sigma


@finite_answers()
def attention_utility(neurons: Heads, correlation: IsFinite[Real[ArrayLike, "d d"]]) -> Float[np.ndarray, " heads"]:
    """Utility of each head: its correlation with the residual.

        U = E⟨f_h, r⟩ = v kᵀM q

    For a head of unit norm, U is at most ‖M‖/(3√3).

    Args:
        neurons: The heads as rows (v | k | q), shape (H, 2d + 1).
        correlation: M, shape (d, d), from `context_correlation`.

    Returns:
        U, shape (H,).

    Raises:
        InputError: If a value is not finite, all heads are zero, or the shapes do not match.

    Source: arXiv:2506.06489, equation for the utility; M for in-context regression from arXiv:2501.16265.

    Example:
        >>> attention_utility(np.array([[1, 1, 0, 1, 0]]) / np.sqrt(3), np.eye(2)).round(4)
        array([0.1925])
    """
    residual = np.asarray(correlation)
    v, k, q = split_heads(neurons, len(residual))
    return v * np.sum(k * (q @ residual.T), axis=1)


def split_heads(neurons: ArrayLike, dimension: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split rows (v | k | q) into v, shape (H,), and k and q, shape (H, d)."""
    rows = np.asarray(neurons)
    require_shape("neurons", rows, (None, 2 * dimension + 1))
    require(
        bool(rows.any()),
        "all heads are zero",
        argument="neurons",
        value=0.0,
        remedy="pass nonzero initial weights at unit scale",
    )
    return rows[:, 0], rows[:, 1 : dimension + 1], rows[:, dimension + 1 :]
