"""What rounding alone can move a charge away from its law by: at most, and as a rule."""

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
DEVIATIONS = 3  # times the root of the sum of squares, of which a charge of one weight alone has a deviation of 0.6
SUMMED = 32  # roundings of a sum of squares that is added by pairs or in blocks, of at most 2³² terms


class RoundingLevel(NamedTuple):
    """Two levels of |recorded − predicted| charge, before the first step and after each, shape (steps + 1, ...).

    Attributes:
        bound: What rounding cannot exceed: a residual above it proves that something breaks the law.
        warning: What rounding hardly exceeds where its errors are independent of each other; those of dead units and of
            steps below half a unit in the last place are not, and may exceed it.
    """

    bound: Float[np.ndarray, "steps ..."]
    warning: Float[np.ndarray, "steps ..."]

    __repr__ = short_repr


@covers(
    network="any with a linear or a translation symmetry",
    data="any, in any batches",
    start="any",
    gives="by how much rounding alone moves a charge away from its law",
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
    """What rounding does: at most Σ_k [2 w u R_k + 2 m u √R_k (√S_k + β √S_{k−1})/(1 − β)], and what it does as a rule.

    R = θᵀ|G|θ is the size of a charge θᵀGθ and S = dᵀ|G|d that of a step; u is half the distance from one to the next
    number. The first term is the rounding of the weights where they are stored, which moves each by at most u of
    itself: machine epsilon times steps times size. The second is that of gradients and buffers, each entry of which is
    off by at most m u of its sum without cancellation, which momentum repeats 1/(1 − β) times. Sums of weights, of
    degree one, have w u R_k + m u (S_k + β S_{k−1})/(1 − β). As a rule errors add up by squares, those of gradients
    with √m for m, and thrice that is taken. To both, 32 roundings of the recorded numbers are added.

    The first term is reached where every step is lost for being below half a unit in the last place. The second takes
    |d| for what gradients would be without cancellation between samples, for which m leaves room; give a larger one
    where gradients are nothing but what cancellation leaves, as at the end of training to a loss of zero.

    Args:
        sizes: R ≥ 0 before the first step and after each, shape (steps + 1, ...); of degree one, Σ|θ|.
        displacements: S ≥ 0 of every step, shape (steps, ...); of degree one, Σ|d|.
        momentum: β ≥ 0, below one.
        dtype: Of the weights: "float64", "float32", "float16" or "bfloat16".
        recorded: Of the recorded charges and steps, one of the same.
        degree: Either 1 of sums of weights or 2 of squares.
        weight_roundings: w ≥ 1, how often a step rounds a weight: 1, or 3 with decoupled decay, which rounds the factor
            1 − ηλ and the product too.
        gradient_roundings: m ≥ 1, how many terms the longest sum of the backward pass has, such as samples × positions.

    Raises:
        InputError: A number out of range, or shapes that do not fit.

    References:
        Higham, Accuracy and Stability of Numerical Algorithms (2002), sections 2 and 3, on the laws of
        Kunin et al., arXiv:2012.04728.

    Example:
        >>> level = rounding_level(np.ones(2001), np.zeros(2000), dtype="float32")
        >>> print(f"{level.bound[-1]:.1e} {level.warning[-1]:.1e}")
        2.4e-04 1.6e-05
    """
    steps = recorded_series("displacements", displacements)
    size = recorded_series("sizes", sizes)
    require(
        size.shape == (len(steps) + 1, *steps.shape[1:]),
        f"sizes has shape {size.shape} beside {steps.shape} of the steps",
        argument="sizes",
        value=size.shape,
        remedy="give one more than steps: before the first, and after each",
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
        # The law itself is evaluated with what was recorded, in 64 bits.
        summed = np.concatenate([zero, np.cumsum(steps if degree == 2 else 0 * steps, axis=0)])
        evaluated = SUMMED * read * (size[:1] + size + (1 + momentum) / (1 - momentum) * summed)
        evaluated = evaluated + 4 * _ROUNDOFF["float64"] * np.concatenate([zero, np.cumsum(size[1:], axis=0)])
        bound = np.concatenate([zero, np.cumsum(stored + gradient_roundings * computed, axis=0)])
        rule = np.minimum(np.concatenate([zero, np.sqrt(squares)]), bound)
        return RoundingLevel(bound + evaluated, rule + evaluated)
