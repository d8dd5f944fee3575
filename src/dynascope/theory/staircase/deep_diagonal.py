"""Diagonal linear networks of any depth, which visit the same saddles at depth-dependent times."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np
import scipy
from annotated_types import Ge, Interval, IsFinite
from jaxtyping import Float

from dynascope.results.clock import time_unit
from dynascope.results.staircase import Staircase
from dynascope.theory.assumptions import EQUAL_WEIGHTS, ONE_OUTPUT, SMALL_START
from dynascope.theory.domain import covers
from dynascope.theory.staircase.coefficient_growth import growth_of_powers
from dynascope.theory.staircase.diagonal import names_of_inputs, path_staircase
from dynascope.theory.staircase.log_cosh import activation_phase
from dynascope.theory.staircase.saddle_path import successive_saddles
from dynascope.validation import checked
from dynascope.validation.bounded import OpenFraction

__all__ = ["Depth", "deep_activation_phase", "deep_diagonal_staircase"]

_THEORY = "successive saddles of deep diagonal networks"

Depth: TypeAlias = Annotated[int, Ge(2)]


@covers(
    network="diagonal linear, depth above two",
    data="any",
    start="small, all weights equal",
    gives="times and levels of all jumps",
    reference="arXiv:2506.06489",
    exact=False,
    assumes=(
        ONE_OUTPUT,
        SMALL_START.costing("times are wrong by up to 10 %, less for smaller initial weights"),
        EQUAL_WEIGHTS,
    ),
)
def deep_diagonal_staircase(
    inputs: IsFinite[Float[np.ndarray, "n d"]],
    targets: IsFinite[Float[np.ndarray, " n"]],
    *,
    depth: Depth,
    scale: OpenFraction,
    feature_names: Sequence[str] | None = None,
) -> Staircase:
    """Predict the loss staircase of f(x) = (u^D − v^D)ᵀ x trained by gradient flow from u = v = scale·1.

    Let G be the integral of the multipliers E[x (y − βᵀx)]. For D > 2, u^(2−D) = scale^(2−D) − D(D−2) G and
    v^(2−D) = scale^(2−D) + D(D−2) G. In the limit of small scale, a coordinate is zero while
    |Gᵢ| < scale^(2−D)/(D(D−2)). At this boundary, the coordinate may take any value with the sign of Gᵢ. For every
    depth, the path is the same as in `diagonal_staircase`. Only the unit of time changes, from log(1/scale) to
    scale^(2−D)/(D(D−2)) for D > 2, and to log(1/scale)/2 for D = 2.

    Args:
        inputs: x, shape (n, d).
        targets: y, shape (n,).
        depth: D ≥ 2.
        scale: Initial value of u and v, between 0 and 1.
        feature_names: Names of the d inputs, used in descriptions; "x1", "x2", … if not given.

    Returns:
        The staircase, of degree D. Its accelerated times are the limits of t·scale^(D−2), and of t/log(1/scale) for
        D = 2. Its times at this scale include the first correction to the limit. A coordinate reaches the size |β|
        before |G| reaches the boundary, at a distance of |β|^(2/D−1)/(D(D−2)) from it, and then approaches its final
        value. Only then do the multipliers of the other coordinates change. For uncorrelated inputs, the error is of
        order scale². For correlated inputs, the relative error is of order scale^(D−2), because active coordinates
        relax with a delay. The feature `coefficient` is β after each jump.

    Raises:
        InputError: If an input or target is not finite, the shapes or names do not match, no input explains the
            targets, the scale or depth is out of range, or scale^(2−D) overflows.

    Assumptions: general position (the constrained least-squares problem has one solution).

    Source: derived here from the reparametrised mirror flow of arXiv 2304.00488 and the finite growth time of neurons
    of degree D > 2, arXiv 2506.06489.

    Example:
        >>> steps = deep_diagonal_staircase(np.eye(2), np.array([4.0, -1.0]), depth=3, scale=1e-3)
        >>> steps.accelerated_times * 3, (steps.times * 3e-3).round(4)
        (array([0.5, 2. ]), array([0.4996, 1.9975]))
    """
    names = names_of_inputs(inputs, targets, feature_names)
    growth = growth_of_powers(scale, depth)
    path = successive_saddles(inputs, targets)
    unit = growth.threshold / time_unit(scale, degree=depth)
    limit = path_staircase(inputs, targets, path, growth, names)
    return dataclasses.replace(limit, accelerated_times=path.times * unit, degree=depth, theory=_THEORY)


@checked
def deep_activation_phase(scale: Annotated[float, Interval(gt=0, lt=0.5**0.5)], depth: Depth) -> float:
    """Value of |G| at which a neuron (u, v) of β = u^D − v^D with initial u = v = scale reaches norm one.

    For D > 2 and G > 0, u^(2−D) = scale^(2−D) − D(D−2) G and v^(2−D) = scale^(2−D) + D(D−2) G, so |G| is close to
    (scale^(2−D) − 1)/(D(D−2)). For D = 2, |G| = ¼ arccosh(scale⁻²/2).

    Example:
        >>> round(deep_activation_phase(1e-3, 3), 4), round(deep_activation_phase(1e-8, 2), 4)
        (333.0, 9.2103)
    """
    if depth == 2:
        return activation_phase(np.sqrt(2) * scale) / 2
    start = time_unit(scale, degree=depth)

    def excess(remaining: float) -> float:
        u, v = remaining ** (-1 / (depth - 2)), (2 * start - remaining) ** (-1 / (depth - 2))
        return u * u + v * v - 1

    # At norm one, u² is between ½ and 1.
    remaining = scipy.optimize.root_scalar(excess, bracket=(1.0, min(start, 2 ** ((depth - 2) / 2))), xtol=1e-14).root
    return (start - remaining) / (depth * (depth - 2))
