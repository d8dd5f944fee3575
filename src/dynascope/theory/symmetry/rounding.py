"""Rounding errors of charges: a strict bound and a typical level for the deviation from a conservation law."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.sgd import Momentum
from dynascope.theory.symmetry.step_series import recorded_series
from dynascope.validation import require
from dynascope.validation.bounded import NonNegativeNumbers, PositiveInt

__all__ = ["DEVIATIONS", "SUMMED", "RoundingLevel", "rounding_level"]

_Precision = Literal["float64", "float32", "float16", "bfloat16"]
_ROUNDOFF: dict[_Precision, float] = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}
DEVIATIONS = 3  # times the root of the sum of squares; for a charge of one weight, the root is 1.7 standard deviations
SUMMED = 32  # rounding errors of a pairwise or blocked sum of at most 2³² squares


class RoundingLevel(NamedTuple):
    """Bound and warning level for |recorded − predicted| charge, initially and after each step, shape (steps + 1, ...).

    Attributes:
        bound: Upper bound on the effect of rounding; a larger residual proves that the law is broken.
        warning: Level that independent rounding errors rarely exceed. The rounding errors of dead units, and of steps
            below half a unit in the last place, are not independent and may exceed this level.
    """

    bound: Float[np.ndarray, "steps ..."]
    warning: Float[np.ndarray, "steps ..."]

    __repr__ = short_repr


@covers(
    network="any with a linear or a translation symmetry",
    data="any, in any batches",
    start="any",
    gives="the deviation of a charge from its law that rounding alone can cause",
    reference="arXiv:2012.04728",
)
def rounding_level(
    sizes: NonNegativeNumbers,
    displacements: NonNegativeNumbers,
    *,
    momentum: Momentum = 0.0,
    dtype: _Precision = "float32",
    recorded: _Precision = "float64",
    degree: Literal[1, 2] = 2,
    weight_roundings: PositiveInt = 1,
    gradient_roundings: PositiveInt = 128,
) -> RoundingLevel:
    """Largest and typical deviation of a charge from its law due to rounding.

        bound = Σ_k [2 w u R_k + 2 m u √R_k (√S_k + β √S_{k−1})/(1 − β)]

    R = θᵀ|G|θ is the size of a charge θᵀGθ, and S = dᵀ|G|d the size of a step. u is half the relative distance between
    neighbouring floating-point numbers. The first term bounds the rounding of the stored weights, each with a relative
    error of at most u. The second term bounds the rounding of gradients and buffers. The error of an entry is at most m
    u times the sum of the absolute values of its terms, and momentum accumulates 1/(1 − β) such errors. For sums of
    weights (degree one) the bound is Σ_k [w u R_k + m u (S_k + β S_{k−1})/(1 − β)]. The typical level adds errors in
    quadrature, with √m instead of m for gradients, and multiplies the root by three. Both levels also include 32
    rounding errors of the recorded numbers.

    The first term is attained if every step is below half a unit in the last place and is therefore lost. The second
    term uses |d| as the size of the gradients, although samples may partly cancel; m leaves room for such cancellation.
    Use a larger m if gradients result from strong cancellation, as at the end of training to zero loss.

    Args:
        sizes: R ≥ 0 before the first step and after each step, shape (steps + 1, ...); Σ|θ| for degree one.
        displacements: S ≥ 0 at every step, shape (steps, ...); Σ|d| for degree one.
        momentum: β ≥ 0, below one.
        dtype: Precision of the weights: "float64", "float32", "float16" or "bfloat16".
        recorded: Precision of the recorded charges and steps, with the same choices as `dtype`.
        degree: 1 for sums of weights or 2 for quadratic charges.
        weight_roundings: w ≥ 1, the number of times that each step rounds a weight: 1, or 3 with decoupled decay, which
            also rounds the factor 1 − ηλ and the product.
        gradient_roundings: m ≥ 1, the number of terms in the longest sum of the backward pass, such as samples ×
            positions.

    Raises:
        InputError: If a number is out of range, or the shapes do not match.

    References:
        Higham, Accuracy and Stability of Numerical Algorithms (2002), sections 2 and 3, applied to
        the laws of Kunin et al., arXiv:2012.04728.

    Example:
        >>> level = rounding_level(np.ones(2001), np.zeros(2000), dtype="float32")
        >>> print(f"{level.bound[-1]:.1e} {level.warning[-1]:.1e}")
        2.4e-04 1.6e-05
    """
    steps = recorded_series("displacements", displacements)
    size = recorded_series("sizes", sizes)
    require(
        size.shape == (len(steps) + 1, *steps.shape[1:]),
        f"sizes has shape {size.shape}, but displacements has shape {steps.shape}",
        argument="sizes",
        value=size.shape,
        remedy="give sizes before the first step and after each step",
    )
    unit, read = _ROUNDOFF[dtype], _ROUNDOFF[recorded]
    with np.errstate(all="ignore"):
        stored = degree * weight_roundings * unit * size[1:]
        moved = steps if degree == 1 else np.sqrt(steps)
        before = np.concatenate([0 * moved[:1], moved[:-1]])
        pushed = unit * (moved + momentum * before) / (1 - momentum)
        computed = pushed if degree == 1 else 2 * np.sqrt(size[:-1]) * pushed
        squares = np.cumsum(DEVIATIONS**2 * (stored**2 + gradient_roundings * computed**2), axis=0)
        zero = 0 * size[:1]
        # The law is evaluated in float64 from recorded numbers.
        summed = np.concatenate([zero, np.cumsum(steps if degree == 2 else 0 * steps, axis=0)])
        evaluated = SUMMED * read * (size[:1] + size + (1 + momentum) / (1 - momentum) * summed)
        evaluated = evaluated + 4 * _ROUNDOFF["float64"] * np.concatenate([zero, np.cumsum(size[1:], axis=0)])
        bound = np.concatenate([zero, np.cumsum(stored + gradient_roundings * computed, axis=0)])
        rule = np.minimum(np.concatenate([zero, np.sqrt(squares)]), bound)
        return RoundingLevel(bound + evaluated, rule + evaluated)
