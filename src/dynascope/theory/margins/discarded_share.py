"""Share of the margin contributed by an unnecessary parameter, in a model with a closed-form solution."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynascope.theory.domain import covers
from dynascope.validation import require
from dynascope.validation.bounded import FiniteFloat, PositiveNumbers

__all__ = ["discarded_share"]

_STEPS = 100  # Newton steps; the convergence is monotone and takes only a few


@covers(
    network="f = a x₁ + u v x₂",
    data="one sample with both inputs one",
    start="u = v",
    gives="the share of the margin of a weight that the margin does not need",
    reference="arXiv:2210.03820",
)
def discarded_share(
    margin: PositiveNumbers, *, weight: FiniteFloat = 0.0, factor: FiniteFloat = 0.5
) -> Float[np.ndarray, "*shape"]:
    """Share a/q that an unnecessary weight contributes to the margin.

        a/q = (a₀ + S)/q   at the margin q = a₀ + S + u₀² exp(2S), with the normalised time S

    The network is f = a x₁ + u v x₂ with one sample x = (1, 1), y = 1. Gradient flow on log L obeys a' = 1, u' = v, v'
    = u. The weight a has the largest rate but is not needed to separate the sample. It grows linearly in S, whereas the
    product uv grows exponentially. The share of a therefore falls as log(q)/(2q): the weight is discarded, but slowly.

    Args:
        margin: q ≥ a₀ + u₀², any shape.
        weight: a₀.
        factor: u₀ = v₀, not zero.

    Returns:
        a/q, with the shape of the margin.

    Raises:
        InputError: If a number is not finite, the factor is zero, or a margin is below the initial margin or not
            positive.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820; the solution is derived here.

    Example:
        >>> print(discarded_share(4 + np.exp(8) / 4).round(9))  # at S = 4
        0.005338747
    """
    q = np.asarray(margin)
    require(factor, "factor is zero", argument="factor", value=factor, remedy="choose a non-zero number")
    product = float(factor) ** 2
    lowest = float(q.min(initial=np.inf))
    require(
        lowest >= weight + product,
        f"a margin is {lowest:.6g}, but the initial margin is {weight + product:.6g}",
        argument="margin",
        value=lowest,
        remedy="give margins that are at least the initial margin",
    )
    grown = q - weight
    # S + u₀² exp(2S) is convex, and the first iterate lies above the solution.
    time = np.log(grown / product) / 2
    with np.errstate(all="ignore"):
        for _ in range(_STEPS):
            rise = product * np.exp(2 * time)
            time = time - (time + rise - grown) / (1 + 2 * rise)
    return np.asarray((weight + np.maximum(time, 0.0)) / q)
