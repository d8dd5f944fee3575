"""Where decay and gradients balance the norm of scale-invariant weights, and how far a step turns them there."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.arguments import require, require_choice, require_hyperparameters, require_numbers
from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.domain import covers

__all__ = [
    "equilibration_steps",
    "equilibrium_angular_step",
    "equilibrium_squared_norm",
    "equilibrium_squared_norm_from_steps",
]

_NETWORK, _DATA, _REFERENCE = "any, scale-invariant weights", "any", "arXiv:2105.02716"
_Closure = Literal["coherent", "white"]


@covers(
    network=_NETWORK,
    data=_DATA,
    start="any but zero",
    gives="the squared norm at which decay and gradients balance",
    reference=_REFERENCE,
    exact=False,
    assumes=(SMALL_STEPS,),
)
def equilibrium_squared_norm(
    squared_gradient: ArrayLike,
    *,
    learning_rate: float,
    weight_decay: float,
    momentum: float = 0.0,
    closure: _Closure = "coherent",
) -> Float[np.ndarray, "*shape"]:
    """r̄ = ‖θ‖² with r̄² = η(1 + β)/(2λ(1 − β)²) ‖ĝ‖², or η ‖ĝ‖²/(λ(1 − β)(2 − ηλ/(1 + β))) of white gradients.

    The first where gradients hardly change over 1/(1 − β) steps, the second where those of any two steps are
    independent. They differ by (1 + β)/(1 − β), and `equilibrium_squared_norm_from_steps` needs no such choice.

    Args:
        squared_gradient: ‖ĝ‖² ≥ 0 of the gradient at unit norm, its mean of white gradients, of any shape.
        learning_rate: η > 0.
        weight_decay: λ > 0, without which the norm grows forever.
        momentum: β ≥ 0, below one.
        closure: "coherent" or "white".

    Returns:
        r̄, of the shape of ‖ĝ‖².

    Raises:
        InputError: A number out of range, such as decay of zero; or, of white gradients, ηλ ≥ 2(1 + β).

    References:
        Tanaka, Kunin, arXiv:2105.02716.

    Example:
        >>> print(equilibrium_squared_norm(199.0, learning_rate=0.2, weight_decay=0.02, closure="white").round(6))
        31.575212
    """
    g = require_numbers("squared_gradient", squared_gradient, minimum=0)
    rate, decay, beta = _checked(learning_rate, weight_decay, momentum)
    require_choice("closure", closure, get_args(_Closure))
    with np.errstate(all="ignore"):
        if closure == "coherent":
            factor = (1 + beta) / (2 * (1 - beta) ** 2)
        else:
            left = 2 - rate * decay / (1 + beta)
            require(
                left > 0,
                f"learning_rate times weight_decay is {rate * decay:g}, at which weights grow",
                argument="weight_decay",
                value=weight_decay,
                remedy="choose ηλ below 2(1 + β)",
            )
            factor = 1 / ((1 - beta) * left)
        # Roots first, as products of small numbers vanish.
        return np.asarray(np.sqrt(factor) * (np.sqrt(rate) / np.sqrt(decay)) * np.sqrt(g))


@covers(
    network=_NETWORK,
    data=_DATA,
    start="any but zero",
    gives="the squared norm at equilibrium, from the size of steps",
    reference=_REFERENCE,
)
def equilibrium_squared_norm_from_steps(
    squared_displacement: ArrayLike, *, learning_rate: float, weight_decay: float, momentum: float = 0.0
) -> Float[np.ndarray, "*shape"]:
    """r̄ = (1 + β) E‖d‖² / (2ηλ), whatever the gradients are: the mean of the exact law of a stationary norm.

    Args:
        squared_displacement: E‖d‖² ≥ 0 of a step, of any shape.
        learning_rate: η > 0.
        weight_decay: λ > 0, without which the norm grows forever.
        momentum: β ≥ 0, below one.

    Returns:
        r̄, of the shape of E‖d‖².

    Raises:
        InputError: A number out of range, such as decay of zero.

    References:
        Tanaka, Kunin, arXiv:2105.02716.

    Example:
        >>> print(equilibrium_squared_norm_from_steps(0.004, learning_rate=0.2, weight_decay=0.02).round(6))
        0.5
    """
    d = require_numbers("squared_displacement", squared_displacement, minimum=0)
    rate, decay, beta = _checked(learning_rate, weight_decay, momentum)
    with np.errstate(all="ignore"):
        return np.asarray((1 + beta) / 2 * (d / rate / decay))


@covers(
    network=_NETWORK,
    data=_DATA,
    start="any but zero",
    gives="the angle of a step at equilibrium",
    reference=_REFERENCE,
    exact=False,
    assumes=(SMALL_STEPS,),
)
def equilibrium_angular_step(*, learning_rate: float, weight_decay: float, momentum: float = 0.0) -> float:
    """The root of the mean square of the angle of a step at equilibrium, √(2ηλ/(1 + β)), whatever the gradients are.

    Args:
        learning_rate: η > 0.
        weight_decay: λ > 0, without which there is no equilibrium.
        momentum: β ≥ 0, below one.

    Returns:
        The angle in radians, where it is small.

    Raises:
        InputError: A number out of range, such as decay of zero.

    References:
        Tanaka, Kunin, arXiv:2105.02716; Wan, Zhu, Zhang, Sun, arXiv:2006.08419.

    Example:
        >>> round(equilibrium_angular_step(learning_rate=0.2, weight_decay=0.02, momentum=0.9), 10)
        0.0648885685
    """
    rate, decay, beta = _checked(learning_rate, weight_decay, momentum)
    return float(np.sqrt(2 / (1 + beta)) * np.sqrt(rate) * np.sqrt(decay))


@covers(
    network=_NETWORK,
    data=_DATA,
    start="any but zero",
    gives="how many steps the norm takes to its equilibrium",
    reference=_REFERENCE,
    exact=False,
    assumes=(SMALL_STEPS,),
)
def equilibration_steps(*, learning_rate: float, weight_decay: float, momentum: float = 0.0) -> float:
    """The number (1 − β)/(4ηλ) of steps in which ‖θ‖⁴ comes nearer to its equilibrium by the factor e.

    Args:
        learning_rate: η > 0.
        weight_decay: λ > 0, without which there is no equilibrium.
        momentum: β ≥ 0, below one.

    Raises:
        InputError: A number out of range, such as decay of zero.

    References:
        Tanaka, Kunin, arXiv:2105.02716.

    Example:
        >>> round(equilibration_steps(learning_rate=0.1, weight_decay=0.0005), 6)
        5000.0
    """
    rate, decay, beta = _checked(learning_rate, weight_decay, momentum)
    with np.errstate(all="ignore"):
        return float(np.float64((1 - beta) / 4) / rate / decay)


def _checked(learning_rate: float, weight_decay: float, momentum: float) -> tuple[float, float, float]:
    require_hyperparameters(learning_rate=learning_rate, momentum=momentum, weight_decay=weight_decay)
    require(
        weight_decay > 0,
        "without weight decay there is no equilibrium: the norm grows forever",
        argument="weight_decay",
        value=weight_decay,
        remedy="choose a positive number, or follow the growth with squared_norm_path",
    )
    return float(learning_rate), float(weight_decay), float(momentum)
