"""Noether's charge of a symmetry under momentum, and its change due to friction, kinetic energy and weight decay."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.domain import covers
from dynascope.theory.sgd import SGD
from dynascope.theory.symmetry.step_series import initial_charge, recorded_series, require_steps
from dynascope.validation import require_array
from dynascope.validation.bounded import FiniteNumbers

__all__ = ["NoetherMotion", "noether_charge", "noether_charge_rate"]

_covers = functools.partial(
    covers, network="any with a symmetry", data="any, in any batches", start="any", reference="arXiv:2105.02716"
)


class NoetherMotion(NamedTuple):
    """Terms in the rate of change of P = m⟨θ', ξ⟩, each with the shape of the charges.

    Attributes:
        friction: −μ/m P.
        kinetic: m θ'ᵀGθ', the contribution of the kinetic energy, which breaks the symmetry; zero for translations and
            rotations.
        decay: −λ ⟨θ, ξ⟩; zero for rotations.
        total: P', the sum of all terms.
    """

    friction: Float[np.ndarray, "*shape"]
    kinetic: Float[np.ndarray, "*shape"]
    decay: Float[np.ndarray, "*shape"]
    total: Float[np.ndarray, "*shape"]

    __repr__ = short_repr


@_covers(gives="the rate of change of Noether's charge in continuous time", exact=False, assumes=(SMALL_STEPS,))
def noether_charge_rate(
    charge: FiniteNumbers, kinetic: FiniteNumbers, overlap: FiniteNumbers, sgd: SGD
) -> NoetherMotion:
    """Rate of change of Noether's charge P in continuous time, split into its causes.

        P' = −μ/m P + m θ'ᵀGθ' − λ ⟨θ, ξ⟩,   P = m⟨θ', ξ⟩,   ξ = Gθ + c,   m = η(1 + β)/2,   μ = 1 − β

    In continuous time heavy-ball steps obey m θ'' + μ θ' + λ θ + ∂L/∂θ = 0, the Euler–Lagrange equation of exp(μt/m)
    [m/2 ‖θ'‖² − L − λ/2 ‖θ‖²], and L is constant along ξ. Noether's charge in the strict sense is exp(μt/m) P, which
    soon overflows; its rate of change is exp(μt/m) times the same terms without friction.

    Args:
        charge: P, any shape.
        kinetic: θ'ᵀGθ', with θ' = d/η, in the same shape.
        overlap: ⟨θ, Gθ + c⟩, in the same shape.
        sgd: η, β and λ.

    Raises:
        InputError: If a number is out of range, a batch size is given, or the shapes do not match.

    References:
        Tanaka, Kunin, arXiv:2105.02716.

    Example:
        >>> print(noether_charge_rate(0.1, 2.0, 1.0, SGD(0.1, weight_decay=0.5)).total.round(6))
        -2.4
    """
    sgd.require_without_batches()
    p = np.asarray(charge)
    speeds, overlaps = (
        require_array(name, value, p.shape) for name, value in {"kinetic": kinetic, "overlap": overlap}.items()
    )
    with np.errstate(all="ignore"):
        mass = float(sgd.learning_rate) * (1 + sgd.momentum) / 2
        parts = (
            np.asarray(-(1 - sgd.momentum) / mass * p),
            np.asarray(mass * speeds),
            np.asarray(-sgd.weight_decay * overlaps),
        )
        return NoetherMotion(*parts, np.asarray(sum(parts)))


@_covers(gives="Noether's charge after every step of momentum")
def noether_charge(
    displacements: FiniteNumbers,
    overlaps: FiniteNumbers,
    sgd: SGD,
    *,
    initial: FiniteNumbers = 0.0,
    steps: FiniteNumbers | None = None,
) -> Float[np.ndarray, "steps ..."]:
    """Noether's charge after every heavy-ball step, exact at any learning rate.

        J_{k+1} = β J_k − ηλ ⟨θ_k, Gθ_k + c⟩ + d_{k+1}ᵀGd_{k+1},   J_k = ⟨d_k, Gθ_k + c⟩

    The law holds for every generator G, symmetric or not. For rotations, G = −Gᵀ, the added terms vanish and
    J_{k+1} = β J_k. For translations, G = 0, only weight decay adds to the charge. For scale and rescale symmetries, J
    is not conserved with momentum, even without weight decay. The charge P of `noether_charge_rate` equals (1 + β)/2 J.

    Args:
        displacements: d_kᵀGd_k at every step, shape (steps, ...).
        overlaps: ⟨θ_k, Gθ_k + c⟩ before every step, in the same shape.
        sgd: η, β and λ, equal for all weights of the charge.
        initial: J_0, one number per charge; zero if the weights start at rest.
        steps: Numbers of the recorded steps, shape (steps,), to check that none is missing.

    Returns:
        The charges before the first step and after each step, shape (steps + 1, ...).

    Raises:
        InputError: If a number is out of range, a batch size is given, the shapes do not match, or a step is missing.

    References:
        Tanaka, Kunin, arXiv:2105.02716, in discrete form.

    Example:
        >>> print(noether_charge([0.01, 0.04], [1.0, 0.9], SGD(0.1, momentum=0.5, weight_decay=0.5)))
        [ 0.    -0.04  -0.025]
    """
    sgd.require_without_batches()
    q = recorded_series("displacements", displacements)
    overlap = recorded_series("overlaps", overlaps, like=q)
    start = initial_charge("initial", initial, q.shape[1:])
    require_steps(steps, len(q))
    path = np.empty((len(q) + 1, *q.shape[1:]))
    path[0] = start
    with np.errstate(all="ignore"):
        for k, now in enumerate(q):
            path[k + 1] = sgd.momentum * path[k] - sgd.learning_rate * sgd.weight_decay * overlap[k] + now
    return path
