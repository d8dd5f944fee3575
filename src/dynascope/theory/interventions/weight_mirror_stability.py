"""Stability of forward weights whose feedback weights are learned by a weight mirror."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.interventions.credit_primitives import credit_theory
from dynascope.validation.bounded import NonNegativeFloat, PositiveFloat

__all__ = ["MirrorStability", "weight_mirror_stability"]


class MirrorStability(NamedTuple):
    """Stability of a weight and its feedback weight that amplify each other.

    Attributes:
        growth_rate: Largest eigenvalue of the linearised flow; if it is positive, both weights grow away from zero.
        unstable: Whether the gain exceeds the product of the decays, k > βμ.
        weight: Absolute value at which w saturates: zero if zero is stable, infinite if it is unstable without a null
            term.
        backward: Absolute value at which b saturates.
    """

    growth_rate: Float[np.ndarray, ""]
    unstable: bool
    weight: Float[np.ndarray, ""]
    backward: Float[np.ndarray, ""]

    __repr__ = short_repr


@credit_theory(
    network="one weight and its feedback weight", start="any", gives="stability of the weight mirror", infinite=True
)
def weight_mirror_stability(
    gain: PositiveFloat, *, decay: PositiveFloat, weight_decay: PositiveFloat, null: NonNegativeFloat = 0.0
) -> MirrorStability:
    """Stability of the weight mirror if a persistent error moves the forward weight along its feedback weight.

        dw/dt = b − μ w,   db/dt = k w − β b − γ b w²

    Zero is unstable if and only if k > βμ. Without the null term γ, an unstable pair grows without bound; with it, the
    pair saturates at w² = (k − βμ)/(γμ), b = μ w. This explains why information alignment, which adds the null
    primitive to the weight mirror, trains over a wider range of settings.

    Args:
        gain: k = α ⟨x²⟩, amplification times mean squared input.
        decay: β, decay of the feedback weight.
        weight_decay: μ, decay of the forward weight.
        null: γ ≥ 0, coefficient of the null primitive times the mean squared input.

    Raises:
        InputError: If a setting is out of range.

    References:
        A reduction of the mechanism described by Kunin et al., arXiv:2003.01513.

    Example:
        >>> found = weight_mirror_stability(2.0, decay=0.5, weight_decay=1.0, null=1.5)
        >>> found.unstable, float(found.weight), float(found.backward)
        (True, 1.0, 1.0)
    """
    with np.errstate(all="ignore"):
        half, difference = (decay + weight_decay) / 2, np.float64(decay - weight_decay)
        excess = gain - np.float64(decay) * weight_decay
        # (root − half) without cancellation near the threshold
        growth = excess / (np.hypot(difference / 2, np.sqrt(gain)) + half)
        weight = np.sqrt(np.maximum(excess, 0.0) / (np.float64(null) * weight_decay)) if excess > 0 else np.float64(0)
    return MirrorStability(np.asarray(growth), bool(excess > 0), np.asarray(weight), np.asarray(weight_decay * weight))
