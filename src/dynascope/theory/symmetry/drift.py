"""What moves a charge under any optimiser whatever: what steps remember and prefer, and that they are finite."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.symmetry.step_series import initial_charge, recorded_series, require_steps
from dynascope.validation.bounded import FiniteNumbers

__all__ = ["Drift", "charge_drift"]


class Drift(NamedTuple):
    """How far a charge has come, of shape (steps + 1, ...), zero before the first step.

    Attributes:
        memory: Σ 2 θᵀGd, by decay, momentum and preconditioning; zero of plain descent without decay.
        finite_step: Σ dᵀGd, which vanishes with the learning rate.
        charge: The charge itself, initial + memory + finite_step.
    """

    memory: Float[np.ndarray, "steps ..."]
    finite_step: Float[np.ndarray, "steps ..."]
    charge: Float[np.ndarray, "steps ..."]

    __repr__ = short_repr


@covers(
    network="any",
    data="any, in any batches",
    start="any",
    gives="what memory and what finite steps have moved a charge by, under any optimiser",
    reference="arXiv:2012.04728",
)
def charge_drift(
    initial: FiniteNumbers, crossed: FiniteNumbers, displacements: FiniteNumbers, *, steps: FiniteNumbers | None = None
) -> Drift:
    """The two parts of r_{k+1} − r_k = 2 θ_kᵀ G d_{k+1} + d_{k+1}ᵀ G d_{k+1}, added up from the start.

    An identity, and no law: it says of Adam and its kin what moved a charge, and predicts nothing.

    Args:
        initial: r_0 = θᵀGθ at the start, one number for each charge.
        crossed: θ_kᵀ G d_{k+1} of every step, with the weights before it, shape (steps, ...).
        displacements: d_{k+1}ᵀ G d_{k+1} of every step, in the same shape.
        steps: Numbers of the recorded steps, shape (steps,), to be sure that none is missing.

    Raises:
        InputError: Values that are not finite, shapes that do not fit, or missing steps.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728.

    Example:
        >>> print(charge_drift(1.0, [-0.1, 0.0], [0.25, 0.5]).charge)
        [1.   1.05 1.55]
    """
    squares = recorded_series("displacements", displacements)
    products = recorded_series("crossed", crossed, like=squares)
    start = initial_charge("initial", initial, squares.shape[1:])
    require_steps(steps, len(squares))
    with np.errstate(all="ignore"):
        memory, finite = (np.concatenate([0 * each[:1], each.cumsum(0)]) for each in (2 * products, squares))
        return Drift(memory, finite, start + memory + finite)
