"""Weights before a normalization: their norm adapts the learning rate, as RMSProp would."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.sgd import SGD, Momentum, steps_of
from dynascope.theory.symmetry.equilibrium import covers_scale_invariant, decaying_steps
from dynascope.theory.symmetry.step_series import initial_charge, recorded_series
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers, PositiveFloat, PositiveNumbers

__all__ = [
    "ImplicitRMSProp",
    "effective_learning_rate",
    "implicit_rmsprop",
    "squared_norm_path",
    "unit_gradient",
]

_RADIAL = 1e-3  # cosine of gradient and weights up to which weights count as scale-invariant


class ImplicitRMSProp(NamedTuple):
    """RMSProp of the direction of scale-invariant weights.

    Attributes:
        learning_rate: √(2ηλ/(1 + β)), which multiplies ĝ/√v.
        memory: Factor exp(−4ηλ/(1 − β)) that v keeps of itself at every step.
        squared_norm_per_moment: What v is multiplied by to be ‖θ‖⁴.
    """

    learning_rate: float
    memory: float
    squared_norm_per_moment: float

    __repr__ = short_repr


@covers_scale_invariant(gives="the gradient at the point of unit norm, and whether weights are scale-invariant")
def unit_gradient(weights: FiniteNumbers, gradient: FiniteNumbers) -> Float[np.ndarray, "*shape"]:
    """The gradient ĝ = ‖θ‖ g at θ/‖θ‖ of a loss that does not depend on ‖θ‖, for which g(cθ) = g(θ)/c and ⟨g, θ⟩ = 0.

    Args:
        weights: θ of one block, of any shape, not all zero.
        gradient: g of the loss without weight decay, in the same shape, with ⟨g, θ⟩ = 0.

    Returns:
        ĝ, in the shape of the weights and in the units of the loss.

    Raises:
        InputError: Weights that are zero, shapes that do not fit, or |⟨g, θ⟩| > 10⁻³ ‖g‖‖θ‖, as of weights that are not
            scale-invariant, or whose normalization has an ε that is not small beside the variance.

    References:
        Tanaka, Kunin, arXiv:2105.02716.

    Example:
        >>> print(unit_gradient([3.0, 4.0], [0.8, -0.6]))
        [ 4. -3.]
    """
    theta = np.asarray(weights)
    g = require_array("gradient", gradient, theta.shape)
    largest, steepest = np.abs(theta).max(initial=0.0), np.abs(g).max(initial=0.0)
    require(
        largest > 0,
        "the weights are zero",
        argument="weights",
        value=0.0,
        remedy="give the weights of a block that is not dead",
    )
    with np.errstate(all="ignore"):
        one, other = theta / largest, g / (steepest or 1.0)
        norm = np.linalg.norm(one)
        cosine = abs(np.vdot(one, other)) / (norm * (np.linalg.norm(other) or 1.0))
        require(
            bool(cosine <= _RADIAL),
            f"the cosine of gradient and weights is {cosine:.3g}, and that of scale-invariant weights is zero",
            argument="gradient",
            value=float(cosine),
            remedy="give all weights and biases that one normalization rescales together, and a small ε",
        )
        return np.asarray(norm * largest * g)


@covers_scale_invariant(
    gives="the squared norm over time, from gradients at unit norm", exact=False, assumes=(SMALL_STEPS,)
)
def squared_norm_path(
    initial: PositiveNumbers, squared_gradients: NonNegativeNumbers, sgd: SGD
) -> Float[np.ndarray, "steps ..."]:
    """The squared norm r = ‖θ‖² after every step, of (r²)' = −4λ/(1 − β) r² + 2η(1 + β)/(1 − β)³ ‖ĝ‖².

    So ‖θ‖⁴ is an exponential average of ‖ĝ‖². The closure holds of gradients that change slowly over 1/(1 − β) steps,
    and for 4ηλ ≪ (1 − β)²: where they are 0.2 of that it is off by some 6 %, and of the first 1/(1 − β) steps it says
    nothing. Without decay r² only grows. Exact instead is `quadratic_charge`, from the displacements.

    Args:
        initial: r_0 > 0, one number for each block.
        squared_gradients: ‖ĝ‖² ≥ 0 at every step, shape (steps, ...).
        sgd: η, β and λ.

    Returns:
        r before the first step and after each, shape (steps + 1, ...).

    Raises:
        InputError: A number out of range, a batch size, or shapes that do not fit.

    References:
        Tanaka, Kunin, arXiv:2105.02716.

    Example:
        >>> print(squared_norm_path(1.0, [1.0, 1.0], SGD(0.1, weight_decay=0.1)).round(6))
        [1.       0.990149 0.980591]
    """
    g = recorded_series("squared_gradients", squared_gradients)
    start = initial_charge("initial", initial, g.shape[1:])
    rate, decay, beta = steps_of(sgd)
    path = np.empty((len(g) + 1, *g.shape[1:]))
    path[0] = start
    with np.errstate(all="ignore"):
        lost = 4 * rate * decay / (1 - beta)
        filled = -np.expm1(-lost) / lost if lost else 1.0
        gain = 2 * rate * (1 + beta) / (1 - beta) ** 3 * rate * filled
        for k, now in enumerate(g):
            # In units of the larger part, as the square of a large norm is infinite.
            kept, added = np.exp(-lost / 2) * path[k], np.sqrt(gain * now)
            path[k + 1] = np.hypot(kept, added)
    return path


@covers_scale_invariant(gives="the learning rate of the direction of the weights", exact=False, assumes=(SMALL_STEPS,))
def effective_learning_rate(
    squared_norm: PositiveNumbers, *, learning_rate: PositiveFloat, momentum: Momentum = 0.0
) -> Float[np.ndarray, "*shape"]:
    """η/((1 − β) r), r = ‖θ‖², by which a step turns θ/‖θ‖ along −ĝ where gradients change slowly.

    Args:
        squared_norm: r > 0, of any shape.
        learning_rate: η > 0.
        momentum: β ≥ 0, below one.

    Returns:
        The rate, of the shape of r.

    Raises:
        InputError: A number out of range.

    References:
        Tanaka, Kunin, arXiv:2105.02716.

    Example:
        >>> print(effective_learning_rate([1.0, 4.0], learning_rate=0.1, momentum=0.5))
        [0.2  0.05]
    """
    with np.errstate(all="ignore"):
        return np.asarray(float(learning_rate) / (1 - momentum) / np.asarray(squared_norm))


@covers_scale_invariant(
    gives="the RMSProp that the direction of the weights is trained by", exact=False, assumes=(SMALL_STEPS,)
)
def implicit_rmsprop(sgd: SGD) -> ImplicitRMSProp:
    """θ̂ ← θ̂ − √(2ηλ/(1 + β)) ĝ/√v with v ← ρ v + (1 − ρ) ‖ĝ‖², ρ = exp(−4ηλ/(1 − β)), which scale-invariant weights do.

    With v = 2λ(1 − β)²/(η(1 + β)) ‖θ‖⁴ this is the motion of `squared_norm_path` with the rate of
    `effective_learning_rate`: one RMSProp for each block, whose rate is the stationary angle of a step.

    Args:
        sgd: η, β and λ > 0, without which nothing is forgotten.

    Raises:
        InputError: A number out of range, such as decay of zero, or a batch size.

    References:
        Tanaka, Kunin, arXiv:2105.02716.

    Example:
        >>> round(implicit_rmsprop(SGD(0.1, weight_decay=0.05)).learning_rate, 6)
        0.1
    """
    rate, decay, beta = decaying_steps(sgd)
    with np.errstate(all="ignore"):
        return ImplicitRMSProp(
            float(np.sqrt(2 / (1 + beta)) * np.sqrt(rate) * np.sqrt(decay)),
            float(np.exp(-4 * rate * decay / (1 - beta))),
            float(np.float64(rate) / decay * (1 + beta) / (2 * (1 - beta) ** 2)),
        )
