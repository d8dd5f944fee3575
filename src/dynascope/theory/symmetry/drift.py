"""Drift of a charge under any optimiser, split into a memory term and a finite-step term."""

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
    """Accumulated change of a charge, shape (steps + 1, ...), zero before the first step.

    Attributes:
        memory: Σ 2 θᵀGd, the part due to weight decay, momentum and preconditioning; zero for plain gradient descent
            without weight decay.
        finite_step: Σ dᵀGd, the part due to finite steps, which vanishes with the learning rate.
        charge: The charge, initial + memory + finite_step.
    """

    memory: Float[np.ndarray, "steps ..."]
    finite_step: Float[np.ndarray, "steps ..."]
    charge: Float[np.ndarray, "steps ..."]

    __repr__ = short_repr


@covers(
    network="any",
    data="any, in any batches",
    start="any",
    gives="the parts of the drift of a charge due to memory and finite steps, under any optimiser",
    reference="arXiv:2012.04728",
)
def charge_drift(
    initial: FiniteNumbers, crossed: FiniteNumbers, displacements: FiniteNumbers, *, steps: FiniteNumbers | None = None
) -> Drift:
    """Split the drift of a charge under any optimiser into a memory part and a finite-step part.

        r_{k+1} − r_k = 2 θ_kᵀ G d_{k+1} + d_{k+1}ᵀ G d_{k+1}

    The formula is an identity, not a law. It explains the drift of a charge, for example under Adam, but does not
    predict the drift.

    Args:
        initial: Initial charge r_0 = θᵀGθ, one number per charge.
        crossed: θ_kᵀ G d_{k+1} at every step, with the weights before the step, shape (steps, ...).
        displacements: d_{k+1}ᵀ G d_{k+1} at every step, in the same shape.
        steps: Numbers of the recorded steps, shape (steps,), to check that none is missing.

    Raises:
        InputError: If a value is not finite, the shapes do not match, or a step is missing.

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
