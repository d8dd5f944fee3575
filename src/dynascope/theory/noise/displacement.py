"""How far SGD that has come to rest near a minimum still goes in a number of steps, exactly at any learning rate."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from dynascope.theory.domain import covers
from dynascope.theory.noise.linear_recursion import whole_steps
from dynascope.theory.noise.quadratic_loss import NoisySteps, noisy_steps
from dynascope.theory.noise.step_powers import StepPowers, powers_along
from dynascope.theory.sgd import SGD
from dynascope.validation import require
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers, PositiveInt

__all__ = [
    "covers_at_rest",
    "displacement_exponent",
    "not_upwards",
    "slope_of_logarithms",
    "stationary_displacement",
    "velocity_correlation",
]

_ENTRIES = 200_000  # modes and steps at a time
_POINTS = 32  # steps of a window at which the exponent is taken


covers_at_rest = functools.partial(
    covers,
    network="any near a minimum",
    data="noise that does not depend on the weights",
    start="at rest for long",
    reference="arXiv:2107.09133",
)


@covers_at_rest(gives="how far stationary SGD goes in any steps")
def stationary_displacement(
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
    steps: NonNegativeNumbers,
    sgd: SGD,
) -> Float[np.ndarray, "*steps"]:
    """E‖θ_{j+k} − θ_j‖² = Σ 2 (R_0 − R_k) over modes, R_k = (1 + β − ηh) R_{k−1} − β R_{k−2} the correlation in time.

    In closed form it is Σ 2η² s/S [(1 + β) W_k − β u_k] / ((1 − β)(2(1 + β) − ηh)) with h = ρ + λ, u_k = (z₊ᵏ −
    z₋ᵏ)/(z₊ − z₋) of the roots z of z² − (1 + β − ηh) z + β, and W_k = u_1 + … + u_k, in which nothing is divided by h:
    along a flat mode, where weights never come to rest, it is the limit, diffusion by η² s/(S(1 − β)²) a step after the
    first 1/(1 − β). At k = 1 it is the local displacement η² E‖v‖². Modes need not be those of the noise: s = qᵀ Σ q of
    any covariance Σ gives the exact sum.

    Costs 60 operations for each mode and step, in memory for a few times the number of modes.

    Args:
        curvature: ρ of each mode, one number or a row; with weight decay none below zero.
        noise: s ≥ 0, likewise, the variance over samples of the gradient along each mode.
        steps: k ≥ 0, whole, of any shape.
        sgd: η, β, λ, S and N, with η (ρ + λ) < 2(1 + β).

    Returns:
        One number for each number of steps, of their shape.

    Raises:
        InputError: A setting out of range, a rate at which steps diverge, or a mode that curves downwards.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, section 6, here at any
        learning rate.

    Example:
        >>> sgd = SGD(learning_rate=0.05, momentum=0.9, weight_decay=0.1, batch_size=8)
        >>> print(stationary_displacement(2.0, 0.7, [1, 10, 100], sgd).round(8))
        [0.00118403 0.03422509 0.02140965]
    """
    modes = noisy_steps(curvature, noise, sgd)
    not_upwards(modes)
    return _summed(modes, whole_steps("steps", steps).astype(float), _displaced)


@covers_at_rest(gives="how long steps of SGD remember")
def velocity_correlation(
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
    steps: NonNegativeNumbers,
    sgd: SGD,
) -> Float[np.ndarray, "*steps"]:
    """E⟨v_{j+k}, v_j⟩ = Σ E v² [(β − ηh/2) u_k − β u_{k−1}] over modes, E v² = 2s/(S(1 − β)(2(1 + β) − ηh)).

    v is the step over the learning rate, so that the sum over all lags of either sign is zero along a mode that comes
    to rest, and s/(S(1 − β)²) along a flat one.

    Costs 60 operations for each mode and step.

    Args:
        curvature: ρ of each mode, one number or a row; with weight decay none below zero.
        noise: s ≥ 0, likewise, the variance over samples of the gradient along each mode.
        steps: The lags k ≥ 0, whole, of any shape.
        sgd: η, β, λ, S and N, with η (ρ + λ) < 2(1 + β).

    Returns:
        One number for each lag, of the shape of the steps.

    Raises:
        InputError: A setting out of range, a rate at which steps diverge, or a mode that curves downwards.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, here in discrete time.

    Example:
        >>> print(velocity_correlation(2.0, 0.7, [0, 1, 2], SGD(0.05, momentum=0.5, batch_size=8)).round(6))
        [0.12069 0.05431 0.01569]
    """
    modes = noisy_steps(curvature, noise, sgd)
    not_upwards(modes)
    return _summed(modes, whole_steps("steps", steps).astype(float), _correlated)


@covers_at_rest(gives="the exponent of the diffusion of SGD")
def displacement_exponent(
    curvature: FiniteNumbers, noise: NonNegativeNumbers, sgd: SGD, *, first: PositiveInt, last: PositiveInt
) -> float:
    """The slope c of log E‖θ_{j+k} − θ_j‖² ≃ c log k + constant over a window of steps, by least squares.

    It is what a fit to a run sees in the same window (`probes.diffusion.fit_exponent`): 2 where steps still go on in
    one direction, 1 where they are independent, less where steep modes have come to rest.

    Costs 2000 operations for each mode.

    Args:
        curvature: ρ of each mode, one number or a row; with weight decay none below zero.
        noise: s ≥ 0, likewise, the variance over samples of the gradient along each mode; not all zero.
        sgd: η, β, λ, S and N, with η (ρ + λ) < 2(1 + β).
        first: First step of the window, a positive integer.
        last: Last step of it, above the first.

    Raises:
        InputError: A setting out of range, a rate at which steps diverge, or a mode that curves downwards.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, section 6.

    Example:
        >>> curvature = [1.0 / mode**2 for mode in range(1, 1001)]
        >>> print(round(displacement_exponent(curvature, curvature, SGD(0.1), first=1000, last=10_000), 3))
        0.502
    """
    steps = window_steps(first, last)
    return slope_of_logarithms(steps, stationary_displacement(curvature, noise, steps, sgd))


def window_steps(first: int, last: int) -> Float[np.ndarray, " steps"]:
    """Different steps of a window, spaced logarithmically."""
    require(
        last > first, f"last is {last}, and first {first}", argument="last", value=last, remedy="choose a later step"
    )
    return np.unique(np.geomspace(float(first), float(last), _POINTS).round())


def slope_of_logarithms(steps: np.ndarray, values: np.ndarray) -> float:
    """The slope of log values over log steps, by least squares."""
    require(
        bool(values.min() > 0),
        "noise has nothing but zeros, and nothing moves",
        argument="noise",
        value=0.0,
        remedy="give the variance of the gradient along each mode",
    )
    away = np.log(steps) - np.log(steps).mean()
    return float(away @ np.log(values) / (away @ away))


def not_upwards(modes: NoisySteps) -> None:
    """Raise `InputError` if steps along a mode diverge, slowly or at once."""
    modes.require_stable()
    least = float(modes.curvature.min(initial=0.0))
    require(
        least >= 0,
        f"curvature has {least:g} with weight decay, a mode along which weights run away",
        argument="curvature",
        value=least,
        remedy="leave out such modes, or give those of the Gauss-Newton matrix, which has none",
    )


def _summed(
    modes: NoisySteps, k: np.ndarray, quantity: Callable[[NoisySteps, StepPowers], np.ndarray]
) -> Float[np.ndarray, "*steps"]:
    """The sum over modes of a quantity, a few steps after the other for the sake of memory."""
    steep = np.atleast_1d(modes.rate * modes.curvature)
    parts = np.array_split(np.ravel(k), 1 + k.size * steep.size // _ENTRIES)
    sums = [quantity(modes, powers_along(steep, part, modes.momentum)).sum(axis=1) for part in parts]
    return np.asarray(np.concatenate(sums).reshape(k.shape))


def _displaced(modes: NoisySteps, powers: StepPowers) -> np.ndarray:
    beta = modes.momentum
    return modes.rate**2 * modes.step_variance * ((1 + beta) * powers.total - beta * powers.response)


def _correlated(modes: NoisySteps, powers: StepPowers) -> np.ndarray:
    beta = modes.momentum
    answer = (beta - modes.rate * modes.curvature / 2) * powers.response - beta * powers.previous
    # Nothing has been forgotten before the first step, of which the recursion knows nothing.
    return modes.step_variance * np.where((powers.response == 0) & (powers.total == 0), 1.0, answer)
