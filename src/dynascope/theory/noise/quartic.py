"""Double well with noise proportional to the weight: stationary law, and collapse to the maximum at zero."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import scipy.special
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation import require
from dynascope.validation.bounded import (
    FiniteFloat,
    FiniteNumbers,
    NonNegativeFloat,
    NonNegativeNumbers,
    PositiveFloat,
)

__all__ = ["QuarticLaw", "quartic_collapse_exponent", "quartic_path", "quartic_stationary_law"]

_covers = functools.partial(
    covers, network="double well, one weight", data="noise proportional to the weight", reference="arXiv:2306.04251"
)


class QuarticLaw(NamedTuple):
    """Stationary law of θ², a Gamma distribution; θ keeps the sign of the initial weight.

    Attributes:
        shape: μ/ζ² − ½.
        scale: ζ².
        mean_square: E θ² = μ − ζ²/2.
        cumulative: P(θ² ≤ x) for each given x, with the shape of `squares`.
    """

    shape: float
    scale: float
    mean_square: float
    cumulative: Float[np.ndarray, "*shape"]

    __repr__ = short_repr


@_covers(start="any but zero", gives="the stationary law of a weight in a double well")
def quartic_stationary_law(squares: NonNegativeNumbers, *, growth: PositiveFloat, noise: PositiveFloat) -> QuarticLaw:
    """Stationary law of a weight in a double well with multiplicative noise.

        θ² ~ Gamma(shape μ/ζ² − ½, scale ζ²)   for dθ = (μθ − θ³) dt + ζ θ dW, if ζ² < 2μ

    Args:
        squares: x ≥ 0 at which to evaluate P(θ² ≤ x), any shape.
        growth: μ > 0, the magnitude of the curvature at the maximum θ = 0.
        noise: ζ > 0, with ζ² < 2μ; for stronger noise the weight collapses to zero (`quartic_collapse_exponent`).

    Raises:
        InputError: If a number is out of range, or no stationary law exists for this noise.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> law = quartic_stationary_law([0.5, 1.0], growth=1.5, noise=1.0)
        >>> print(law.shape, law.mean_square, law.cumulative.round(6))
        1.0 1.0 [0.393469 0.632121]
    """
    with np.errstate(all="ignore"):
        variance = np.float64(noise) ** 2
        require(
            0 < variance < 2 * growth,
            f"noise is {noise:g}, but a stationary law requires 0 < ζ² < 2μ",
            argument="noise",
            value=noise,
            remedy="choose ζ > 0 below √(2μ)",
        )
        shape = growth / variance - 0.5
        cumulative = scipy.special.gammainc(shape, np.asarray(squares) / variance)
        return QuarticLaw(float(shape), float(variance), float(growth - variance / 2), np.asarray(cumulative))


@_covers(start="near zero", gives="the rate at which noise drives a weight in a double well to zero")
def quartic_collapse_exponent(*, growth: FiniteFloat, noise: NonNegativeFloat) -> float:
    """Growth rate of log|θ| near zero in a double well with multiplicative noise.

        d/dt E log|θ| = μ − ζ²/2   for dθ = (μθ − θ³) dt + ζ θ dW near θ = 0

    If the rate is negative, the weight collapses to zero, even if zero is a maximum of the loss.

    Args:
        growth: μ; θ = 0 is a maximum of the loss for μ > 0 and a minimum for μ < 0.
        noise: ζ ≥ 0.

    Raises:
        InputError: If a number is out of range.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> quartic_collapse_exponent(growth=1.5, noise=2.5)
        -1.625
    """
    with np.errstate(all="ignore"):
        return float(growth - np.float64(noise) ** 2 / 2)


@_covers(start="any", gives="the trajectory of a weight in a double well for a given realisation of the noise")
def quartic_path(
    start: FiniteNumbers,
    increments: FiniteNumbers,
    *,
    growth: FiniteFloat,
    noise: NonNegativeFloat,
    duration: PositiveFloat,
) -> Float[np.ndarray, "... steps"]:
    """Trajectory of a weight in a double well for given increments of the Wiener process.

        dθ = (μθ − θ³) dt + ζ θ dW

    Each interval is split into three steps that are solved exactly: half of the cubic drift, θ/√(1 + θ²Δ), the growth
    e^{(μ − ζ²/2)Δ + ζΔW}, and the other half of the drift. No trajectory crosses zero. The squares satisfy θ_t² = θ_0²
    e^{2Y}/(1 + 2θ_0² ∫ e^{2Y} ds) with Y = (μ − ζ²/2) t + ζ W_t; the only approximation is the trapezoidal rule for the
    integral. The function computes log|θ|, so a collapsing weight remains accurate.

    Args:
        start: θ_0, a number or an array with the shape of `increments` without its last axis.
        increments: ΔW, Gaussian of variance Δ, shape (..., steps).
        growth: μ.
        noise: ζ ≥ 0.
        duration: Δ > 0, the duration of an interval; η for a step of gradient descent.

    Returns:
        θ_t after each interval, shape (..., steps).

    Raises:
        InputError: If a number is out of range, or the shapes do not match.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> path = quartic_path(0.1, np.zeros(2000), growth=1.0, noise=0.0, duration=0.01)
        >>> print(path[[99, -1]].round(4))
        [0.2635 1.    ]
    """
    increment, first = np.asarray(increments), np.asarray(start)
    require(
        increment.ndim > 0,
        "increments is a number",
        argument="increments",
        value=(),
        remedy="give an array of increments",
    )
    require(
        first.ndim == 0 or first.shape == increment.shape[:-1],
        f"start has shape {first.shape}, but increments has shape {increment.shape}",
        argument="start",
        value=first.shape,
        remedy="give one initial weight, or one per trajectory",
    )
    with np.errstate(all="ignore"):
        logarithm = np.broadcast_to(np.log(np.abs(first)), increment.shape[:-1]).copy()
        rates = (growth - np.float64(noise) ** 2 / 2) * duration + noise * increment
        found = np.empty(increment.shape)
        for step in range(increment.shape[-1]):
            logarithm = _half(_half(logarithm, duration) + rates[..., step], duration)
            found[..., step] = logarithm
        return np.asarray(np.sign(first)[..., None] * np.exp(found))


def _half(logarithm: np.ndarray | np.float64, duration: float) -> np.ndarray:
    """Return log|θ| after half an interval of the cubic drift θ' = −θ³."""
    return np.asarray(logarithm - np.logaddexp(0.0, 2 * logarithm + np.log(duration)) / 2)
