"""Strength of a skill learned from d of its samples by a learner that needs D_c samples."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import numpy as np
from annotated_types import Ge
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.theory.domain import covers
from dynascope.validation.bounded import NonNegativeNumbers

__all__ = ["Definition", "Needed", "finite_size_fraction", "from_fraction", "skill_strength", "to_fraction"]

Definition = Literal["correlation", "loss_equivalent"]
Needed: TypeAlias = Annotated[float, Ge(1)]

_TERMS = 200  # terms of the continued fraction; the error, exp(−4 √(terms d/2)), is below 1e-17 for a single sample


@covers(
    network="two-layer with D_c generic features for each skill",
    data="d samples of a skill",
    start="small",
    gives="strength of the skill after training",
    reference="Nam, DPhil thesis (2024), 5.5, corrected",
)
def skill_strength(
    counts: NonNegativeNumbers,
    needed: Needed,
    *,
    definition: Definition = "correlation",
    finite_size: bool = False,
) -> Float[np.ndarray, ...]:
    """Strength of a skill after a D_c-shot learner has been trained on d samples of the skill.

    The learner represents the skill as g = Σ_l e_l/√D_c, a sum of D_c orthonormal features e_l. From a small
    initialisation, the learner converges to the minimum-norm interpolant, which learns the fraction φ = min(d/D_c, 1)
    of g and has the loss ½ S² (1 − φ):

        R/S = φ                     for "correlation", the measured strength R = E[g f];
        R/S = 1 − √(1 − φ)          for "loss_equivalent", the strength at which ½ (S − R)² equals the loss.

    The two strengths differ because the learned function is not proportional to g.

    Args:
        counts: Number of samples d ≥ 0, of any shape.
        needed: Number of samples D_c ≥ 1 that the learner needs.
        definition: "correlation" or "loss_equivalent".
        finite_size: Whether to use the exact mean for Gaussian features, `finite_size_fraction`, instead of φ = d/D_c.

    Returns:
        R/S, with the shape of `counts`.

    Raises:
        InputError: If a number is out of range.

    References:
        Nam, DPhil thesis (2024), sections 5.2.2 and B.1.6; equation 5.5 of the thesis presents the loss-equivalent
        strength as the correlation. Nam et al., arXiv:2404.17563. The features must be generic with respect to
        rotations: with disjoint supports, φ would be 1 − (1 − 1/D_c)^d.

    Example:
        >>> print(skill_strength([400, 900], 800), skill_strength(400, 800, definition="loss_equivalent").round(4))
        [0.5 1. ] 0.2929
    """
    counts = np.asarray(counts)
    fraction = finite_size_fraction(counts, needed) if finite_size else np.asarray(np.minimum(counts / needed, 1.0))
    return from_fraction(fraction, definition)


@covers(
    network="two-layer with D_c Gaussian features for each skill",
    data="d samples of a skill",
    start="small",
    gives="mean correlation strength of the skill after training, exact for any D_c",
    reference="Nam, DPhil thesis (2024), 5.2.2, extended",
)
def finite_size_fraction(counts: NonNegativeNumbers, needed: Needed) -> Float[np.ndarray, ...]:
    """Mean fraction of a skill that is learned from d samples, if the features orthogonal to the skill are Gaussian.

    The minimum-norm interpolant learns the fraction d/(d + χ²) of the skill, where χ² has D_c − d degrees of freedom.
    With z = d/2, ν = (D_c − d)/2 and the exponential integral E_ν, the mean of this fraction is

        φ = z e^z E_ν(z) = z/(z + ν − 1ν/(z + ν + 2 − 2(ν + 1)/(z + ν + 4 − …))).

    The mean loss is ½ S² (1 − φ). φ tends to d/D_c for many features, and φ = 1 for d ≥ D_c. `skill_strength` can use
    either form.

    Args:
        counts: Number of samples d ≥ 0, of any shape.
        needed: Number of samples D_c ≥ 1 that the learner needs.

    Returns:
        φ, with the shape of `counts`.

    Raises:
        InputError: If a number is out of range.

    Example:
        >>> print(finite_size_fraction([0, 1, 2, 4], 4).round(6))
        [0. 0.34432 0.596347 1. ]
    """
    counts = np.asarray(counts)
    some = np.clip(counts, 0.5, needed)
    z, order = some / 2, (needed - some) / 2
    tail = np.zeros_like(z)
    for term in range(_TERMS, 0, -1):
        tail = term * (order + term - 1) / (z + order + 2 * term - tail)
    fraction = np.minimum(z / (z + order - tail), 1.0)
    return np.where(counts == 0, 0.0, np.where(counts >= needed, 1.0, fraction))


def from_fraction(fraction: ArrayLike, definition: Definition) -> Float[np.ndarray, ...]:
    """Convert the learned fraction φ, with loss ½ S² (1 − φ), to the strength R/S."""
    # 1 − √(1 − φ) without cancellation at small φ.
    fraction = np.asarray(fraction)
    return fraction if definition == "correlation" else np.asarray(fraction / (1 + np.sqrt(1 - fraction)))


def to_fraction(strength: ArrayLike, definition: Definition) -> Float[np.ndarray, ...]:
    """Convert the strength R/S to the learned fraction φ; the inverse of `from_fraction`."""
    strength = np.asarray(strength)
    return strength if definition == "correlation" else np.asarray(strength * (2 - strength))
