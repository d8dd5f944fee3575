"""Normalised margin of quasi-homogeneous networks; it never decreases under gradient flow after separation."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
from annotated_types import Ge, IsFinite
from jaxtyping import Float, Real
from numpy.typing import ArrayLike

from dynascope.results.named_tuples import short_repr
from dynascope.theory.margins.rates import covers_quasi_homogeneous
from dynascope.validation import require, require_shape

__all__ = ["MarginShares", "margin_shares", "normalised_margin", "seminorm"]

_ALIKE = 1e-6  # rates that differ by less form one block

Elements: TypeAlias = IsFinite[Real[ArrayLike, "... elements"]]
Rates: TypeAlias = Annotated[Real[ArrayLike, " elements"], Ge(0)]


class MarginShares(NamedTuple):
    """Contribution of each block of parameters to the margins.

    Attributes:
        rates: λ of each block, in decreasing order, shape (blocks,).
        shares: Share of the margin contributed by each block, shape (..., blocks); the shares sum to one.
    """

    rates: Float[np.ndarray, " blocks"]
    shares: Float[np.ndarray, "... blocks"]

    __repr__ = short_repr


@covers_quasi_homogeneous(gives="the norm that normalises the margin")
def seminorm(parameters: Elements, rates: Rates) -> Float[np.ndarray, ...]:
    """Norm of the parameters, weighted by their growth rates; it increases throughout training after separation.

        ‖θ‖_Λ = √(Σ λ_i θ_i²)

    Along gradient flow on L = Σ exp(−q_i), ½ d‖θ‖_Λ²/dt = Σ q_i exp(−q_i).

    Args:
        parameters: θ, shape (..., elements).
        rates: λ ≥ 0 of each element, shape (elements,), as returned by `quasi_homogeneity`.

    Returns:
        ‖θ‖_Λ, shape (...).

    Raises:
        InputError: If the shapes do not match, or the rates are negative or all zero.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820.

    Example:
        >>> print(seminorm([3.0, 4.0, 4.0], [1.0, 0.5, 0.5]))
        5.0
    """
    theta, rows = _elements(parameters, rates)
    with np.errstate(all="ignore"):
        unit = np.abs(theta).max(initial=0.0) or 1.0
        return np.asarray(unit * np.sqrt((theta / unit) ** 2 @ rows))


@covers_quasi_homogeneous(gives="a margin that never decreases")
def normalised_margin(
    margins: IsFinite[Real[ArrayLike, "... samples"]], parameters: Elements, rates: Rates
) -> Float[np.ndarray, ...]:
    """Normalised margin, which does not decrease along gradient flow while L < 1.

        γ = log(1/L) / ‖θ‖_Λ^(1/λ_max),   L = Σ exp(−q_i)

    The monotonicity follows from ‖Λθ‖² ≤ λ_max ‖θ‖_Λ² and q_i ≥ log(1/L).

    Args:
        margins: q_i = y_i f(x_i) of all samples, or of all pairs of a sample and a wrong class, shape (..., samples),
            with Σ exp(−q_i) < 1.
        parameters: θ, shape (..., elements).
        rates: λ ≥ 0 of each element, shape (elements,).

    Returns:
        γ, shape (...).

    Raises:
        InputError: If the shapes do not match, the rates are negative or all zero, or the data are not separated yet
            (L ≥ 1).

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820; Lyu, Li, arXiv:1906.05890, for homogeneous
        networks.

    Example:
        >>> print(normalised_margin([4.0, 6.0], [1.0, 2.0, 2.0], [1.0, 0.5, 0.5]).round(6))
        1.73209
    """
    theta, rows = _elements(parameters, rates)
    q = np.asarray(margins)
    require_shape("margins", q, (*theta.shape[:-1], None))
    require(
        q.shape[-1] > 0, "margins has no samples", argument="margins", value=q.shape, remedy="give at least one sample"
    )
    lowest = q.min(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        smooth = lowest[..., 0] - np.log(np.exp(lowest - q).sum(axis=-1))
        require(
            bool((smooth > 0).all()),
            f"log(1/L) is {smooth.min(initial=np.inf):.3g}, so the data are not separated yet",
            argument="margins",
            value=float(smooth.min(initial=np.inf)),
            remedy="give margins from a later time, at which Σ exp(−q) < 1",
        )
        return np.asarray(smooth / seminorm(theta, rows) ** (1 / rows.max()))


@covers_quasi_homogeneous(gives="the share of each block of parameters in the margin")
def margin_shares(gradients: Elements, parameters: Elements, rates: Rates) -> MarginShares:
    """Share of the margin contributed by the parameters with each growth rate.

        Σ_{i: λ_i = λ} λ_i θ_i ∂q/∂θ_i / q   for each rate λ

    The shares sum to one by the Euler identity Σ λ_i θ_i ∂q/∂θ_i = q. The share of a discarded block tends to zero.
    Shares are undefined for a margin of zero. They can be negative or above one if blocks contribute with opposite
    signs.

    Args:
        gradients: ∂q/∂θ of one or more samples, shape (..., elements).
        parameters: θ, shape (elements,), or with the shape of the gradients.
        rates: λ ≥ 0 of each element, shape (elements,).

    Returns:
        The rates and the shares; elements with rate zero do not contribute.

    Raises:
        InputError: If the shapes do not match, the rates are negative or all zero, or a margin is zero.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820.

    Example:
        >>> found = margin_shares([1.0, 3.0, 2.0], [1.0, 2.0, 3.0], [1.0, 0.5, 0.5])  # of a + u v
        >>> print(found.rates, found.shares.round(4))
        [1.  0.5] [0.1429 0.8571]
    """
    slopes = np.asarray(gradients)
    theta, rows = _elements(parameters, rates)
    fits = slopes.shape[-1:] == rows.shape and (theta.ndim == 1 or theta.shape == slopes.shape)
    require(
        fits,
        f"gradients has shape {slopes.shape}, but rates has length {rows.size}",
        argument="gradients",
        value=slopes.shape,
        remedy="give the gradient with respect to each element",
    )
    levels: list[float] = []
    for each in sorted(rows[rows > _ALIKE * rows.max()], reverse=True):
        if not levels or levels[-1] - each > _ALIKE * levels[0]:
            levels.append(float(each))
    with np.errstate(all="ignore"):
        parts = rows * theta * slopes
        blocks = np.stack(
            [parts[..., np.abs(rows - each) <= _ALIKE * levels[0]].sum(axis=-1) for each in levels], axis=-1
        )
        total = blocks.sum(axis=-1, keepdims=True)
        require(
            bool((np.abs(total) > 0).all()),
            "a margin is zero",
            argument="gradients",
            value=0.0,
            remedy="give samples with non-zero margins",
        )
        return MarginShares(np.array(levels), blocks / total)


def _elements(parameters: ArrayLike, rates: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Check that parameters and rates match and that a rate is positive, and return both as arrays."""
    theta, rows = np.asarray(parameters), np.asarray(rates)
    require(
        bool((rows > 0).any()),
        f"rates has length {rows.size} and values from {rows.min(initial=0.0):.3g} to {rows.max(initial=0.0):.3g}",
        argument="rates",
        value=float(rows.min(initial=0.0)),
        remedy="give one rate λ ≥ 0 for each element, with at least one positive rate",
    )
    require(
        theta.shape[-1:] == rows.shape,
        f"parameters has shape {theta.shape}, but rates has length {rows.size}",
        argument="parameters",
        value=theta.shape,
        remedy="give one parameter per rate, along the last axis",
    )
    return theta, rows
