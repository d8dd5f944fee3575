"""Criteria for collapse into an invariant set: the growth rate of the distance from the set under gradient noise."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import scipy.optimize
import scipy.special
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.theory.domain import covers
from dynascope.validation import require, require_array, require_broadcast
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers, PositiveFloat, PositiveInt, PositiveNumbers

__all__ = [
    "attracting_learning_rates",
    "batch_distribution",
    "collapse_exponent",
    "collapse_rate",
    "covers_near_set",
    "exponents",
    "gaussian_collapse_exponent",
]

_SHARES = 1e-9  # allowed deviation of the sum of the probabilities from one
_SMALL_NOISE = 0.03  # relative noise of the factor below which the series of its logarithm has eleven digits


covers_near_set = functools.partial(
    covers,
    network="any with interchangeable units",
    data="any, in random batches",
    start="near an invariant set",
    reference="arXiv:2306.04251",
)


@covers_near_set(gives="the rate at which gradient descent approaches or leaves an invariant set", infinite=True)
def collapse_exponent(
    curvatures: FiniteNumbers, *, learning_rate: PositiveFloat, probabilities: NonNegativeNumbers | None = None
) -> np.float64:
    """Lyapunov exponent of plain SGD near an invariant set with one normal direction, in nats per step.

        Λ = E log|1 − η h_B|

    Each step multiplies the distance from the set by 1 − η h_B, where h_B is the curvature of the batch loss. Gradient
    descent collapses into the set if Λ < 0, even if the set is a maximum of the loss, and leaves the set if Λ > 0. With
    momentum or several normal directions, use `random_product_exponent`.

    Args:
        curvatures: h_B of each batch, including weight decay, shape (batches,).
        learning_rate: η > 0.
        probabilities: Probability of each batch, shape (batches,); uniform by default.

    Returns:
        Λ; −∞ if a batch with η h_B = 1 reaches the set in one step.

    Raises:
        InputError: If a number is out of range, or the probabilities are negative or do not add up to one.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251; here for finite steps.

    Example:
        >>> for rate in (0.5, 0.8):  # at a maximum: the mean curvature is −1
        ...     print(collapse_exponent([-3.0, 1.0], learning_rate=rate).round(12))
        0.111571775657
        -0.192831240406
    """
    h, shares = batch_distribution(curvatures, probabilities)
    return np.float64(exponents(np.array([float(learning_rate)]), h, shares)[0])


@covers_near_set(gives="the exponent near an invariant set for Gaussian batch curvatures")
def gaussian_collapse_exponent(
    curvature: FiniteNumbers, deviation: PositiveNumbers, *, learning_rate: PositiveFloat
) -> Float[np.ndarray, "*shape"]:
    """Exact Lyapunov exponent near an invariant set for Gaussian batch curvatures, in nats per step.

        Λ = E log|1 − η h_B|,   h_B ~ N(h, s²)

    With m = (1 − η h)/(η s), Λ = log(η s) + ½ [log 2 + Σ_j Poisson(j; m²/2) ψ(j + ½)], the mean logarithm of a
    non-central χ² variable with one degree of freedom. For small noise the function uses the series in 1/m.

    Args:
        curvature: h, any shape.
        deviation: s > 0, the standard deviation of the curvature over batches, a number or an array with the shape of
            `curvature`.
        learning_rate: η > 0.

    Returns:
        Λ, in the broadcast shape.

    Raises:
        InputError: If a number is out of range, or the shapes do not broadcast.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251; here for finite steps.

    Example:
        >>> print(gaussian_collapse_exponent([-1.0, -1.0], [1.0, 5.0], learning_rate=0.1).round(6))
        [ 0.091125 -0.050459]
    """
    h, s = np.asarray(curvature), np.asarray(deviation)
    require_broadcast(curvature=h.shape, deviation=s.shape)
    with np.errstate(all="ignore"):
        return _mean_log(*np.broadcast_arrays(1 - learning_rate * h, learning_rate * s))


@covers_near_set(gives="the growth rate of the distance from an invariant set, in continuous time", exact=False)
def collapse_rate(
    curvature: FiniteNumbers,
    curvature_variance: NonNegativeNumbers,
    *,
    learning_rate: PositiveFloat,
    batch_size: PositiveInt = 1,
) -> Float[np.ndarray, "*shape"]:
    """Growth rate of the distance from an invariant set with one normal direction, in continuous time.

        d/dt E log|θ| = −(L″ + c/2),   c = η Var(h)/S

    Noise attracts the weights to the set if L″ + c/2 > 0, even if the set is a maximum of the loss. For
    dθ = −L′dt + √(2D(θ)) dW the condition is L″ + ½ D″ > 0.

    Args:
        curvature: L″, the mean of the per-sample curvatures h, any shape.
        curvature_variance: Var(h) ≥ 0 over samples, a number or an array with the shape of `curvature`.
        learning_rate: η > 0, the duration of a step.
        batch_size: S ≥ 1, samples per step, drawn with replacement.

    Returns:
        Mean growth of the log distance per unit of time, in the broadcast shape.

    Raises:
        InputError: If a number is out of range, or the shapes do not broadcast.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> print(collapse_rate(-1.0, 4.0, learning_rate=0.8))
        -0.6000000000000001
    """
    h, variance = np.asarray(curvature), np.asarray(curvature_variance)
    require_broadcast(curvature=h.shape, curvature_variance=variance.shape)
    with np.errstate(all="ignore"):
        return np.asarray(-(h + learning_rate / batch_size * variance / 2))


def batch_distribution(curvatures: ArrayLike, probabilities: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Check the curvatures of the batches and their probabilities, which are uniform by default."""
    h = require_array("curvatures", curvatures, (None,))
    require(
        len(h) > 0,
        "curvatures is empty",
        argument="curvatures",
        value=0,
        remedy="give the curvature of at least one batch",
    )
    if probabilities is None:
        return h, np.full(len(h), 1 / len(h))
    shares = require_array("probabilities", probabilities, h.shape)
    require(
        abs(shares.sum() - 1) <= _SHARES,
        f"probabilities add up to {shares.sum():g}",
        argument="probabilities",
        value=float(shares.sum()),
        remedy="give numbers that add up to one",
    )
    return h, shares


