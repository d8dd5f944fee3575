"""Anomalous diffusion of SGD with a power-law curvature spectrum: exponent and range of steps."""

from __future__ import annotations

import functools
from typing import Annotated, NamedTuple

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from jaxtyping import Float
from scipy.special import exp1, gamma, gammaincc

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.domain import covers
from dynascope.theory.sgd import Momentum
from dynascope.validation import require, require_kind
from dynascope.validation.bounded import (
    FiniteFloat,
    NonNegativeNumbers,
    PositiveFloat,
    PositiveInt,
    PositiveNumbers,
)

__all__ = ["DiffusionWindow", "anomalous_exponent", "diffusion_window", "power_law_displacement"]

_Power = Annotated[FiniteFloat, Ge(0.05)]
_GRID = 20  # grid points per decade of time
_OVERFLOWS = 700.0  # exp(700) is close to the largest floating-point number
_SMOOTH = 3.0  # largest power for which the closed form holds for the first modes too
_FEW = 20  # number of individually summed modes, divided by the power, for larger powers
_NEGLIGIBLE = 1e17  # modes with τ l⁻ᵖ below the inverse of this number do not move
_covers = functools.partial(
    covers,
    network="any, near a minimum",
    data="power-law curvature, noise proportional to it",
    start="stationary",
    reference="arXiv:2107.09133",
    exact=False,
    assumes=(SMALL_STEPS,),
)


class DiffusionWindow(NamedTuple):
    """Range of steps over which the displacement follows the power law.

    Attributes:
        exponent: min(1, 1/p); within the window, the log-log slope deviates from it by at most the tolerance.
        first: First step of the window.
        last: Last step of the window.
        first_time: τ = k ηρ₁/(1 − β) at the first step.
        last_time: τ at the last step.
    """

    exponent: float
    first: int
    last: int
    first_time: float
    last_time: float

    __repr__ = short_repr


@_covers(gives="the diffusion exponent")
def anomalous_exponent(power: PositiveNumbers) -> Float[np.ndarray, "*powers"]:
    """Diffusion exponent of stationary SGD for a power-law curvature spectrum.

        E‖Δ‖² ∝ kᶜ,   c = min(1, 1/p),   for curvatures ρ_l = ρ₁ l⁻ᵖ and noise proportional to them.

    The number of equilibrated modes grows as k^{1/p}, and all of them contribute equally to the displacement. If the
    spectrum falls more slowly than 1/l, modes far from equilibrium dominate, and the exponent is 1, as in ordinary
    diffusion.

    Args:
        power: p > 0, any shape.

    Returns:
        c, with the shape of `power`.

    Raises:
        InputError: If a power is not positive.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, section 6.

    Example:
        >>> print(anomalous_exponent([0.5, 2.0]))
        [1.  0.5]
    """
    with np.errstate(all="ignore"):
        return np.asarray(np.minimum(1.0, 1 / np.asarray(power)))


@_covers(gives="the squared displacement of stationary SGD for a power-law spectrum")
def power_law_displacement(
    times: NonNegativeNumbers, *, power: _Power, modes: PositiveInt
) -> Float[np.ndarray, "*times"]:
    """Squared displacement of stationary SGD for a power-law spectrum, in units of ησ²/(S(1 − β)).

        Σ_{l ≤ d} [1 − exp(−τ l⁻ᵖ)] ≃ τ^{1/p} Γ(1 − 1/p, y) + (d + ½)(1 − e⁻ʸ) − ½,   y = τ d⁻ᵖ

    E‖Δ‖² is the returned value times ησ²/(S(1 − β)) at τ = ηkρ₁/(1 − β), for noise Σ = σ² H, no weight decay, and many
    more than 1/(1 − β) steps. For 1 ≪ τ ≪ dᵖ and p > 1 the returned value is Γ(1 − 1/p) τ^{1/p} − ½ − τ
    d^{1−p}/(p − 1). The function approximates the sum over modes by an integral plus half of the first and last terms.
    For p ≤ 3 the relative error is below 4 % for τ ≥ 1, 0.5 % for τ ≥ 10, and 10⁻⁴ for τ ≥ 100.

    Args:
        times: τ ≥ 0, numbers of steps times ηρ₁/(1 − β), any shape; accurate for τ ≥ 1.
        power: p ≥ 0.05.
        modes: d, the number of modes.

    Returns:
        The displacement in these units, with the shape of `times`.

    Raises:
        InputError: If a number is out of range.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, section 6.

    Example:
        >>> print(power_law_displacement([10.0, 1000.0], power=2.0, modes=10_000).round(4))
        [ 5.104  55.4499]
    """
    tau, p, d = np.asarray(times), float(power), modes
    with np.errstate(all="ignore"):
        y = np.asarray(tau * d**-p)
        total = tau ** (1 / p) * _upper_gamma(1 - 1 / p, y) - (d + 0.5) * np.expm1(-y) - 0.5
        return np.asarray(np.where(tau > 0, np.maximum(total, 0.0), 0.0))


