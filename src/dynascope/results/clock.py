"""Growth of the jump times as the initialisation scale decreases."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

from annotated_types import Ge

from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import OpenFraction, PositiveFloat

__all__ = ["is_exponential", "other_scale", "time_unit"]

_Degree: TypeAlias = Annotated[int, Ge(2)]

_LEAST = 1e-300  # below this scale, a much smaller one is not representable


@checked
def time_unit(scale: OpenFraction, *, degree: _Degree = 2, normalised: bool = False) -> float:
    """Return the unit T(α) of jump times: at scale α, the jumps are at t = τ·T(α) + O(1) with accelerated times τ.

    The norm of a neuron of degree κ grows as ‖θ‖' ∝ ‖θ‖^(κ−1). The norm therefore reaches order one after a time
    log(1/α) if κ = 2, and after a time proportional to α^(2−κ) if κ > 2. In the homogeneity-normalised flow, in which
    each neuron has the learning rate ‖θ‖^(2−κ), neurons of every degree grow exponentially.

    Args:
        scale: α, the factor on the initial weights.
        degree: κ ≥ 2, the degree of homogeneity of a neuron in its own weights.
        normalised: Whether the flow is homogeneity-normalised.

    Returns:
        log(1/α) if κ = 2 or normalised, else α^(2−κ).

    Raises:
        InputError: The scale is not between zero and one, the degree is below two, or α^(2−κ) overflows.

    References:
        Alternating Gradient Flows, arXiv:2506.06489.

    Example:
        >>> round(time_unit(1e-3), 3), time_unit(0.01, degree=3), round(time_unit(0.01, degree=3, normalised=True), 3)
        (6.908, 100.0, 4.605)
    """
    if is_exponential(degree=degree, normalised=normalised):
        return -math.log(scale)
    exponent = (2 - degree) * math.log10(scale)
    require(
        exponent < 300,
        f"scale is {scale:.3g}, so scale^(2 − degree) is about 1e{exponent:.0f}, which is too large",
        argument="scale",
        value=scale,
        remedy="choose a larger scale, or the homogeneity-normalised flow",
    )
    return scale ** (2 - degree)


def is_exponential(*, degree: int = 2, normalised: bool = False) -> bool:
    """Whether a small neuron grows exponentially, ‖θ‖' ∝ ‖θ‖, so times grow as log(1/α) and not as a power of α.

    Args:
        degree: κ, the degree of homogeneity of a neuron in its own weights.
        normalised: Whether the flow is homogeneity-normalised.

    Example:
        >>> is_exponential(), is_exponential(degree=3), is_exponential(degree=3, normalised=True)
        (True, False, True)
    """
    return degree == 2 or normalised


@checked
def other_scale(
    scale: PositiveFloat,
    *,
    degree: _Degree = 2,
    normalised: bool = False,
    factor: PositiveFloat = 1e-4,
    divisor: PositiveFloat = 3.0,
) -> float:
    """Return a second scale for measuring the slope of jump times against `time_unit`.

    Args:
        scale: α, the first initialisation scale.
        degree: κ ≥ 2, the degree of homogeneity of a neuron in its own weights.
        normalised: Whether the flow is homogeneity-normalised.
        factor: Factor on the scale if times grow as log(1/α), which requires a distant second scale.
        divisor: Divisor of the scale if times grow as a power of α, because a much smaller scale would take too long.

    Returns:
        The second scale, which is smaller than α, or larger if α is at most 1e-300.

    Example:
        >>> other_scale(1e-8), other_scale(3e-3, degree=3), other_scale(1e-320) > 1e-320
        (1e-12, 0.001, True)
    """
    if not is_exponential(degree=degree, normalised=normalised):
        return scale / divisor
    return scale * factor if scale > _LEAST else scale / factor
