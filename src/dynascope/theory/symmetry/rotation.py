"""The angular momentum of a rotation symmetry, which momentum forgets at every step and nothing else moves."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynascope.theory.domain import covers
from dynascope.theory.symmetry.translation import Momenta
from dynascope.validation import require_array
from dynascope.validation.bounded import FiniteNumbers

__all__ = ["rotation_charge"]


@covers(
    network="any with a rotation symmetry, such as linear layers and attention",
    data="any, in any batches",
    start="any",
    gives="the angular momentum after every step of momentum",
    reference="arXiv:2105.02716",
)
def rotation_charge(initial: FiniteNumbers, momentum: Momenta) -> Float[np.ndarray, "steps ..."]:
    """J_{k+1} = β_k J_k of J = ⟨v, Ωθ⟩, with Ω = −Ωᵀ and the buffer v ← β v + ∂L/∂θ + λ θ, θ ← θ − η v.

    Exact at any learning rate and weight decay, which may change at every step. From v = 0 it stays zero. At a constant
    rate the same holds of the displacement d = −η v. Nesterov's steps have no such law.

    Args:
        initial: J_0 = ⟨v_0, Ωθ_0⟩, of any shape.
        momentum: β ≥ 0, below one, of every step, shape (steps,).

    Returns:
        The charges before the first step and after each, shape (steps + 1, ...).

    Raises:
        InputError: A number that is not finite or out of range.

    References:
        Tanaka, Kunin, arXiv:2105.02716, of which this is the discrete form.

    Example:
        >>> print(rotation_charge(2.0, [0.5, 0.5]))
        [2.  1.  0.5]
    """
    left = np.cumprod([1.0, *require_array("momentum", momentum, (None,))])
    return np.asarray(np.multiply.outer(left, initial))
