"""Scale-invariant weights before a normalisation layer: their norm adapts the learning rate as in RMSProp."""

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

_RADIAL = 1e-3  # largest |cosine| of gradient and weights for which weights count as scale-invariant


class ImplicitRMSProp(NamedTuple):
    """Settings with which RMSProp is equivalent to SGD for the direction of scale-invariant weights.

    Attributes:
        learning_rate: √(2ηλ/(1 + β)), the factor of ĝ/√v.
        memory: exp(−4ηλ/(1 − β)), the decay factor per step of v, the running mean of ‖ĝ‖².
        squared_norm_per_moment: The ratio ‖θ‖⁴/v.
    """

    learning_rate: float
    memory: float
    squared_norm_per_moment: float

    __repr__ = short_repr


@covers_scale_invariant(gives="the gradient at unit norm, after a check that the weights are scale-invariant")
def unit_gradient(weights: FiniteNumbers, gradient: FiniteNumbers) -> Float[np.ndarray, "*shape"]:
    """Gradient of a scale-invariant loss at the weights rescaled to unit norm.

        ĝ = ‖θ‖ g,   the gradient at θ/‖θ‖

    A loss that does not depend on ‖θ‖ has g(cθ) = g(θ)/c and ⟨g, θ⟩ = 0.

    Args:
        weights: θ of one block, any shape, not all zero.
        gradient: g of the loss without weight decay, in the same shape, with ⟨g, θ⟩ = 0.

    Returns:
        ĝ, with the shape of the weights and in the units of the loss.

    Raises:
        InputError: If the weights are zero, the shapes do not match, or |⟨g, θ⟩| > 10⁻³ ‖g‖‖θ‖. The last condition
            means that the weights are not scale-invariant, or that the ε of the normalisation is not small compared
            with the variance.

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
        remedy="choose a block whose weights are not all zero",
    )
    with np.errstate(all="ignore"):
        one, other = theta / largest, g / (steepest or 1.0)
        norm = np.linalg.norm(one)
        cosine = abs(np.vdot(one, other)) / (norm * (np.linalg.norm(other) or 1.0))
        require(
            bool(cosine <= _RADIAL),
            f"the cosine between gradient and weights is {cosine:.3g}, but must vanish for scale-invariant weights",
            argument="gradient",
            value=float(cosine),
            remedy="give all weights and biases that precede one normalisation layer together, and use a small ε",
        )
        return np.asarray(norm * largest * g)


@covers_scale_invariant(
    gives="the squared norm at every step, from gradients at unit norm", exact=False, assumes=(SMALL_STEPS,)
)
def squared_norm_path(
    initial: PositiveNumbers, squared_gradients: NonNegativeNumbers, sgd: SGD
) -> Float[np.ndarray, "steps ..."]:
    """Squared norm r = ‖θ‖² of scale-invariant weights at every step, from gradients at unit norm.

        (r²)' = −4λ/(1 − β) r² + 2η(1 + β)/(1 − β)³ ‖ĝ‖²

    Hence ‖θ‖⁴ is an exponential average of ‖ĝ‖². The equation assumes gradients that change slowly over 1/(1 − β)
    steps, and 4ηλ ≪ (1 − β)². If 4ηλ is 0.2 (1 − β)², the error is about 6 %. The equation does not describe the first
    1/(1 − β) steps. Without weight decay, r² can only grow. For the exact norm from the displacements, use
    `quadratic_charge`.

    Args:
        initial: r_0 > 0, one number per block.
        squared_gradients: ‖ĝ‖² ≥ 0 at every step, shape (steps, ...).
        sgd: η, β and λ.

    Returns:
        r before the first step and after each step, shape (steps + 1, ...).

    Raises:
        InputError: If a number is out of range, a batch size is given, or the shapes do not match.

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
            # hypot avoids overflow of the square of a large norm.
            kept, added = np.exp(-lost / 2) * path[k], np.sqrt(gain * now)
            path[k + 1] = np.hypot(kept, added)
    return path


@covers_scale_invariant(
    gives="the effective learning rate of the direction of the weights", exact=False, assumes=(SMALL_STEPS,)
)
def effective_learning_rate(
    squared_norm: PositiveNumbers, *, learning_rate: PositiveFloat, momentum: Momentum = 0.0
) -> Float[np.ndarray, "*shape"]:
    """Effective learning rate for the direction of scale-invariant weights, for slowly changing gradients.

        η/((1 − β) r),   r = ‖θ‖²

    Each step changes θ/‖θ‖ by −ĝ times the effective learning rate.

    Args:
        squared_norm: r > 0, any shape.
        learning_rate: η > 0.
        momentum: β ≥ 0, below one.

    Returns:
        The rate, with the shape of r.

    Raises:
        InputError: If a number is out of range.

    References:
        Tanaka, Kunin, arXiv:2105.02716.

    Example:
        >>> print(effective_learning_rate([1.0, 4.0], learning_rate=0.1, momentum=0.5))
        [0.2  0.05]
    """
    with np.errstate(all="ignore"):
        return np.asarray(float(learning_rate) / (1 - momentum) / np.asarray(squared_norm))


@covers_scale_invariant(
    gives="the RMSProp equivalent of SGD for the direction of the weights", exact=False, assumes=(SMALL_STEPS,)
)
def implicit_rmsprop(sgd: SGD) -> ImplicitRMSProp:
    """RMSProp equivalent of SGD with weight decay, for the direction θ̂ of scale-invariant weights.

        θ̂ ← θ̂ − √(2ηλ/(1 + β)) ĝ/√v,   v ← ρ v + (1 − ρ) ‖ĝ‖²,   ρ = exp(−4ηλ/(1 − β))

    With v = 2λ(1 − β)²/(η(1 + β)) ‖θ‖⁴, the RMSProp equations are equivalent to `squared_norm_path` with the rate of
    `effective_learning_rate`. All weights of a block share one v. The learning rate of RMSProp is the angle by which a
    step rotates the weights at equilibrium.

    Args:
        sgd: η, β and λ > 0; without weight decay v does not decay.

    Raises:
        InputError: If a number is out of range, there is no weight decay, or a batch size is given.

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
