"""A double well with noise that vanishes at its middle: where it settles, and when noise draws it to the maximum."""

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
    covers, network="double well, one weight", data="noise in proportion to the weight", reference="arXiv:2306.04251"
)


class QuarticLaw(NamedTuple):
    """The stationary law of θ², which is a Gamma law; the sign of θ is that of the start.

    Attributes:
        shape: μ/ζ² − ½.
        scale: ζ².
        mean_square: E θ² = μ − ζ²/2.
        cumulative: P(θ² ≤ x) at the squares that were asked for, of their shape.
    """

    shape: float
    scale: float
    mean_square: float
    cumulative: Float[np.ndarray, "*shape"]

    __repr__ = short_repr


@_covers(start="any but zero", gives="the stationary law of a weight in a double well")
def quartic_stationary_law(squares: NonNegativeNumbers, *, growth: PositiveFloat, noise: PositiveFloat) -> QuarticLaw:
    """θ² ~ Gamma(shape μ/ζ² − ½, scale ζ²) of dθ = (μθ − θ³) dt + ζ θ dW where ζ² < 2μ.

    Args:
        squares: x ≥ 0 at which P(θ² ≤ x) is given, of any shape.
        growth: μ > 0, the curvature of the maximum at zero.
        noise: ζ > 0, with ζ² < 2μ; of more noise the weight vanishes (`quartic_collapse_exponent`).

    Raises:
        InputError: A number out of range, or noise under which there is no such law.

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
            f"noise is {noise:g}, at which the weight vanishes, or is none",
            argument="noise",
            value=noise,
            remedy="choose ζ below √(2μ)",
        )
        shape = growth / variance - 0.5
        cumulative = scipy.special.gammainc(shape, np.asarray(squares) / variance)
        return QuarticLaw(float(shape), float(variance), float(growth - variance / 2), np.asarray(cumulative))


@_covers(start="near zero", gives="the rate at which noise makes a weight in a double well vanish")
def quartic_collapse_exponent(*, growth: FiniteFloat, noise: NonNegativeFloat) -> float:
    """d/dt E log|θ| = μ − ζ²/2 near zero of dθ = (μθ − θ³) dt + ζ θ dW: below zero, noise wins over the maximum.

    Args:
        growth: μ, the curvature of the maximum at zero; below zero it is a minimum.
        noise: ζ ≥ 0.

    Raises:
        InputError: A number out of range.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> quartic_collapse_exponent(growth=1.5, noise=2.5)
        -1.625
    """
    with np.errstate(all="ignore"):
        return float(growth - np.float64(noise) ** 2 / 2)


@_covers(start="any", gives="the path of a weight in a double well under a given path of noise")
def quartic_path(
    start: FiniteNumbers,
    increments: FiniteNumbers,
    *,
    growth: FiniteFloat,
    noise: NonNegativeFloat,
    duration: PositiveFloat,
) -> Float[np.ndarray, "... steps"]:
    """θ_t of dθ = (μθ − θ³) dt + ζ θ dW after each of equal intervals, from the increments of W in them.

    Each interval is split: half of the cubic motion, θ/√(1 + θ²Δ), the growth exp((μ − ζ²/2)Δ + ζ ΔW), and the other
    half, each exactly. So no path crosses zero, and the squares follow θ_t² = θ_0² e^{2Y}/(1 + 2θ_0² ∫ e^{2Y} ds), Y =
    (μ − ζ²/2) t + ζ W_t, in which only the integral is by the trapezoidal rule. Logarithms are kept, so that a weight
    that collapses keeps its digits.

    Args:
        start: θ_0, of the shape of all but the last axis of the increments, or one number.
        increments: ΔW, Gaussian of variance Δ, shape (..., steps).
        growth: μ.
        noise: ζ ≥ 0.
        duration: Δ > 0, the time of an interval; a step of descent takes η.

    Returns:
        θ_t, shape (..., steps).

    Raises:
        InputError: A number out of range, or shapes that do not fit.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> path = quartic_path(0.1, np.zeros(2000), growth=1.0, noise=0.0, duration=0.01)
        >>> print(path[[99, -1]].round(4))
        [0.2635 1.    ]
    """
    moved, first = np.asarray(increments), np.asarray(start)
    require(moved.ndim > 0, "increments is a number", argument="increments", value=(), remedy="give a row of them")
    require(
        first.ndim == 0 or first.shape == moved.shape[:-1],
        f"start has shape {first.shape}, increments {moved.shape}",
        argument="start",
        value=first.shape,
        remedy="give one start, or one for each path",
    )
    with np.errstate(all="ignore"):
        logarithm = np.broadcast_to(np.log(np.abs(first)), moved.shape[:-1]).copy()
        rates = (growth - np.float64(noise) ** 2 / 2) * duration + noise * moved
        found = np.empty(moved.shape)
        for step in range(moved.shape[-1]):
            logarithm = _half(_half(logarithm, duration) + rates[..., step], duration)
            found[..., step] = logarithm
        return np.asarray(np.sign(first)[..., None] * np.exp(found))


def _half(logarithm: np.ndarray | np.float64, duration: float) -> np.ndarray:
    """log|θ| after half an interval of θ' = −θ³."""
    return np.asarray(logarithm - np.logaddexp(0.0, 2 * logarithm + np.log(duration)) / 2)
