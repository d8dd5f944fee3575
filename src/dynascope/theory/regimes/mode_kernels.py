"""Change of the tangent kernel between two stages of learning the modes of a linear map."""

from __future__ import annotations

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Float

from dynascope.theory.assumptions import BALANCED_LAYERS, SMALL_START, WHITE_INPUTS
from dynascope.theory.domain import covers
from dynascope.theory.units import in_units
from dynascope.validation import require, require_shape
from dynascope.validation.bounded import PositiveInt

__all__ = ["stage_kernel_distance"]

_Strengths = IsFinite[Float[np.ndarray, " modes"]]


@covers(
    network="two-layer linear, any widths",
    data="whitened inputs, any targets",
    start="infinitely small, balanced",
    gives="the kernel distance between two stages of learning",
    reference="arXiv:2111.00034",
    assumes=(BALANCED_LAYERS, SMALL_START, WHITE_INPUTS),
)
@in_units("before", "after", before="s", after="r", gives="")
def stage_kernel_distance(before: _Strengths, after: _Strengths, *, inputs: PositiveInt, outputs: PositiveInt) -> float:
    """Compute the tangent-kernel distance between two stages at which the modes of the map have given strengths.

    S = 1 − ⟨s, s'⟩/√(⟨s, s⟩ ⟨s', s'⟩), ⟨s, s'⟩ = (d + c) Σ s_i s'_i + 2 Σ s_i Σ s'_i

    Balanced layers have W₁ᵀ W₁ = Σ s_i v_i v_iᵀ and W₂ W₂ᵀ = Σ s_i u_i u_iᵀ, which determine the kernel. For one
    output, the kernel of an infinitely small network only grows after its alignment, S = 0. For several outputs, it
    turns at every mode that is learned, so its alignment is not silent.

    Args:
        before: Strengths s_i ≥ 0 of the modes at the first stage, not all zero, shape (modes,).
        after: Strengths s'_i ≥ 0 of the same modes at the second stage, not all zero, shape (modes,).
        inputs: d, at least the number of modes.
        outputs: c, at least the number of modes.

    Returns:
        S, between 0 and 1.

    Raises:
        InputError: If a value is not finite or negative, all strengths of a stage are zero, shapes do not match, or
            there are more modes than inputs or outputs.

    References:
        Atanasov, Bordelon, Pehlevan, arXiv:2111.00034, for several outputs; the formula is derived here.

    Example:
        >>> round(stage_kernel_distance([2.0, 0.0], [2.0, 1.0], inputs=3, outputs=2), 10)
        0.0777753317
    """
    require_shape("before", before, (..., None))
    require_shape("before", before, (None,))
    require_shape("after", after, (len(before),))
    for name, count in (("inputs", inputs), ("outputs", outputs)):
        require(
            count >= len(before),
            f"{name} is {count}, but there are {len(before)} modes",
            argument=name,
            value=count,
            remedy="give at most as many modes as inputs and as outputs",
        )
    for name, strengths in (("before", before), ("after", after)):
        require(
            (strengths >= 0).all() and strengths.any(),
            f"{name} has a negative strength, or only zeros",
            argument=name,
            value=float(strengths.min()),
            remedy="give strengths that are not negative, at least one of them positive",
        )
    # The product is that of vectors, so S is half the squared distance of unit vectors, without cancellation.
    vectors = [np.append(np.sqrt(inputs + outputs) * each, np.sqrt(2) * each.sum()) for each in (before, after)]
    first, second = (each / np.linalg.norm(each) for each in vectors)
    return float(np.sum((first - second) ** 2) / 2)