@_covers(gives="the range of steps in which the exponent is visible")
def diffusion_window(
    *,
    power: _Power,
    modes: PositiveInt,
    learning_rate: PositiveFloat,
    momentum: Momentum = 0.0,
    largest_curvature: PositiveFloat = 1.0,
    tolerance: Annotated[FiniteFloat, Gt(0), Le(0.5)] = 0.02,
) -> DiffusionWindow:
    """Longest range of steps in which the log-log slope of `power_law_displacement` is close to min(1, 1/p).

        d log E‖Δ‖²/d log τ = τ^{1/p} Γ(1 − 1/p, y)/(p E‖Δ‖²)

    Half of the tolerance applies to the slope of `power_law_displacement`, which restricts τ to a range within
    1 ≪ τ ≪ dᵖ. The other half allows for momentum, whose effect is small enough after 2/((1 − β)·tolerance) steps.
    Within the window, the slope of the exact sum over modes (`displacement_exponent`) also deviates by at most the
    tolerance. For p > 3 the first modes equilibrate one at a time, and the function sums them individually.

    Args:
        power: p ≥ 0.05.
        modes: d, the number of modes.
        learning_rate: η > 0.
        momentum: β ≥ 0, below one.
        largest_curvature: ρ₁ > 0, with ηρ₁ < 2(1 + β).
        tolerance: Largest deviation of the slope, above zero and at most 0.5.

    Raises:
        InputError: If a number is out of range, or no window spans a factor of three. Close to p = 1 there is no window
            for any number of modes.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, section 6.

    Example:
        >>> window = diffusion_window(power=2.0, modes=100_000, learning_rate=0.01, momentum=0.9)
        >>> window.exponent, round(window.first_time), round(window.last_time / 1e6)
        (0.5, 223, 12)
    """
    p, d = float(power), modes
    edge = 2 * (1 + momentum) / learning_rate
    require_kind(Annotated[float, Lt(edge)], largest_curvature=largest_curvature)
    with np.errstate(all="ignore"):
        unit = learning_rate * largest_curvature / (1 - momentum)
        exponent = float(anomalous_exponent(p))
        # In shallow spectra most modes are still far from equilibrium at τ = 1, so the window may begin earlier.
        begin = 1.0 if p >= 1 else 1e-3
        earliest = max(begin, unit * max(1.0, 2 / (1 - momentum) / tolerance * (momentum > 0)))
        resting = d**p if p * np.log(d) < _OVERFLOWS else np.inf
        latest = max(earliest, min(resting, 2.0**50 * unit))
        tau = np.geomspace(earliest, latest, 2 + int(_GRID * np.log10(latest / earliest)))
        rise, total = _rise(tau, p, d), power_law_displacement(tau, power=p, modes=d)
        if p > _SMOOTH:
            few = int(min(d, np.ceil(_FEW * p), np.ceil((_NEGLIGIBLE * latest) ** (1 / p))))
            x = tau[:, None] * np.arange(1.0, few + 1) ** -p
            rise += np.sum(x * np.exp(-x), axis=1) - _rise(tau, p, few)
            total -= np.sum(np.expm1(-x), axis=1) + power_law_displacement(tau, power=p, modes=few)
        slope = rise / total
        low, high = _longest(np.abs(slope - exponent) <= tolerance / 2)
    first, last = np.ceil(tau[low] / unit), np.floor(tau[high] / unit)
    require(
        bool(high > low and last >= 3 * first),
        f"modes is {d} and power is {p:g}, so no sufficiently wide range of steps has a slope within {tolerance:g} of "
        f"{exponent:.3g}",
        argument="modes",
        value=d,
        remedy="use more modes, a power further from one, less momentum, or a larger tolerance",
    )
    return DiffusionWindow(exponent, int(first), int(last), float(first * unit), float(last * unit))


def _rise(tau: np.ndarray, p: float, d: int) -> np.ndarray:
    """Derivative d E‖Δ‖²/d log τ of `power_law_displacement`, without the half term that corrects for the last mode."""
    return tau ** (1 / p) * _upper_gamma(1 - 1 / p, np.asarray(tau * d**-p)) / p


def _longest(inside: np.ndarray) -> tuple[int, int]:
    """First and last index of the longest run of true values; (0, 0) if there are none."""
    ends = np.diff(np.concatenate([[0], inside.astype(int), [0]]))
    begins, beyond = np.flatnonzero(ends > 0), np.flatnonzero(ends < 0)
    if len(begins) == 0:
        return 0, 0
    longest = int(np.argmax(beyond - begins))
    return int(begins[longest]), int(beyond[longest]) - 1


def _upper_gamma(a: float, y: np.ndarray) -> np.ndarray:
    """Compute Γ(a, y) for real a < 1; negative a by the recursion Γ(a, y) = [Γ(a + 1, y) − yᵃ e⁻ʸ]/a."""
    up = int(np.ceil(-a)) if a < 0 else 0
    top = a + up
    value = exp1(y) if top == 0 else gamma(top) * gammaincc(top, y)
    for below in range(1, up + 1):
        value = (value - y ** (top - below) * np.exp(-y)) / (top - below)
    return np.asarray(value)
