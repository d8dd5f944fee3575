"""Displacement of stationary SGD near a minimum over a number of steps, exact at any learning rate."""

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
    "covers_stationary",
    "displacement_exponent",
    "require_no_negative_curvature",
    "slope_of_logarithms",
    "stationary_displacement",
    "velocity_correlation",
]

_ENTRIES = 200_000  # modes × steps computed at a time, which limits the memory
_POINTS = 32  # steps of a window to which the exponent is fitted


covers_stationary = functools.partial(
    covers,
    network="any, near a minimum",
    data="noise that does not depend on the weights",
    start="stationary",
    reference="arXiv:2107.09133",
)


@covers_stationary(gives="the squared displacement of stationary SGD over any number of steps")
def stationary_displacement(
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
    steps: NonNegativeNumbers,
    sgd: SGD,
) -> Float[np.ndarray, "*steps"]:
    """Mean squared displacement of stationary SGD over k steps, exact at any learning rate.

        E‖θ_{j+k} − θ_j‖² = Σ 2 (R_0 − R_k) = Σ 2η² s/S [(1 + β) W_k − β u_k] / ((1 − β)(2(1 + β) − ηh)) over modes

    R_k = (1 + β − ηh) R_{k−1} − β R_{k−2} is the autocorrelation of the weights at lag k, and h = ρ + λ. If z± are the
    roots of z² − (1 + β − ηh) z + β, then u_k = (z₊ᵏ − z₋ᵏ)/(z₊ − z₋) and W_k = u_1 + … + u_k. Because the formula does
    not divide by h, it also holds in the limit h → 0. A flat mode has no stationary law; after the first 1/(1 − β)
    steps, it diffuses by η² s/(S(1 − β)²) per step. At k = 1 the result is η² E‖v‖², the mean squared length of a step.
    The noise covariance Σ need not commute with the Hessian: if s = qᵀ Σ q for each eigenvector q of the Hessian, the
    sum is exact.

    The cost is 60 operations per mode and step; the memory required is a few numbers per mode.

    Args:
        curvature: ρ of each mode, a number or an array of shape (modes,), with ρ + λ ≥ 0.
        noise: s ≥ 0, the variance of the per-sample gradients along each mode, a number or an array of shape (modes,).
        steps: Numbers of steps k ≥ 0, whole, any shape.
        sgd: η, β, λ, S and N, with η (ρ + λ) < 2(1 + β).

    Returns:
        The displacement, with the shape of `steps`.

    Raises:
        InputError: If a setting is out of range, the steps diverge, or ρ + λ is negative along a mode.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, section 6, extended
        here to any learning rate.

    Example:
        >>> sgd = SGD(learning_rate=0.05, momentum=0.9, weight_decay=0.1, batch_size=8)
        >>> print(stationary_displacement(2.0, 0.7, [1, 10, 100], sgd).round(8))
        [0.00118403 0.03422509 0.02140965]
    """
    modes = noisy_steps(curvature, noise, sgd)
    require_no_negative_curvature(modes)
    return _sum_over_modes(modes, whole_steps("steps", steps).astype(float), _displacement)


@covers_stationary(gives="the velocity autocorrelation of stationary SGD")
def velocity_correlation(
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
    steps: NonNegativeNumbers,
    sgd: SGD,
) -> Float[np.ndarray, "*steps"]:
    """Velocity autocorrelation of stationary SGD at lag k.

        E⟨v_{j+k}, v_j⟩ = Σ E v² [(β − ηh/2) u_k − β u_{k−1}] over modes,   E v² = 2s/(S(1 − β)(2(1 + β) − ηh))

    The velocity v is the displacement in one step divided by the learning rate. The sum over all lags, positive and
    negative, is zero along a mode with a stationary law, and s/(S(1 − β)²) along a flat mode.

    The cost is 60 operations per mode and step.

    Args:
        curvature: ρ of each mode, a number or an array of shape (modes,), with ρ + λ ≥ 0.
        noise: s ≥ 0, the variance of the per-sample gradients along each mode, a number or an array of shape (modes,).
        steps: Lags k ≥ 0, whole, any shape.
        sgd: η, β, λ, S and N, with η (ρ + λ) < 2(1 + β).

    Returns:
        The autocorrelation, with the shape of `steps`.

    Raises:
        InputError: If a setting is out of range, the steps diverge, or ρ + λ is negative along a mode.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, in discrete time.

    Example:
        >>> print(velocity_correlation(2.0, 0.7, [0, 1, 2], SGD(0.05, momentum=0.5, batch_size=8)).round(6))
        [0.12069 0.05431 0.01569]
    """
    modes = noisy_steps(curvature, noise, sgd)
    require_no_negative_curvature(modes)
    return _sum_over_modes(modes, whole_steps("steps", steps).astype(float), _correlation)


