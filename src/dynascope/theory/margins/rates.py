"""Growth of the margin and decay of the loss after the direction of the parameters has converged."""

from __future__ import annotations

import functools
from typing import Annotated, TypeAlias

import numpy as np
from annotated_types import Interval
from jaxtyping import Float

from dynascope.theory.domain import covers
from dynascope.validation import require
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers, PositiveFloat

__all__ = ["covers_quasi_homogeneous", "log_time", "margin_at_time", "normalised_time"]

_NEAR = 50.0  # exp(−50) is below rounding
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)

LargestRate: TypeAlias = Annotated[float, Interval(gt=0, le=1)]


covers_quasi_homogeneous = functools.partial(
    covers, network="any quasi-homogeneous network", data="separable", start="any", reference="arXiv:2210.03820"
)


@covers_quasi_homogeneous(exact=False, gives="the time at which the loss reaches a value")
def log_time(
    margin: NonNegativeNumbers,
    *,
    largest_rate: LargestRate = 1.0,
    value: PositiveFloat = 0.5,
    start: PositiveFloat = 1.0,
) -> Float[np.ndarray, "*shape"]:
    """Logarithm of the time t at which gradient flow reaches the loss exp(−ν).

        t = 2λ²P ∫_{ν_0}^{ν} e^u u^{−(2 − 2λ)} du

    The parameters are θ = ν^Λ θ̂, where θ̂ solves the max-margin problem of value P = ½ Σ θ̂² over the parameters with
    λ = λ_max. Then ν = log(1/L) satisfies ‖∇ν‖² = ν^(2 − 2λ)/(2λ²P) and ν' = ‖∇ν‖² exp(−ν). Hence L t (log
    t)^(2 − 2λ) → 2λ²P: for linear networks L ∝ 1/t, and for deeper networks L decreases faster. The constant is derived
    here.

    Args:
        margin: ν = log(1/L) with L = Σ exp(−q), above `start`, any shape.
        largest_rate: λ = λ_max > 0, at most 1.
        value: Value P > 0 of the max-margin problem, as returned by `max_margin`.
        start: ν_0 > 0 at t = 0; late times hardly depend on ν_0.

    Returns:
        log t, with the shape of the margin; t itself may overflow.

    Raises:
        InputError: If a number is out of range, or a margin is not above `start`.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820; Lyu, Li, arXiv:1906.05890.

    Example:
        >>> log_t = log_time([50.0, 400.0], largest_rate=0.5, value=1.0)
        >>> print((2 * np.exp(log_t - [50, 400]) * log_t).round(5))
        [0.92725 0.98577]
    """
    nu, rate, cost = np.asarray(margin), largest_rate, value
    require(
        bool((nu > start).all()),
        f"a margin is {nu.min(initial=np.inf):.6g}, but start is {start:g}",
        argument="margin",
        value=float(nu.min(initial=np.inf)),
        remedy="give margins above start",
    )
    power = 2 - 2 * rate
    flat = [np.log(_integral(float(each), float(start), power)) + each for each in nu.ravel()]
    with np.errstate(all="ignore"):
        return np.asarray(np.reshape(flat, nu.shape) + np.log(2 * rate**2 * cost))


@covers_quasi_homogeneous(exact=False, gives="the loss at a given time")
def margin_at_time(
    log_times: FiniteNumbers,
    *,
    largest_rate: LargestRate = 1.0,
    value: PositiveFloat = 0.5,
    start: PositiveFloat = 1.0,
) -> Float[np.ndarray, "*shape"]:
    """Margin ν(t) = log(1/L) at a given log t, the inverse of `log_time`.

    Args:
        log_times: log t of gradient-flow times, any shape; t itself may overflow.
        largest_rate: λ_max > 0, at most 1.
        value: Value P > 0 of the max-margin problem.
        start: ν_0 > 0 at t = 0.

    Returns:
        ν, with the shape of the times.

    Raises:
        InputError: If a number is out of range.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820.

    Example:
        >>> print(margin_at_time(1000.0, largest_rate=0.5, value=1.0).round(4))
        1007.6075
    """
    log_t, rate, cost = np.asarray(log_times), largest_rate, value
    power, unit = 2 - 2 * rate, np.log(2 * rate**2 * cost)
    found = []
    for each in log_t.ravel():
        low, high = float(start), max(2.0 * start, 2 * abs(float(each) - unit) + 200)
        for _ in range(200):  # bisection down to rounding
            middle = (low + high) / 2
            if not low < middle < high:
                break
            late = middle + np.log(_integral(middle, float(start), power)) + unit > each
            low, high = (low, middle) if late else (middle, high)
        found.append(high)
    return np.asarray(found).reshape(log_t.shape)


@covers_quasi_homogeneous(exact=False, gives="the normalised time at which the loss reaches a value")
def normalised_time(
    margin: NonNegativeNumbers,
    *,
    largest_rate: LargestRate = 1.0,
    value: PositiveFloat = 0.5,
    start: PositiveFloat = 1.0,
) -> Float[np.ndarray, "*shape"]:
    """Normalised time s at which the loss is exp(−ν): the time of the flow dθ/ds = −∇ log L along the same trajectory.

        s = 2λ²P ∫_{ν_0}^{ν} u^{−(2 − 2λ)} du

    The integral is 2P (ν − ν_0) for λ = 1, P/2 log(ν/ν_0) for λ = ½, and (ν^(2λ − 1) − ν_0^(2λ − 1)) 2λ²P/(2λ − 1)
    otherwise. For λ < ½ (more than two layers), all margins are reached at a finite s.

    Args:
        margin: ν = log(1/L), at least `start`, any shape.
        largest_rate: λ_max > 0, at most 1.
        value: Value P > 0 of the max-margin problem.
        start: ν_0 > 0 at s = 0.

    Returns:
        s, with the shape of the margin.

    Raises:
        InputError: If a number is out of range, or a margin is below `start`.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820.

    Example:
        >>> print(normalised_time(1e6, largest_rate=0.5, value=1.0).round(4))
        6.9078
    """
    nu, rate, cost = np.asarray(margin), largest_rate, value
    require(
        bool((nu >= start).all()),
        f"a margin is {nu.min(initial=np.inf):.6g}, but start is {start:g}",
        argument="margin",
        value=float(nu.min(initial=np.inf)),
        remedy="give margins of at least start",
    )
    power, span = 2 * rate - 1, np.log(nu / start)
    with np.errstate(all="ignore"):
        grown = np.expm1(power * span) / power if abs(power) > 1e-12 else span
        return np.asarray(2 * rate**2 * cost * start**power * grown)


def _integral(nu: float, start: float, power: float) -> float:
    """Compute ∫ exp(u − ν) u^−power du from `start` to ν, by quadrature on panels in which the integrand is smooth."""
    low = max(start, nu - _NEAR)
    # The exponential varies on the scale one, the power on logarithmic scales.
    edges = np.concatenate([[low, nu], nu - 2.0 ** np.arange(-1, 6), low * 2.0 ** np.arange(1, np.log2(nu / low) + 1)])
    ends = np.unique(edges[(low <= edges) & (edges <= nu)])
    half, middle = np.diff(ends)[:, None] / 2, (ends[1:] + ends[:-1])[:, None] / 2
    u = middle + half * _NODES
    return float(np.sum(half * _WEIGHTS * np.exp(u - nu) * u**-power))
