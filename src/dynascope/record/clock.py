"""The unit of time in which small networks learn at a pace that does not depend on the initialisation scale."""

from __future__ import annotations

import math

from dynascope.arguments import require, require_positive

__all__ = ["time_unit"]


def time_unit(scale: float, *, degree: int = 2, normalised: bool = False) -> float:
    """T(α): a network that starts at scale α has its jumps at t = τ·T(α) + O(1), with accelerated times τ.

    The norm of a neuron of degree κ grows as ‖θ‖' ∝ ‖θ‖^(κ−1). So it needs the time log(1/α) to reach order one if
    κ = 2, and a time proportional to α^(2−κ) if κ > 2. In the homogeneity-normalised flow, in which each neuron has
    the rate ‖θ‖^(2−κ), every degree grows exponentially.

    Args:
        scale: α, the factor on the initial weights.
        degree: κ ≥ 2, the degree of homogeneity of a neuron in its own weights.
        normalised: Whether the flow is the homogeneity-normalised one.

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
    require_positive(scale=scale)
    require(scale < 1, f"scale is {scale}", argument="scale", value=scale, remedy="choose a number below one")
    require(degree >= 2, f"degree is {degree}", argument="degree", value=degree, remedy="choose at least two")
    if degree == 2 or normalised:
        return -math.log(scale)
    exponent = (2 - degree) * math.log10(scale)
    require(
        exponent < 300,
        f"scale^(2 − degree) is 1e{exponent:.0f}",
        argument="scale",
        value=scale,
        remedy="choose a larger scale, or the homogeneity-normalised flow",
    )
    return scale ** (2 - degree)
