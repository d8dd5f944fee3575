"""Quadratic charge of a linear symmetry, such as the imbalance of a neuron, at every step for constant settings."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge, Le
from jaxtyping import Float

from dynascope.theory.sgd import SGD, steps_of
from dynascope.theory.symmetry.step_series import covers_linear_symmetry, initial_charge, recorded_series, require_steps
from dynascope.validation import require
from dynascope.validation.bounded import FiniteFloat, FiniteNumbers

__all__ = ["quadratic_charge", "quadratic_charge_from_gradients"]


@covers_linear_symmetry(gives="the charge after every heavy-ball step, from the displacements")
def quadratic_charge(
    initial: FiniteNumbers,
    displacements: FiniteNumbers,
    sgd: SGD,
    *,
    dampening: Annotated[FiniteFloat, Ge(0), Le(1)] = 0.0,
    steps: FiniteNumbers | None = None,
) -> Float[np.ndarray, "steps ..."]:
    """Quadratic charge of a linear symmetry after every heavy-ball step, exact up to rounding.

        r_{k+1} = r_k + Δ_{k+1},   Δ_{k+1} = β (Δ_k + q_k) − 2ηλ r_k + q_{k+1},   r = θᵀGθ,   q = dᵀGd

    The law holds for every loss that is invariant under θ → exp(αG) θ with G = Gᵀ (hence θᵀG ∂L/∂θ = 0), and for the
    steps d ← β d − η (∂L/∂θ + λ θ), θ ← θ + d from d = 0. For a scale symmetry, G selects the scale-invariant weights,
    and r is their squared norm. For a symmetry that multiplies the incoming weights of a unit and divides the outgoing
    weights, r is the difference of their squared norms.

    Args:
        initial: r_0, one number per charge.
        displacements: q_k = d_kᵀ G d_k at every step, shape (steps, ...).
        sgd: η, β and λ, equal for all weights of the charge.
        dampening: PyTorch's dampening c, from zero to one, which multiplies gradients by 1 − c after the first step; it
            has no effect without momentum.
        steps: Numbers of the recorded steps, shape (steps,), to check that none is missing.

    Returns:
        The charges before the first step and after each step, shape (steps + 1, ...).

    Raises:
        InputError: If a number is out of range, a batch size is given, the shapes do not match, or a step is missing.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, in discrete form.

    Example:
        >>> print(quadratic_charge(1.0, [0.01, 0.04], SGD(0.1, momentum=0.5, weight_decay=0.5)))
        [1.    0.91  0.819]
    """
    rate, decay, momentum = steps_of(sgd)
    q = recorded_series("displacements", displacements)
    start = initial_charge("initial", initial, q.shape[1:])
    require_steps(steps, len(q))
    path = np.empty((len(q) + 1, *q.shape[1:]))
    path[0], change, before = start, 0.0, 0.0
    with np.errstate(all="ignore"):
        for k, now in enumerate(q):
            undamped = 1 - dampening if k and momentum > 0 else 1.0
            # Recursion of the changes, which are small; a second difference amplifies rounding by 1/(1 − β).
            change = momentum * (change + before) - 2 * rate * decay * undamped * path[k] + now
            path[k + 1], before = path[k] + change, now
    return path


@covers_linear_symmetry(gives="the charge after every step of plain gradient descent, from gradient norms")
def quadratic_charge_from_gradients(
    initial: FiniteNumbers,
    gradients: FiniteNumbers,
    sgd: SGD,
    *,
    steps: FiniteNumbers | None = None,
) -> Float[np.ndarray, "steps ..."]:
    """Quadratic charge of a linear symmetry after every step of plain gradient descent, from gradient norms.

        r_n = (1 − ηλ)²ⁿ r_0 + η² Σ_{k<n} (1 − ηλ)^{2(n−1−k)} g_kᵀ G g_k

    Args:
        initial: Initial charge r_0 = θᵀGθ, one number per charge.
        gradients: g_kᵀ G g_k at every step, where g_k is the loss gradient without weight decay, shape (steps, ...).
        sgd: η and λ, equal for all weights of the charge, without momentum; with momentum use `quadratic_charge`.
        steps: Numbers of the recorded steps, shape (steps,), to check that none is missing.

    Returns:
        The charges before the first step and after each step, shape (steps + 1, ...).

    Raises:
        InputError: If a number is out of range, momentum or a batch size is given, the shapes do not match, or a step
            is missing.

    References:
        Kunin et al., arXiv:2012.04728, in discrete form.

    Example:
        >>> print(quadratic_charge_from_gradients(1.0, [1.0, 4.0], SGD(0.1, weight_decay=0.5)))
        [1.         0.9125     0.86353125]
    """
    rate, decay, momentum = steps_of(sgd)
    g = recorded_series("gradients", gradients)
    start = initial_charge("initial", initial, g.shape[1:])
    require(
        momentum == 0,
        f"momentum is {momentum:g}, but gradient norms determine the charge only without momentum",
        argument="momentum",
        value=momentum,
        remedy="use quadratic_charge with the displacements, or scheduled_charge with the buffers",
    )
    require_steps(steps, len(g))
    path = np.empty((len(g) + 1, *g.shape[1:]))
    path[0] = start
    with np.errstate(all="ignore"):
        for k, now in enumerate(g):
            path[k + 1] = path[k] + (rate * rate * now - rate * decay * (2 - rate * decay) * path[k])
    return path
