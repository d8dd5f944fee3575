"""Accumulated utility of a neuron of a diagonal linear network, as the log-cosh of a signed phase."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.validation import checked
from dynascope.validation.bounded import NonNegativeNumbers, OpenFraction

__all__ = ["accumulated_utility", "activation_phase", "later_utility", "log_cosh", "signed_phase"]


def log_cosh(phase: ArrayLike) -> np.ndarray:
    """Return log cosh z = |z| + log(1 + e^(−2|z|)) − log 2, without overflow.

    Example:
        >>> log_cosh([0.0, 1.0, -100.0]).round(6)
        array([ 0.      ,  0.433781, 99.306853])
    """
    size = np.abs(np.asarray(phase, dtype=float))
    # For |z| < 1, cosh z − 1 = 2 sinh²(z/2) avoids the cancellation of the other form.
    small = np.log1p(2 * np.sinh(np.minimum(size, 1.0) / 2) ** 2)
    return np.where(size < 1, small, size + np.log1p(np.exp(-2 * size)) - np.log(2))


def accumulated_utility(integral: ArrayLike) -> np.ndarray:
    """Accumulated utility of a neuron θ = (u, v): the increase in its log-norm from u = scale, v = 0.

        S = ½ log cosh 2G

    G is the integral of −∂L/∂β. Since u ± v = scale·e^(±G), ‖θ‖² = scale² cosh 2G. S is also the integral of κ û v̂ g
    with κ = 2 and g = G', where û v̂ g is the utility of the direction of θ.

    References:
        Alternating Gradient Flows, arXiv 2506.06489.

    Example:
        >>> float(accumulated_utility(500.0).round(6))
        499.653426
    """
    return np.asarray(log_cosh(2 * np.asarray(integral, dtype=float)) / 2)


@checked
def signed_phase(utility: NonNegativeNumbers, *, aligned: ArrayLike = 1.0) -> np.ndarray:
    """Compute the signed phase c of a neuron, |c| = 2|G|, from its accumulated utility S.

        c = ± arccosh e^(2S)

    Here S = ½ log cosh 2G, and G is the integral of −∂L/∂β (see `accumulated_utility`).

    Args:
        utility: S ≥ 0, any shape.
        aligned: sign(g)·sign(G); negative while the gradient drives G back towards zero.

    Returns:
        c = aligned · (2S + log(1 + √(1 − e^(−4S)))), which is stable for every S.

    Example:
        >>> float(signed_phase(accumulated_utility(3.0), aligned=-1).round(12))
        -6.0
    """
    utility = np.asarray(utility)
    return np.asarray(np.sign(aligned) * (2 * utility + np.log1p(np.sqrt(-np.expm1(-4 * utility)))))


def later_utility(
    utility: Float[np.ndarray, " d"],
    gradient: Float[np.ndarray, " d"],
    duration: ArrayLike,
    *,
    aligned: Float[np.ndarray, " d"] | float = 1.0,
) -> Float[np.ndarray, " d"]:
    """Accumulated utility of a neuron after a time τ at constant gradient g, with maximal utility U* = |g|/2.

        S(t + τ) = S(t) + ½ log(cosh(4 U* τ + c)/cosh c)

    If c < 0, the neuron first shrinks to its initial size and then grows with the opposite sign.

    Source: the law of accumulated utility of diagonal linear networks, arXiv 2506.06489.

    Example:
        >>> start = accumulated_utility(np.array([2.0]))
        >>> later_utility(start, np.array([-1.0]), 5.0, aligned=-1.0) == accumulated_utility(np.array([-3.0]))
        array([ True])
    """
    phase = signed_phase(utility, aligned=aligned)
    # cosh c = e^(2S), so S(t) and ½ log cosh c cancel.
    return log_cosh(2 * np.abs(gradient) * duration + phase) / 2


@checked
def activation_phase(scale: OpenFraction) -> float:
    """Value of |G| at which a neuron of initial norm `scale` reaches norm one.

        |G| = ½ arccosh(scale⁻²)

    Alternating Gradient Flows activate a neuron at this value. At a finite scale, the times of the flows are therefore
    the accelerated times multiplied by this value instead of log(1/scale). The ratio of the two factors is 1 + log 2/(2
    log(1/scale)), up to terms of order scale⁴.

    Example:
        >>> float(round(activation_phase(1e-4) / np.log(1e4), 9)), round(activation_phase(1e-300), 6)
        (1.037628749, 691.122101)
    """
    return float(signed_phase(-np.log(scale))) / 2
