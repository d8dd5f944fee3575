"""Diffusion of SGD over spectra of curvature that fall as a power: the exponent, and in which steps it is seen."""

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
_GRID = 20  # points of a window in a factor of ten
_OVERFLOWS = 700.0  # logarithm of what is hardly a number
_SMOOTH = 3.0  # powers up to which the first modes differ so little that their sum is the closed form
_FEW = 20  # modes over the power, beyond which neighbours differ little for any
_NEGLIGIBLE = 1e17  # over the time: curvature at which a mode does not move
_covers = functools.partial(
    covers,
    network="any near a minimum",
    data="curvature that falls as a power, noise in proportion",
    start="at rest for long",
    reference="arXiv:2107.09133",
    exact=False,
    assumes=(SMALL_STEPS,),
)


class DiffusionWindow(NamedTuple):
    """The steps in which a power is seen.

    Attributes:
        exponent: min(1, 1/p), which the slope keeps to within the tolerance.
        first: First step of the window.
        last: Last step of it.
        first_time: τ = k ηρ₁/(1 − β) of the first step.
        last_time: That of the last.
    """

    exponent: float
    first: int
    last: int
    first_time: float
    last_time: float

    __repr__ = short_repr


@_covers(gives="the exponent of diffusion")
def anomalous_exponent(power: PositiveNumbers) -> Float[np.ndarray, "*powers"]:
    """Exponents c = min(1, 1/p) of E‖Δ‖² ∝ kᶜ, for curvatures ρ_l = ρ₁ l⁻ᵖ and noise in proportion to them.

    The number of modes that have come to rest grows as k^{1/p}, and each adds the same to the displacement. Where the
    curvature falls slower than 1/l most is in modes that are far from rest, and diffusion is ordinary.

    Args:
        power: p > 0, of any shape.

    Returns:
        c, of the shape of the powers.

    Raises:
        InputError: A power that is not positive.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, section 6.

    Example:
        >>> print(anomalous_exponent([0.5, 2.0]))
        [1.  0.5]
    """
    with np.errstate(all="ignore"):
        return np.asarray(np.minimum(1.0, 1 / np.asarray(power)))


@_covers(gives="how far stationary SGD goes over a spectrum that is a power")
def power_law_displacement(
    times: NonNegativeNumbers, *, power: _Power, modes: PositiveInt
) -> Float[np.ndarray, "*times"]:
    """Σ_{l ≤ d} [1 − exp(−τ l⁻ᵖ)] ≃ τ^{1/p} Γ(1 − 1/p, y) + (d + ½)(1 − e⁻ʸ) − ½ with y = τ d⁻ᵖ.

    E‖Δ‖² is ησ²/(S(1 − β)) times this, τ = ηkρ₁/(1 − β), for noise Σ = σ² H and no decay, once momentum is forgotten.
    For 1 ≪ τ ≪ dᵖ and p > 1 it is Γ(1 − 1/p) τ^{1/p} − ½ − τ d^{1−p}/(p − 1). The sum is an integral and half of its
    ends; for p ≤ 3 it misses less than 4 % from τ = 1 on, 0.5 % from τ = 10 on, and 10⁻⁴ from τ = 100 on.

    Args:
        times: τ ≥ 0, numbers of steps times ηρ₁/(1 − β), of any shape; meant from one on.
        power: p > 0, at least 0.05.
        modes: d, the number of modes.

    Returns:
        The sum, of the shape of the times.

    Raises:
        InputError: A number out of range.

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


@_covers(gives="the steps in which the exponent is seen")
def diffusion_window(
    *,
    power: _Power,
    modes: PositiveInt,
    learning_rate: PositiveFloat,
    momentum: Momentum = 0.0,
    largest_curvature: PositiveFloat = 1.0,
    tolerance: Annotated[FiniteFloat, Gt(0), Le(0.5)] = 0.02,
) -> DiffusionWindow:
    """The longest run of steps in which the slope of `power_law_displacement` is within the tolerance of min(1, 1/p).

    Half of the tolerance is for the slope, d log E‖Δ‖²/d log τ = τ^{1/p} Γ(1 − 1/p, y)/(p E‖Δ‖²), which bounds τ to
    1 ≪ τ ≪ dᵖ in numbers, and the other half for momentum, which is forgotten from step 2/((1 − β)·tolerance) on. In
    the window `displacement_exponent` of the same modes, which sums them exactly, is within the tolerance. Where p > 3
    the first modes come to rest one by one, and are summed so.

    Args:
        power: p > 0, at least 0.05.
        modes: d, the number of modes.
        learning_rate: η > 0.
        momentum: β ≥ 0, below one.
        largest_curvature: ρ₁ > 0.
        tolerance: What the slope may be off, above zero and at most 0.5.

    Raises:
        InputError: A number out of range, or modes too few for a window in which a factor of three fits; close to p = 1
            they always are.

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
        # Shallow spectra have most of their modes far from rest at τ = 1, and before.
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
        f"over {d} modes with power {p:g} the slope keeps nowhere to {exponent:.3g} within {tolerance:g}",
        argument="modes",
        value=d,
        remedy="choose more modes, a power that is further from one, less momentum, or a larger tolerance",
    )
    return DiffusionWindow(exponent, int(first), int(last), float(first * unit), float(last * unit))


def _rise(tau: np.ndarray, p: float, d: int) -> np.ndarray:
    """The slope d E‖Δ‖²/d log τ of `power_law_displacement`, but for half of the last mode."""
    return tau ** (1 / p) * _upper_gamma(1 - 1 / p, np.asarray(tau * d**-p)) / p


def _longest(inside: np.ndarray) -> tuple[int, int]:
    """First and last place of the longest run of true ones; twice the first place if there are none."""
    ends = np.diff(np.concatenate([[0], inside.astype(int), [0]]))
    begins, beyond = np.flatnonzero(ends > 0), np.flatnonzero(ends < 0)
    if len(begins) == 0:
        return 0, 0
    longest = int(np.argmax(beyond - begins))
    return int(begins[longest]), int(beyond[longest]) - 1


def _upper_gamma(a: float, y: np.ndarray) -> np.ndarray:
    """Γ(a, y) of any real a below one, from Γ(a, y) = [Γ(a + 1, y) − yᵃ e⁻ʸ]/a where a is not positive."""
    up = int(np.ceil(-a)) if a < 0 else 0
    top = a + up
    value = exp1(y) if top == 0 else gamma(top) * gammaincc(top, y)
    for below in range(1, up + 1):
        value = (value - y ** (top - below) * np.exp(-y)) / (top - below)
    return np.asarray(value)
