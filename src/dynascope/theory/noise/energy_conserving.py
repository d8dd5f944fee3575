"""Distribution of the loss values that energy-conserving descent (ECD) visits on a quadratic loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.stats
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation import require
from dynascope.validation.bounded import FiniteFloat, NonNegativeNumbers, PositiveFloat, PositiveInt

__all__ = ["SampledLoss", "ecd_quadratic_loss"]


class SampledLoss(NamedTuple):
    """Distribution of the sampled loss F ≥ 0.

    Attributes:
        mean: E F; infinite if the density decays too slowly.
        median: Median of F.
        cumulative: P(F ≤ x) for each given x, with the shape of `values`.
    """

    mean: float
    median: float
    cumulative: Float[np.ndarray, "*shape"]

    __repr__ = short_repr


@covers(
    network="any",
    data="quadratic loss with minimum zero",
    start="any",
    gives="the distribution of the loss under energy-conserving descent",
    reference="arXiv:2306.00352",
    infinite=True,
)
def ecd_quadratic_loss(
    dimension: PositiveInt, *, eta: PositiveFloat, target_loss: FiniteFloat, values: NonNegativeNumbers = 0.0
) -> SampledLoss:
    """Distribution of the loss values that energy-conserving descent (q = 1) visits on a quadratic loss F = ½ θᵀHθ.

    If the motion is ergodic, parameters sampled at equal arc lengths have a density ∝ (F − F₀)^{−ηd/2}. For a positive
    definite H of any shape, F/(−F₀) then has the beta prime distribution with the parameters d/2 and d(η − 1)/2:

        p(F) ∝ F^{d/2 − 1} (F − F₀)^{−ηd/2},   E F = −F₀ d/(d(η − 1) − 2)

    Args:
        dimension: d, the number of parameters, at least two.
        eta: η > 1; otherwise, the density cannot be normalised.
        target_loss: F₀ < 0, below the minimum of the loss.
        values: x ≥ 0 at which to evaluate P(F ≤ x), any shape.

    Raises:
        InputError: If a number is out of range.

    References:
        G. B. De Luca, A. Gatti, E. Silverstein, Improving Energy Conserving Descent for Machine Learning: Theory and
        Practice, arXiv:2306.00352.

    Example:
        >>> law = ecd_quadratic_loss(2, eta=6.0, target_loss=-0.5)
        >>> round(law.median, 9), law.mean
        (0.074349177, 0.125)
    """
    require(
        dimension > 1,
        f"dimension is {dimension}",
        argument="dimension",
        value=dimension,
        remedy="choose at least two, because the direction of a single parameter is fixed",
    )
    require(
        eta > 1,
        f"eta is {eta}",
        argument="eta",
        value=eta,
        remedy="choose a number above one; otherwise, no stationary distribution exists",
    )
    require(
        target_loss < 0,
        f"target_loss is {target_loss}",
        argument="target_loss",
        value=target_loss,
        remedy="choose a negative number, below the minimum of the loss",
    )
    power = dimension * (eta - 1) / 2
    law = scipy.stats.betaprime(dimension / 2, power, scale=-target_loss)
    mean = -target_loss * dimension / (2 * power - 2) if power > 1 else np.inf
    return SampledLoss(float(mean), float(law.median()), np.asarray(law.cdf(np.asarray(values))))
