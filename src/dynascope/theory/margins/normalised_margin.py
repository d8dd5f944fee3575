"""The margin in units of the norm that it costs, which gradient flow never lowers once the data are separated."""

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

_ALIKE = 1e-6  # rates nearer than this make one block

Elements: TypeAlias = IsFinite[Real[ArrayLike, "... elements"]]
Rates: TypeAlias = Annotated[Real[ArrayLike, " elements"], Ge(0)]


class MarginShares(NamedTuple):
    """How much each block of parameters contributes to the margins.

    Attributes:
        rates: λ of each block, from the largest, shape (blocks,).
        shares: Share of the margin that comes from the block, shape (..., blocks); they sum to one.
    """

    rates: Float[np.ndarray, " blocks"]
    shares: Float[np.ndarray, "... blocks"]

    __repr__ = short_repr


@covers_quasi_homogeneous(gives="the norm that the margin is measured by")
def seminorm(parameters: Elements, rates: Rates) -> Float[np.ndarray, ...]:
    """‖θ‖_Λ = √(Σ λ_i θ_i²), which grows all through training once the data are separated.

    Along gradient flow on L = Σ exp(−q_i), ½ d‖θ‖_Λ²/dt = Σ q_i exp(−q_i).

    Args:
        parameters: θ as a row, or many of them, shape (..., elements).
        rates: λ ≥ 0 of each element, shape (elements,), as of `quasi_homogeneity`.

    Returns:
        ‖θ‖_Λ, shape (...).

    Raises:
        InputError: Shapes that do not fit, or rates that are negative or all zero.

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


@covers_quasi_homogeneous(gives="a margin that never falls")
def normalised_margin(
    margins: IsFinite[Real[ArrayLike, "... samples"]], parameters: Elements, rates: Rates
) -> Float[np.ndarray, ...]:
    """γ = log(1/L) / ‖θ‖_Λ^(1/λ_max) with L = Σ exp(−q_i), non-decreasing along gradient flow while L < 1.

    It follows from ‖Λθ‖² ≤ λ_max ‖θ‖_Λ² and q_i ≥ log(1/L).

    Args:
        margins: q_i = y_i f(x_i) of all samples, or of all samples and other classes, shape (..., samples), with
            Σ exp(−q_i) < 1.
        parameters: θ, shape (..., elements).
        rates: λ ≥ 0 of each element, shape (elements,).

    Returns:
        γ, shape (...).

    Raises:
        InputError: Shapes that do not fit, rates that are negative or all zero, or data that are not separated yet,
            L ≥ 1.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820; of homogeneous networks Lyu, Li, arXiv:1906.05890.

    Example:
        >>> print(normalised_margin([4.0, 6.0], [1.0, 2.0, 2.0], [1.0, 0.5, 0.5]).round(6))
        1.73209
    """
    theta, rows = _elements(parameters, rates)
    q = np.asarray(margins)
    require_shape("margins", q, (*theta.shape[:-1], None))
    require(q.shape[-1] > 0, "margins has no samples", argument="margins", value=q.shape, remedy="give one or more")
    lowest = q.min(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        smooth = lowest[..., 0] - np.log(np.exp(lowest - q).sum(axis=-1))
        require(
            bool((smooth > 0).all()),
            f"log(1/L) is {smooth.min(initial=np.inf):.3g}: the data are not separated yet",
            argument="margins",
            value=float(smooth.min(initial=np.inf)),
            remedy="give what comes after Σ exp(−q) < 1",
        )
        return np.asarray(smooth / seminorm(theta, rows) ** (1 / rows.max()))


@covers_quasi_homogeneous(gives="which parameters the margin comes from")
def margin_shares(gradients: Elements, parameters: Elements, rates: Rates) -> MarginShares:
    """Σ_{i: λ_i = λ} λ_i θ_i ∂q/∂θ_i / q of each rate λ: by the Euler identity Σ λ_i θ_i ∂q/∂θ_i = q they sum to one.

    The share of a block that is discarded goes to zero. Margins of zero have no shares, and blocks that pull against
    each other have shares below zero or above one.

    Args:
        gradients: ∂q/∂θ of one sample, or of many, shape (..., elements).
        parameters: θ, shape (elements,), or broadcastable to the gradients.
        rates: λ ≥ 0 of each element, shape (elements,).

    Returns:
        The rates and the shares; elements of rate zero have no share.

    Raises:
        InputError: Shapes that do not fit, rates that are negative or all zero, or a margin of zero.

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
        f"gradients has shape {slopes.shape}, and there are {rows.size} rates",
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
            remedy="give samples that the network tells apart",
        )
        return MarginShares(np.array(levels), blocks / total)


def _elements(parameters: ArrayLike, rates: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays, after checking that they fit and that some rate is above zero."""
    theta, rows = np.asarray(parameters), np.asarray(rates)
    require(
        bool((rows > 0).any()),
        f"rates has {rows.size} numbers from {rows.min(initial=0.0):.3g} to {rows.max(initial=0.0):.3g}",
        argument="rates",
        value=float(rows.min(initial=0.0)),
        remedy="give λ ≥ 0 of each element, one of them above zero",
    )
    require(
        theta.shape[-1:] == rows.shape,
        f"parameters has shape {theta.shape}, and there are {rows.size} rates",
        argument="parameters",
        value=theta.shape,
        remedy="give one parameter for each rate, along the last axis",
    )
    return theta, rows
