"""The numbers of a multilinear model with skills of frequency P(k) = A k^−(α+1), as the scaling laws use them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.special import zeta

from dynascope.theory.scaling_laws.integral import skill_integral
from dynascope.validation import require, require_known

__all__ = ["SkillModel", "exact_integral", "skill_model"]


class SkillModel(NamedTuple):
    """The numbers of a model.

    Attributes:
        alpha: α.
        beta: β = α/(α + 1).
        normalisation: A = 1/(ζ(α+1) − ζ(α+1, n_s+1)).
        weight: S² A/2.
        contrast: c = S/R₀ − 1.
        rate: 2 η S A, at which the most frequent skill grows.
    """

    alpha: float
    beta: float
    normalisation: float
    weight: float
    contrast: float
    rate: float


def require_below_target(initial_strength: float, target_scale: float) -> None:
    """Raise `InputError` unless skills start below their target."""
    require(
        initial_strength < target_scale,
        f"initial_strength is {initial_strength:g}, and target_scale {target_scale:g}",
        argument="initial_strength",
        value=initial_strength,
        remedy="choose it below target_scale",
    )


def skill_model(
    exponent: float,
    *,
    target_scale: float,
    initial_strength: float,
    learning_rate: float = 1.0,
    skills: float | None = None,
) -> SkillModel:
    """Derive the numbers of a model from checked ones."""
    require_known(
        exponent=exponent,
        target_scale=target_scale,
        initial_strength=initial_strength,
        learning_rate=learning_rate,
        skills=skills,
    )
    require_below_target(initial_strength, target_scale)
    total = zeta(exponent + 1)
    if skills is not None:
        total = total - zeta(exponent + 1, skills + 1)
    return SkillModel(
        alpha=exponent,
        beta=exponent / (exponent + 1),
        normalisation=float(1 / total),
        weight=float(np.square(float(target_scale)) / total / 2),
        contrast=(target_scale - initial_strength) / initial_strength,
        rate=float(2 * learning_rate * target_scale / total),
    )


def exact_integral(exponent: float, contrast: float, lower: ArrayLike) -> Float[np.ndarray, ...]:
    """`skill_integral` in NumPy."""
    return np.asarray(skill_integral(exponent, contrast, np.asarray(lower, np.float64)))
