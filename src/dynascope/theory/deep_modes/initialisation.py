"""Scaling of deep linear networks with width at initialisation, and the resulting regime of training."""

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
    """Exponents of the width w in properties of a deep linear network with initial weights of variance w^−γ.

    The arrays have the shape of γ.

    Attributes:
        output_variance: Exponent of the variance of each output, L − 1 − γL.
        kernel: Exponent of the tangent kernel, (1 − γ)(L − 1).
        parameter_motion: Exponent of the distance from the initial weights to the nearest minimum, −(1 − γ)(L − 1)/2
            (heuristic).
        saddle_distance: Exponent of the distance from the initial weights to the saddle at the origin, (1 − γ)/2
            (heuristic).
        regime: "exploding" (γ < 1 − 1/L: the output diverges), "lazy" (γ < 1), "critical" (γ = 1: feature learning of
            order one) or "saddle-to-saddle" (γ > 1, conjectured to visit the ranks 0, 1, 2, …).
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
    gives="the regime of training: lazy, critical or saddle-to-saddle",
    reference="arXiv:2106.15933",
    exact=False,
)
def initialisation_exponents(depth: Annotated[int, Ge(2)], gamma: FiniteArray) -> InitialisationExponents:
    """Compute how outputs and kernel of a deep linear network scale with its width w, for weights of variance w^−γ.

    For weights of variance v and fixed numbers of inputs and outputs, the output variance is ‖x‖² v (v w)^(L−1), and
    the expected tangent kernel is L ‖x‖² (v w)^(L−1). The output stays finite for γ ≥ 1 − 1/L. For γ < 1 the kernel
    diverges, and training finds a minimum near the initial weights. For γ > 1 the kernel vanishes, and the initial
    weights are near the saddle at the origin.

    Args:
        depth: Number of layers L ≥ 2.
        gamma: γ, of any shape.

    Raises:
        InputError: If γ is not finite, or the depth is not an integer of at least 2.

    References:
        Jacot, Ged, Şimşek, Hongler & Gabriel, arXiv:2106.15933.

    Example:
        >>> exponents = initialisation_exponents(4, [0.5, 0.75, 1.0, 1.5])
        >>> exponents.regime.tolist(), exponents.kernel.tolist()
        (['exploding', 'lazy', 'critical', 'saddle-to-saddle'], [1.5, 0.75, 0.0, -1.5])
    """
    require_known(depth=depth, gamma=gamma)
    power = np.asarray(gamma, np.float64)
    # The tolerance accepts a γ that differs from 1 − 1/L by rounding.
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