@covers_stationary(gives="the diffusion exponent of SGD")
def displacement_exponent(
    curvature: FiniteNumbers, noise: NonNegativeNumbers, sgd: SGD, *, first: PositiveInt, last: PositiveInt
) -> float:
    """Diffusion exponent of SGD in a window of steps, from a least-squares fit.

        log E‖θ_{j+k} − θ_j‖² ≃ c log k + constant

    Compare this exponent with the result of `probes.diffusion.fit_exponent`, which fits the recorded displacement of a
    run in the same window. The exponent is 2 for persistent motion, 1 for independent steps, and lower once steep modes
    have equilibrated.

    The cost is 2000 operations per mode.

    Args:
        curvature: ρ of each mode, a number or an array of shape (modes,), with ρ + λ ≥ 0.
        noise: s ≥ 0, the variance of the per-sample gradients along each mode, a number or an array of shape (modes,);
            not all zero.
        sgd: η, β, λ, S and N, with η (ρ + λ) < 2(1 + β).
        first: First step of the window, a positive integer.
        last: Last step of the window, greater than `first`.

    Raises:
        InputError: If a setting is out of range, the steps diverge, or ρ + λ is negative along a mode.

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
    """Distinct, logarithmically spaced steps of a window."""
    require(
        last > first,
        f"last is {last}, but first is {first}",
        argument="last",
        value=last,
        remedy="choose a later step",
    )
    return np.unique(np.geomspace(float(first), float(last), _POINTS).round())


def slope_of_logarithms(steps: np.ndarray, values: np.ndarray) -> float:
    """Least-squares slope of log values against log steps."""
    require(
        bool(values.min() > 0),
        "noise is zero along every mode, so the weights do not move",
        argument="noise",
        value=0.0,
        remedy="give the variance of the gradient along each mode",
    )
    centred = np.log(steps) - np.log(steps).mean()
    return float(centred @ np.log(values) / (centred @ centred))


def require_no_negative_curvature(modes: NoisySteps) -> None:
    """Raise `InputError` if the steps diverge or ρ + λ is negative along a mode."""
    modes.require_stable()
    least = float(modes.curvature.min(initial=0.0))
    require(
        least >= 0,
        f"curvature plus weight decay is {least:g} along a mode, so the weights diverge along this mode",
        argument="curvature",
        value=least,
        remedy="omit such modes, or use the Gauss-Newton matrix, which has no negative eigenvalues",
    )


def _sum_over_modes(
    modes: NoisySteps, k: np.ndarray, quantity: Callable[[NoisySteps, StepPowers], np.ndarray]
) -> Float[np.ndarray, "*steps"]:
    """Sum a quantity over the modes, a few steps at a time to limit the memory."""
    steep = np.atleast_1d(modes.rate * modes.curvature)
    parts = np.array_split(np.ravel(k), 1 + k.size * steep.size // _ENTRIES)
    sums = [quantity(modes, powers_along(steep, part, modes.momentum)).sum(axis=1) for part in parts]
    return np.asarray(np.concatenate(sums).reshape(k.shape))


def _displacement(modes: NoisySteps, powers: StepPowers) -> np.ndarray:
    beta = modes.momentum
    return modes.rate**2 * modes.step_variance * ((1 + beta) * powers.total - beta * powers.response)


def _correlation(modes: NoisySteps, powers: StepPowers) -> np.ndarray:
    beta = modes.momentum
    correlation = (beta - modes.rate * modes.curvature / 2) * powers.response - beta * powers.previous
    # At lag zero the correlation is one; the formula needs u_{−1}, which the recursion does not provide.
    return modes.step_variance * np.where((powers.response == 0) & (powers.total == 0), 1.0, correlation)
