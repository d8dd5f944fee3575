"""What linear attention learns of in-context regression: the modes of the data, the levels of the loss, the utility."""

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
from dynascope.validation import checked, require, require_covariance, require_shape
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

# A variance below this fraction of the largest carries no data up to rounding.
_NO_VARIANCE = 1e-12

Heads: TypeAlias = IsFinite[Real[ArrayLike, "heads weights"]]


@dataclasses.dataclass(frozen=True)
class AttentionModes:
    """The directions that carry data, strongest first.

    Attributes:
        variances: Positive eigenvalues λ of Σ, decreasing, shape (m,).
        gains: γ = (1 + 1/N) λ + tr Σ/N of each, the inverse of what P becomes along it, shape (m,).
        axes: Unit eigenvectors as columns, each with a positive largest entry, shape (d, m).
        trace: tr Σ.
    """

    variances: Float[np.ndarray, " mode"]
    gains: Float[np.ndarray, " mode"]
    axes: Float[np.ndarray, "d mode"]
    trace: float

    __repr__ = short_repr

    def levels(self, order: Sequence[int]) -> Float[np.ndarray, " level"]:
        """The loss before and after each of these modes is learned, in this order."""
        drops = (self.variances**2 / self.gains)[list(order)]
        levels = (self.trace - np.concatenate([[0.0], np.cumsum(drops)])) / 2
        # With infinite context the last level is zero up to rounding.
        return np.where(levels > _NO_VARIANCE * self.trace, levels, 0.0)


@finite_answers()
def attention_modes(covariance: FiniteNumbers, context_length: float) -> AttentionModes:
    """The modes of in-context regression, the eigenvectors of Σ with a variance.

    A context of N samples has E[Σ̂²] = Σ (Σ + (Σ + tr Σ I)/N), so that a mode of variance λ has the gain
    λ + (λ + tr Σ)/N; the loss and the levels of `attention_levels` follow from both.

    Args:
        covariance: Σ, symmetric and positive semi-definite, shape (d, d), or the d variances of independent inputs.
        context_length: N ≥ 1; ∞ is allowed.

    Raises:
        InputError: N is below one, or Σ is not symmetric, positive semi-definite and non-zero.

    Example:
        >>> attention_modes([0.5, 1.0], 10).gains
        array([1.25, 0.7 ])
    """
    sigma, length = require_covariance("covariance", covariance), _require_length(context_length)
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
    """The population losses at which linear attention with rank-one heads rests.

    With the eigenvalues λ₁ ≥ … ≥ λ_d of Σ, after m modes P = Σ_{j≤m} e_j e_jᵀ/γ_j, γ_j = (1 + 1/N) λ_j + tr(Σ)/N, and

        L_m = ½ [tr Σ − Σ_{j≤m} λ_j²/γ_j].

    Args:
        covariance: Σ, symmetric and positive semi-definite, shape (d, d), or the d variances of independent inputs.
        context_length: N ≥ 1; ∞ is allowed.
        heads: Number of heads, each of which learns one mode; None for enough.

    Returns:
        L_0 … L_J, shape (J + 1,), with J the smaller of the number of heads and of positive eigenvalues.

    Raises:
        InputError: N is below one, or Σ is not symmetric, positive semi-definite and non-zero.

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
    """M = −∂L/∂P = Σ² − C P Σ, with C = (1 + 1/N) Σ² + tr(Σ)/N Σ: what is left to learn.

    Args:
        covariance: Σ, shape (d, d), or the d variances of independent inputs.
        context_length: N ≥ 1; ∞ is allowed.
        matrix: P, shape (d, d); zero if absent.

    Example:
        >>> context_correlation([1.0, 0.5], 10)
        array([[1.  , 0.  ],
               [0.  , 0.25]])
    """
    sigma, length = require_covariance("covariance", covariance), _require_length(context_length)
    square = sigma @ sigma
    if matrix is None:
        return square
    context_moment = (1 + 1 / length) * square + np.trace(sigma) / length * sigma
    learned = np.asarray(matrix)
    require_shape("matrix", learned, square.shape)
    return square - context_moment @ learned @ sigma


@finite_answers()
def attention_utility(neurons: Heads, correlation: IsFinite[Real[ArrayLike, "d d"]]) -> Float[np.ndarray, " heads"]:
    """U = E⟨f_h, r⟩ = v kᵀM q of each head, how fast it would lower the loss; at unit norm at most ‖M‖/(3√3).

    Args:
        neurons: The heads, rows (v | k | q), shape (H, 2d + 1).
        correlation: M, shape (d, d), see `context_correlation`.

    Returns:
        U, shape (H,).

    Raises:
        InputError: Values that are not finite, or shapes that do not fit.

    Source: arXiv:2506.06489, equation for the utility; M for in-context regression from arXiv:2501.16265.

    Example:
        >>> attention_utility(np.array([[1, 1, 0, 1, 0]]) / np.sqrt(3), np.eye(2)).round(4)
        array([0.1925])
    """
    residual = np.asarray(correlation)
    v, k, q = split_heads(neurons, len(residual))
    return v * np.sum(k * (q @ residual.T), axis=1)


def split_heads(neurons: ArrayLike, dimension: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The parts v (H,), k and q (H, d) of rows (v | k | q)."""
    rows = np.asarray(neurons)
    require_shape("neurons", rows, (None, 2 * dimension + 1))
    require(
        bool(rows.any()),
        "all heads are zero",
        argument="neurons",
        value=0.0,
        remedy="pass the initial weights at unit scale",
    )
    return rows[:, 0], rows[:, 1 : dimension + 1], rows[:, dimension + 1 :]


def _require_length(context_length: float) -> float:
    """Return N after checking that it is at least one."""
    require(
        context_length >= 1,
        f"context_length is {context_length}",
        argument="context_length",
        value=context_length,
        remedy="choose at least one example, or infinity",
    )
    return float(context_length)
