"""Charges under gradient flow: what is conserved without weight decay, and how fast decay takes it."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float

from dynascope.theory.domain import covers
from dynascope.validation.bounded import FiniteNumbers, NonNegativeFloat, NonNegativeNumbers

__all__ = ["gradient_flow_charge"]


@covers(
    network="any with a linear or a translation symmetry",
    data="any",
    start="any",
    gives="the charge under gradient flow with weight decay",
    reference="arXiv:2012.04728",
)
def gradient_flow_charge(
    times: NonNegativeNumbers,
    initial: FiniteNumbers,
    *,
    weight_decay: NonNegativeFloat = 0.0,
    degree: Literal[1, 2] = 2,
) -> Float[np.ndarray, "*times *charge"]:
    """Q(t) = exp(−p λ t) Q(0) of the flow θ' = −∂L/∂θ − λ θ, with the degree p of the charge in the weights.

    Args:
        times: Gradient-flow times t ≥ 0, of any shape.
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
    with np.errstate(all="ignore"):
        return np.asarray(np.multiply.outer(np.exp(-degree * weight_decay * np.asarray(times)), initial))
