"""The quadratic charge of a linear symmetry, such as the imbalance of a neuron, after every step at constant rates."""

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


@covers_linear_symmetry(gives="the charge after every step of momentum, from the displacements")
def quadratic_charge(
    initial: FiniteNumbers,
    displacements: FiniteNumbers,
    sgd: SGD,
    *,
    dampening: Annotated[FiniteFloat, Ge(0), Le(1)] = 0.0,
    steps: FiniteNumbers | None = None,
) -> Float[np.ndarray, "steps ..."]:
    """r_{k+1} = r_k + Δ_{k+1} with Δ_{k+1} = β (Δ_k + q_k) − 2ηλ r_k + q_{k+1}, where r = θᵀGθ and q = dᵀGd.

    Exact, up to rounding, for every loss that does not change along θ → exp(αG) θ with G = Gᵀ, so that θᵀG ∂L/∂θ = 0,
    and steps d ← β d − η (∂L/∂θ + λ θ), θ ← θ + d from d = 0. Of a scale symmetry G selects the weights; of one that
    multiplies weights into a unit and divides those out of it, r is the difference of their squared norms.

    Args:
        initial: r_0, one number for each charge.
        displacements: q_k = d_kᵀ G d_k of every step, shape (steps, ...).
        sgd: η, β and λ, the same for all weights of the charge.
        dampening: c ≥ 0 of PyTorch, at most one, which multiplies gradients by 1 − c after the first step; without
            momentum it does nothing.
        steps: Numbers of the recorded steps, shape (steps,), to be sure that none is missing.

    Returns:
        The charges before the first step and after each, shape (steps + 1, ...).

    Raises:
        InputError: A number out of range, a batch size, shapes that do not fit, or missing steps.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, of which this is the discrete form.

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
            kept = 1 - dampening if k and momentum > 0 else 1.0
            # By changes, which are small, as a second difference would lose 1/(1 − β) times more.
            change = momentum * (change + before) - 2 * rate * decay * kept * path[k] + now
            path[k + 1], before = path[k] + change, now
    return path


@covers_linear_symmetry(gives="the charge after every step of plain descent, from norms of gradients")
def quadratic_charge_from_gradients(
    initial: FiniteNumbers,
    gradients: FiniteNumbers,
    sgd: SGD,
    *,
    steps: FiniteNumbers | None = None,
) -> Float[np.ndarray, "steps ..."]:
    """r_n = (1 − ηλ)²ⁿ r_0 + η² Σ_{k<n} (1 − ηλ)^{2(n−1−k)} g_kᵀ G g_k of descent without momentum.

    Args:
        initial: r_0 = θᵀGθ at the start, one number for each charge.
        gradients: g_kᵀ G g_k of the gradient of the loss, without weight decay, at every step, shape (steps, ...).
        sgd: η and λ, the same for all weights of the charge; with momentum, the displacements are needed.
        steps: Numbers of the recorded steps, shape (steps,), to be sure that none is missing.

    Returns:
        The charges before the first step and after each, shape (steps + 1, ...).

    Raises:
        InputError: A number out of range, momentum, a batch size, shapes that do not fit, or missing steps.

    References:
        Kunin et al., arXiv:2012.04728, of which this is the discrete form.

    Example:
        >>> print(quadratic_charge_from_gradients(1.0, [1.0, 4.0], SGD(0.1, weight_decay=0.5)))
        [1.         0.9125     0.86353125]
    """
    rate, decay, momentum = steps_of(sgd)
    g = recorded_series("gradients", gradients)
    start = initial_charge("initial", initial, g.shape[1:])
    require(
        momentum == 0,
        f"momentum is {momentum:g}, and norms of gradients tell the charge of plain descent only",
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
