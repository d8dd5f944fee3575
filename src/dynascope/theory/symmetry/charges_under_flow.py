"""Charges under gradient flow: what is conserved without weight decay, and how fast decay takes it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.arguments import count_axes, known_times, require_array, require_choice, require_number
from dynascope.theory.domain import covers

__all__ = ["gradient_flow_charge"]


@covers(
    network="any with a linear or a translation symmetry",
    data="any",
    start="any",
    gives="the charge under gradient flow with weight decay",
    reference="arXiv:2012.04728",
)
def gradient_flow_charge(
    times: ArrayLike, initial: ArrayLike, *, weight_decay: float = 0.0, degree: int = 2
) -> Float[np.ndarray, "*times *charge"]:
    """Q(t) = exp(−p λ t) Q(0) of the flow θ' = −∂L/∂θ − λ θ, with the degree p of the charge in the weights.

    Args:
        times: Gradient-flow times t ≥ 0, one or a row.
        initial: Q(0), of any shape.
        weight_decay: λ ≥ 0, the same for all weights of the charge.
        degree: Either 1 of sums of weights, which translations conserve, or 2 of squares.

    Returns:
        The charges, the axis of the times first.

    Raises:
        InputError: A number out of range.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, section 4.

    Example:
        >>> print(gradient_flow_charge([0.0, 5.0], 2.0, weight_decay=0.1).round(6))
        [2.       0.735759]
    """
    clock = known_times(times)
    start = require_array("initial", initial, (None,) * count_axes(initial))
    require_number("weight_decay", weight_decay, least=0)
    require_choice("degree", degree, (1, 2))
    with np.errstate(all="ignore"):
        return np.asarray(np.multiply.outer(np.exp(-degree * weight_decay * clock), start))