def exponents(rates: np.ndarray, h: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the Lyapunov exponent E log|1 − η h| at each learning rate."""
    with np.errstate(divide="ignore", over="ignore"):
        step = rates[:, None] * h
        small = np.abs(step) < 0.5
        logarithms = np.where(small, np.log1p(-np.where(small, step, 0.0)), np.log(np.abs(1 - step)))
    return np.where(shares > 0, logarithms, 0.0) @ shares


def _mean_log(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return the mean logarithm E log|mean + deviation · z| for a standard Gaussian z."""
    found = np.empty(mean.shape)
    for index in np.ndindex(found.shape):
        m, s = float(np.abs(mean[index])), float(deviation[index])
        if s < _SMALL_NOISE * m:
            # log m + E log(1 + x) of x = s z/m, by E x² = r, E x⁴ = 3r², E x⁶ = 15r³, …
            r, term, total = (s / m) ** 2, 1.0, 0.0
            for j in range(1, 9):
                term *= (2 * j - 1) * r
                total -= term / (2 * j)
            found[index] = np.log1p(m - 1) + total
            continue
        half = (m / s) ** 2 / 2
        reach = 12 * np.sqrt(half + 1) + 40
        j = np.arange(max(0, int(half - reach)), int(half + reach) + 1)
        weights = np.exp(scipy.special.xlogy(j, half) - half - scipy.special.gammaln(j + 1))
        found[index] = np.log(s) + (np.log(2) + weights @ scipy.special.digamma(j + 0.5)) / 2
    return found


@covers_near_set(gives="the learning rates at which gradient descent collapses into an invariant set")
def attracting_learning_rates(
    curvatures: FiniteNumbers, *, probabilities: NonNegativeNumbers | None = None
) -> Float[np.ndarray, "intervals 2"]:
    """All intervals of learning rates in which plain SGD collapses into an invariant set.

        E log|1 − η h_B| < 0

    The exponent is concave between neighbouring poles η = 1/h_B, tends to −∞ at each pole, and grows without bound
    above the last pole. There are thus at most two zeros between two poles, and the function finds every zero.

    Args:
        curvatures: h_B of each batch along the one normal direction, shape (batches,).
        probabilities: Probability of each batch, shape (batches,); uniform by default.

    Returns:
        Lower and upper ends of the intervals, shape (intervals, 2), in increasing order; empty if no curvature is
        positive. If the first lower end is zero, collapse occurs at arbitrarily small learning rates.

    Raises:
        InputError: If a value is not finite, or the probabilities are negative or do not add up to one.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251; here for finite steps.

    Example:
        >>> print(attracting_learning_rates([-3.0, 1.0]).round(6))
        [[0.666667 1.21525 ]]
    """
    h, shares = batch_distribution(curvatures, probabilities)
    poles = np.unique(1 / h[(h > 0) & (shares > 0)])
    if not poles.size:
        return np.empty((0, 2))
    zeros: list[float] = []
    # Below the first pole the exponent is concave and zero at η = 0; it crosses zero only if it first rises.
    rising = float(-shares @ h) > 0
    zeros += _zeros_between(0.0, poles[0], h, shares) if rising else [0.0]
    for left, right in itertools.pairwise(poles.tolist()):
        zeros += _zeros_between(left, right, h, shares)
    last = 2 * poles[-1]
    while exponents(np.array([last]), h, shares)[0] <= 0:
        last *= 2
    zeros.append(_zero(poles[-1], last, h, shares))
    return np.array(zeros).reshape(-1, 2)


def _zeros_between(left: float, right: float, h: np.ndarray, shares: np.ndarray) -> list[float]:
    """Find the zeros of the exponent between two poles, or between η = 0 and the first pole."""
    width = right - left

    def exponent(x: float) -> float:
        return float(exponents(np.array([left + width * x]), h, shares)[0])

    least = np.finfo(float).eps
    top = float(np.asarray(scipy.optimize.fminbound(lambda x: -exponent(x), least, 1 - least, xtol=1e-12)))
    if exponent(top) <= 0:
        return []
    right_zero = _zero(left + width * top, right, h, shares)
    return [right_zero] if left == 0 else [_zero(left, left + width * top, h, shares), right_zero]


def _zero(left: float, right: float, h: np.ndarray, shares: np.ndarray) -> float:
    """Find the zero between two learning rates at which the exponent has opposite signs; −∞ counts as negative."""
    inward = np.finfo(float).eps

    def exponent(rate: float) -> float:
        # A finite stand-in for −∞ of the same sign.
        return max(float(exponents(np.array([rate]), h, shares)[0]), -1e300)

    low, high = left * (1 + inward), right * (1 - inward)
    if np.sign(exponent(low)) == np.sign(exponent(high)):  # the zero is within rounding of a pole
        return low if exponent(left * (1 + 4 * inward)) > 0 else high
    return scipy.optimize.root_scalar(exponent, bracket=(low, high), xtol=1e-300, rtol=4 * inward).root
