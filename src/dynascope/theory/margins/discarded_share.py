"""How the share of a parameter that the margin does not need vanishes, where that is known in closed form."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynascope.theory.domain import covers
from dynascope.validation import require
from dynascope.validation.bounded import FiniteFloat, PositiveNumbers

__all__ = ["discarded_share"]

_STEPS = 100  # of Newton, which comes from one side and stops changing after a few


@covers(
    network="f = a x₁ + u v x₂",
    data="one sample with both inputs one",
    start="u = v",
    gives="the share of the margin of a weight that it does not need",
    reference="arXiv:2210.03820",
)
def discarded_share(
    margin: PositiveNumbers, *, weight: FiniteFloat = 0.0, factor: FiniteFloat = 0.5
) -> Float[np.ndarray, "*shape"]:
    """a/q = (a₀ + S)/q at the margin q = a₀ + S + u₀² exp(2S), with S the normalised time.

    Of f = a x₁ + u v x₂ and one sample with x = (1, 1), y = 1, gradient flow on −log L has a' = 1, u' = v, v' = u. The
    weight a has the largest rate, and is not needed to separate the sample; it grows in proportion to S, the product
    exponentially, so that the share of a falls as log(q)/(2q): the block is discarded, but slowly.

    Args:
        margin: q, of any shape, at least a₀ + u₀².
        weight: a₀.
        factor: u₀ = v₀, not zero.

    Returns:
        a/q, of the shape of the margin.

    Raises:
        InputError: A number that is not finite, a factor of zero, or a margin of zero or below that of the start.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820; solved here.

    Example:
        >>> print(discarded_share(4 + np.exp(8) / 4).round(9))  # at S = 4
        0.005338747
    """
    q = np.asarray(margin)
    require(factor, "factor is zero", argument="factor", value=factor, remedy="choose another number")
    product = float(factor) ** 2
    lowest = float(q.min(initial=np.inf))
    require(
        lowest >= weight + product,
        f"a margin is {lowest:.6g}, and the start has {weight + product:.6g}",
        argument="margin",
        value=lowest,
        remedy="give margins from the start on",
    )
    grown = q - weight
    # S + u₀² exp(2S) is convex, and here it is too large.
    time = np.log(grown / product) / 2
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            rise = product * np.exp(2 * time)
            time = time - (time + rise - grown) / (1 + 2 * rise)
    return np.asarray((weight + np.maximum(time, 0.0)) / q)
