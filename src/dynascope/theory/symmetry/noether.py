"""Noether's charge of a symmetry under momentum, and what moves it: friction, kinetic energy, weight decay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.arguments import count_axes, require_array, require_hyperparameters
from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.domain import covers
from dynascope.theory.symmetry.step_series import initial_charge, recorded_series, require_steps

__all__ = ["NoetherMotion", "noether_charge", "noether_charge_rate"]

_NETWORK, _DATA, _REFERENCE = "any with a symmetry", "any, in any batches", "arXiv:2105.02716"


class NoetherMotion(NamedTuple):
    """Each term of the motion of P = m⟨θ', ξ⟩, of the shape of the charges.

    Attributes:
        friction: −μ/m P.
        kinetic: m θ'ᵀGθ', the breaking of the symmetry by the kinetic energy; zero of translations and rotations.
        decay: −λ ⟨θ, ξ⟩; zero of rotations.
        total: P', their sum.
    """

    friction: Float[np.ndarray, "*shape"]
    kinetic: Float[np.ndarray, "*shape"]
    decay: Float[np.ndarray, "*shape"]
    total: Float[np.ndarray, "*shape"]

    __repr__ = short_repr


@covers(
    network=_NETWORK,
    data=_DATA,
    start="any",
    gives="what moves Noether's charge in continuous time",
    reference=_REFERENCE,
    exact=False,
    assumes=(SMALL_STEPS,),
)
def noether_charge_rate(
    charge: ArrayLike,
    kinetic: ArrayLike,
    overlap: ArrayLike,
    *,
    learning_rate: float,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
) -> NoetherMotion:
    """P' = −μ/m P + m θ'ᵀGθ' − λ ⟨θ, ξ⟩ of P = m⟨θ', ξ⟩, ξ = Gθ + c, with m = η(1 + β)/2 and μ = 1 − β.

    Steps of momentum follow m θ'' + μ θ' + λ θ + ∂L/∂θ = 0, the Euler–Lagrange equation of
    exp(μt/m) [m/2 ‖θ'‖² − L − λ/2 ‖θ‖²], and L does not change along ξ. Noether's charge is exp(μt/m) P, which leaves
    the floating-point numbers soon and which no one needs: its motion is that of P without the friction.

    Args:
        charge: P, of any shape.
        kinetic: θ'ᵀGθ', with θ' = d/η, in the same shape.
        overlap: ⟨θ, Gθ + c⟩, in the same shape.
        learning_rate: η > 0.
        weight_decay: λ ≥ 0.
        momentum: β ≥ 0, below one.

    Raises:
        InputError: A number out of range, or shapes that do not fit.

    References:
        Tanaka, Kunin, arXiv:2105.02716.

    Example:
        >>> print(noether_charge_rate(0.1, 2.0, 1.0, learning_rate=0.1, weight_decay=0.5).total.round(6))
        -2.4
    """
    p = require_array("charge", charge, (None,) * count_axes(charge))
    speeds, overlaps = (
        require_array(name, value, p.shape) for name, value in {"kinetic": kinetic, "overlap": overlap}.items()
    )
    require_hyperparameters(learning_rate=learning_rate, weight_decay=weight_decay, momentum=momentum)
    with np.errstate(all="ignore"):
        mass = float(learning_rate) * (1 + momentum) / 2
        parts = (
            np.asarray(-(1 - momentum) / mass * p),
            np.asarray(mass * speeds),
            np.asarray(-weight_decay * overlaps),
        )
        return NoetherMotion(*parts, np.asarray(sum(parts)))


@covers(
    network=_NETWORK,
    data=_DATA,
    start="any",
    gives="Noether's charge after every step of momentum",
    reference=_REFERENCE,
)
def noether_charge(
    displacements: ArrayLike,
    overlaps: ArrayLike,
    *,
    learning_rate: float,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    initial: ArrayLike = 0.0,
    steps: ArrayLike | None = None,
) -> Float[np.ndarray, "steps ..."]:
    """J_{k+1} = β J_k − ηλ ⟨θ_k, Gθ_k + c⟩ + d_{k+1}ᵀGd_{k+1} of J_k = ⟨d_k, Gθ_k + c⟩, the exact motion of steps.

    Holds of every generator G, symmetric or not, at any learning rate. Of rotations, G = −Gᵀ, what is added is zero and
    J_{k+1} = β J_k; of translations, G = 0, it is weight decay alone; of scale and rescale symmetries momentum
    conserves nothing, even without decay. P of `noether_charge_rate` is (1 + β)/2 J.

    Args:
        displacements: d_kᵀGd_k of every step, shape (steps, ...).
        overlaps: ⟨θ_k, Gθ_k + c⟩ before every step, in the same shape.
        learning_rate: η > 0.
        weight_decay: λ ≥ 0, the same for all weights of the charge.
        momentum: β ≥ 0, below one.
        initial: J_0, one number for each charge; zero from rest.
        steps: Numbers of the recorded steps, shape (steps,), to be sure that none is missing.

    Returns:
        The charges before the first step and after each, shape (steps + 1, ...).

    Raises:
        InputError: A number out of range, shapes that do not fit, or missing steps.

    References:
        Tanaka, Kunin, arXiv:2105.02716, of which this is the discrete form.

    Example:
        >>> print(noether_charge([0.01, 0.04], [1.0, 0.9], learning_rate=0.1, weight_decay=0.5, momentum=0.5))
        [ 0.    -0.04  -0.025]
    """
    q = recorded_series("displacements", displacements)
    overlap = recorded_series("overlaps", overlaps, like=q)
    start = initial_charge("initial", initial, q.shape[1:])
    require_hyperparameters(learning_rate=learning_rate, weight_decay=weight_decay, momentum=momentum)
    require_steps(steps, len(q))
    path = np.empty((len(q) + 1, *q.shape[1:]))
    path[0] = start
    with np.errstate(all="ignore"):
        for k, now in enumerate(q):
            path[k + 1] = momentum * path[k] - learning_rate * weight_decay * overlap[k] + now
    return path
