"""Lazy, or from saddle to saddle: how a deep linear network scales with its width at the start."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from annotated_types import Ge

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation import require_known
from dynascope.validation.bounded import FiniteArray

__all__ = ["InitialisationExponents", "initialisation_exponents"]


class InitialisationExponents(NamedTuple):
    """How a deep linear network of width w scales at the start, by powers of w in NumPy arrays of the shape of γ.

    Attributes:
        output_variance: Of the variance of an output, L − 1 − γL.
        kernel: Of the tangent kernel, (1 − γ)(L − 1).
        parameter_motion: Of the distance that the weights have to move to a minimum, −(1 − γ)(L − 1)/2 (heuristic).
        saddle_distance: Of their distance to the saddle at the origin, (1 − γ)/2 (heuristic).
        regime: "exploding" (γ < 1 − 1/L: the output diverges), "lazy" (γ < 1), "critical" (γ = 1: features are learned
            at order one) or "saddle-to-saddle" (γ > 1, conjectured to visit the ranks 0, 1, 2, …).
    """

    output_variance: np.ndarray
    kernel: np.ndarray
    parameter_motion: np.ndarray
    saddle_distance: np.ndarray
    regime: np.ndarray

    __repr__ = short_repr


@covers(
    network="deep linear, any depth, wide hidden layers",
    data="any",
    start="Gaussian, variance width^−γ",
    gives="whether training will be lazy or go from saddle to saddle",
    reference="arXiv:2106.15933",
    exact=False,
)
def initialisation_exponents(depth: Annotated[int, Ge(2)], gamma: FiniteArray) -> InitialisationExponents:
    """How outputs and tangent kernel of a deep linear network scale with its width w, for weights of variance w^−γ.

    With weights of variance v the output variance is ‖x‖² v (v w)^(L−1) and the tangent kernel L ‖x‖² (v w)^(L−1) in
    expectation, for fixed numbers of inputs and outputs. The output stays finite for γ ≥ 1 − 1/L. Up to γ = 1 the
    kernel diverges, and the weights find a minimum nearby; beyond it vanishes, and they start near the origin's saddle.

    Args:
        depth: L ≥ 2.
        gamma: γ, of any shape.

    Raises:
        InputError: γ that is not finite, or a depth that is no whole number from two.

    References:
        Jacot, Ged, Şimşek, Hongler & Gabriel, arXiv:2106.15933.

    Example:
        >>> exponents = initialisation_exponents(4, [0.5, 0.75, 1.0, 1.5])
        >>> exponents.regime.tolist(), exponents.kernel.tolist()
        (['exploding', 'lazy', 'critical', 'saddle-to-saddle'], [1.5, 0.75, 0.0, -1.5])
    """
    require_known(depth=depth, gamma=gamma)
    power = np.asarray(gamma, np.float64)
    # 1 − 1/L is rarely a floating-point number: a γ that was meant to be it may lie just below.
    exploding = power < (1 - 1 / depth) * (1 - 4 * np.finfo(float).eps)
    return InitialisationExponents(
        output_variance=depth - 1 - power * depth,
        kernel=(1 - power) * (depth - 1),
        parameter_motion=-(1 - power) * (depth - 1) / 2,
        saddle_distance=(1 - power) / 2,
        regime=np.select(
            [exploding, power < 1, power == 1], ["exploding", "lazy", "critical"], default="saddle-to-saddle"
        ),
    )
