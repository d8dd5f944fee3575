"""Growth of a coefficient of a diagonal linear network as a function of the integral of its multiplier."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import hyp2f1

from dynascope.results.clock import time_unit

__all__ = ["CoefficientGrowth", "growth_of_powers", "growth_of_products"]

# Fraction of its final value at which a coefficient has lowered the loss by half of the drop.
_SHARE = 1 - math.sqrt(0.5)


@dataclasses.dataclass(frozen=True)
class CoefficientGrowth:
    """Growth of a coefficient β from small initial weights, in terms of the integral G of its multiplier m = −∂L/∂β.

    Attributes:
        threshold: |G| at which a coefficient leaves zero, in the limit of small scale.
        reached: Function of |β| > 0 that returns |G| − threshold when the coefficient has the size |β|.
        half_loss: Function of the final |β| and |m| that returns the time at which the loss has fallen by half of its
            drop, relative to the time at which |G| would reach threshold + `reached`(|β|) at constant m.
        rate: Function of |β| that returns the relaxation rate of the coefficient, divided by the curvature of the loss.
        e_folds: Function of 1 − |G|/threshold that returns log(1/|β|) to leading order.
    """

    threshold: float
    reached: Callable[[Any], Any]
    half_loss: Callable[[Any, Any], Any]
    rate: Callable[[Any], Any]
    e_folds: Callable[[Any], Any]


def growth_of_products(scale: float) -> CoefficientGrowth:
    """Growth of β = u v from u = scale, v = 0, for which β = (scale²/2) sinh 2G.

    Example:
        >>> growth = growth_of_products(1e-8)
        >>> bool(np.isclose(growth.threshold, np.log(1e8))), float(growth.reached(0.25))
        (True, 0.0)
    """
    log_inverse_scale = -math.log(scale)
    return CoefficientGrowth(
        threshold=log_inverse_scale,
        reached=lambda size: np.log(4 * size) / 2,
        # β grows as a logistic function with rate 2|m|.
        half_loss=lambda size, multiplier: math.log(_SHARE / (1 - _SHARE)) / (2 * multiplier),
        rate=lambda size: 2 * size,
        e_folds=lambda inside: 2 * log_inverse_scale * inside,
    )


def growth_of_powers(scale: float, depth: int) -> CoefficientGrowth:
    """Growth of β = u^D − v^D from u = v = scale.

    For D > 2, u^(2−D) = scale^(2−D) − D(D−2) G and v^(2−D) = scale^(2−D) + D(D−2) G. For D = 2, β = 2 scale² sinh 4G.

    Example:
        >>> growth = growth_of_powers(0.01, 3)
        >>> round(growth.threshold, 6), round(growth.reached(1.0), 6)
        (33.333333, -0.333333)
    """
    if depth == 2:
        log_inverse_scale = -math.log(scale)
        return CoefficientGrowth(
            threshold=log_inverse_scale / 2,
            reached=lambda size: np.log(size) / 4,
            half_loss=lambda size, multiplier: math.log(_SHARE / (1 - _SHARE)) / (4 * multiplier),
            rate=lambda size: 4 * size,
            e_folds=lambda inside: 2 * log_inverse_scale * inside,
        )
    pace, power = depth * (depth - 2), (2 - depth) / depth
    # With the final size β* and z = u/β*^(1/D), dt = β*^(2/D−1)/(D m) · dz/(z^(D−1)(1 − z^D)). The integrand is the sum
    # of z^(1−D), the growth at constant m, and z/(1 − z^D), the approach to β*.
    rise = (1 - _SHARE**power) / (depth - 2)
    approach = _SHARE ** (2 / depth) / 2 * hyp2f1(1, 2 / depth, 1 + 2 / depth, _SHARE)
    return CoefficientGrowth(
        threshold=time_unit(scale, degree=depth) / pace,
        reached=lambda size: -(size**power) / pace,
        half_loss=lambda size, multiplier: size**power * (rise + approach) / (depth * multiplier),
        rate=lambda size: depth**2 * size ** (2 - 2 / depth),
        e_folds=lambda inside: -depth * math.log(scale) + np.log(np.maximum(inside, 1e-300)) * depth / (depth - 2),
    )
