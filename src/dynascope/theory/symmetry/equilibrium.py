"""Equilibrium of scale-invariant weights under weight decay: norm, angular step and equilibration time."""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np
from jaxtyping import Float

from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.domain import covers
from dynascope.theory.sgd import SGD, steps_of
from dynascope.validation import require
from dynascope.validation.bounded import NonNegativeNumbers

__all__ = [
    "covers_scale_invariant",
    "decaying_steps",
    "equilibration_steps",
    "equilibrium_angular_step",
    "equilibrium_squared_norm",
    "equilibrium_squared_norm_from_steps",
]

_Closure = Literal["coherent", "white"]


covers_scale_invariant = functools.partial(
    covers, network="any, scale-invariant weights", data="any", start="any but zero", reference="arXiv:2105.02716"
)


@covers_scale_invariant(
    gives="the squared norm at which decay and gradients balance", exact=False, assumes=(SMALL_STEPS,)
)
def equilibrium_squared_norm(
    squared_gradient: NonNegativeNumbers,
    sgd: SGD,
    *,
    closure: _Closure = "coherent",
) -> Float[np.ndarray, "*shape"]:
    """Squared norm of scale-invariant weights at which weight decay and gradients balance.

        r̄ = ‖θ‖²,   r̄² = η(1 + β)/(2λ(1 − β)²) ‖ĝ‖²                  (coherent gradients)
                    r̄² = η ‖ĝ‖²/(λ(1 − β)(2 − ηλ/(1 + β)))             (white gradients)

    The first form holds if gradients hardly change over 1/(1 − β) steps, the second if gradients at different steps are
    independent. The two forms differ by the factor (1 + β)/(1 − β). `equilibrium_squared_norm_from_steps` makes neither
    assumption.

    Args:
        squared_gradient: ‖ĝ‖² ≥ 0 of the gradient at unit norm, or its mean for white gradients; any shape.
        sgd: η, β and λ > 0; without weight decay the norm grows forever.
        closure: "coherent" or "white".

    Returns:
        r̄, shape of ‖ĝ‖².

    Raises:
        InputError: If a number is out of range, there is no weight decay, a batch size is given, or ηλ ≥ 2(1 + β) for
            white gradients.

    References:
        Tanaka, Kunin, arXiv:2105.02716.

    Example:
        >>> print(equilibrium_squared_norm(199.0, SGD(0.2, weight_decay=0.02), closure="white").round(6))
        31.575212
    """
    rate, decay, beta = decaying_steps(sgd)
    with np.errstate(all="ignore"):
        if closure == "coherent":
            factor = (1 + beta) / (2 * (1 - beta) ** 2)
        else:
            denominator = 2 - rate * decay / (1 + beta)
            require(
                denominator > 0,
                f"learning_rate times weight_decay is {rate * decay:g}, which is so large that the weights grow",
                argument="weight_decay",
                value=decay,
                remedy="choose ηλ below 2(1 + β)",
            )
            factor = 1 / ((1 - beta) * denominator)
        # Square roots first, since products of small numbers underflow.
        return np.asarray(np.sqrt(factor) * (np.sqrt(rate) / np.sqrt(decay)) * np.sqrt(squared_gradient))


@covers_scale_invariant(gives="the squared norm at equilibrium, from the mean squared displacement")
def equilibrium_squared_norm_from_steps(
    squared_displacement: NonNegativeNumbers, sgd: SGD
) -> Float[np.ndarray, "*shape"]:
    """Squared norm at equilibrium from the mean squared displacement per step, for any gradients.

        r̄ = (1 + β) E‖d‖² / (2ηλ)

    The formula is the mean of the exact law for a stationary norm.

    Args:
        squared_displacement: E‖d‖² ≥ 0 of a step, any shape.
        sgd: η, β and λ > 0; without weight decay the norm grows forever.

    Returns:
        r̄, shape of E‖d‖².

    Raises:
        InputError: If a number is out of range, there is no weight decay, or a batch size is given.

    References:
        Tanaka, Kunin, arXiv:2105.02716.

    Example:
        >>> print(equilibrium_squared_norm_from_steps(0.004, SGD(0.2, weight_decay=0.02)).round(6))
        0.5
    """
    rate, decay, beta = decaying_steps(sgd)
    with np.errstate(all="ignore"):
        return np.asarray((1 + beta) / 2 * (np.asarray(squared_displacement) / rate / decay))


@covers_scale_invariant(
    gives="the angle by which a step rotates the weights at equilibrium", exact=False, assumes=(SMALL_STEPS,)
)
def equilibrium_angular_step(sgd: SGD) -> float:
    """Root-mean-square angle by which a step rotates scale-invariant weights at equilibrium, for any gradients.

        √(2ηλ/(1 + β))

    Args:
        sgd: η, β and λ > 0; without weight decay there is no equilibrium.

    Returns:
        The angle in radians; accurate if it is small.

    Raises:
        InputError: If a number is out of range, there is no weight decay, or a batch size is given.

    References:
        Tanaka, Kunin, arXiv:2105.02716; Wan, Zhu, Zhang, Sun, arXiv:2006.08419.

    Example:
        >>> round(equilibrium_angular_step(SGD(0.2, momentum=0.9, weight_decay=0.02)), 10)
        0.0648885685
    """
    rate, decay, beta = decaying_steps(sgd)
    return float(np.sqrt(2 / (1 + beta)) * np.sqrt(rate) * np.sqrt(decay))


@covers_scale_invariant(gives="the number of steps until the norm equilibrates", exact=False, assumes=(SMALL_STEPS,))
def equilibration_steps(sgd: SGD) -> float:
    """Number of steps in which the distance of ‖θ‖⁴ from equilibrium decreases by a factor of e.

        (1 − β)/(4ηλ)

    Args:
        sgd: η, β and λ > 0; without weight decay there is no equilibrium.

    Raises:
        InputError: If a number is out of range, there is no weight decay, or a batch size is given.

    References:
        Tanaka, Kunin, arXiv:2105.02716.

    Example:
        >>> round(equilibration_steps(SGD(0.1, weight_decay=0.0005)), 6)
        5000.0
    """
    rate, decay, beta = decaying_steps(sgd)
    with np.errstate(all="ignore"):
        return float(np.float64((1 - beta) / 4) / rate / decay)


def decaying_steps(sgd: SGD) -> tuple[float, float, float]:
    """η, λ and β, after checking that λ > 0 and no batch size is given."""
    rate, decay, beta = steps_of(sgd)
    require(
        decay > 0,
        "weight_decay is zero, so there is no equilibrium and the norm grows forever",
        argument="weight_decay",
        value=decay,
        remedy="choose a positive number, or compute the growth with squared_norm_path",
    )
    return rate, decay, beta
