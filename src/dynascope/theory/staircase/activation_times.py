"""Alternating Gradient Flows of diagonal networks: activation times of neurons at a finite scale."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Float

from dynascope.results.staircase import Staircase
from dynascope.theory.assumptions import EQUAL_WEIGHTS, ONE_OUTPUT, SMALL_START
from dynascope.theory.domain import covers
from dynascope.theory.staircase.deep_diagonal import Depth, deep_activation_phase, deep_diagonal_staircase
from dynascope.theory.staircase.diagonal import diagonal_staircase
from dynascope.theory.staircase.log_cosh import activation_phase
from dynascope.validation.bounded import OpenFraction

__all__ = ["activation_staircase"]

_THEORY = "Alternating Gradient Flows of diagonal networks"


@covers(
    network="diagonal linear of any depth",
    data="any",
    start="small, all weights equal",
    gives="activation times and levels of all jumps",
    reference="arXiv:2506.06489",
    exact=False,
    assumes=(ONE_OUTPUT, SMALL_START, EQUAL_WEIGHTS),
)
def activation_staircase(
    inputs: IsFinite[Float[np.ndarray, "n d"]],
    targets: IsFinite[Float[np.ndarray, " n"]],
    *,
    scale: OpenFraction,
    depth: Depth = 2,
    feature_names: Sequence[str] | None = None,
) -> Staircase:
    """Predict the loss staircase of a diagonal network by Alternating Gradient Flows with the threshold ‖θᵢ‖ = 1.

    The neurons are θᵢ = (uᵢ, vᵢ). For depth 2, β = u ⊙ v from u = scale·1, v = 0; for D > 2, β = u^D − v^D from
    u = v = scale·1. The residual is constant between jumps, so the integrals G of −∂L/∂β of the dormant (still small)
    neurons are piecewise linear. A neuron activates when |Gᵢ| reaches the value at which its norm is one. The active
    neurons then minimise the loss instantaneously. At a finite scale, the times are therefore the accelerated times τ
    (those of the small-scale limit) multiplied by a common factor, which is arccosh(scale⁻²)/2 for depth 2.

    Args:
        inputs: x, shape (n, d).
        targets: y, shape (n,).
        scale: Initial value of the weights, between 0 and 1.
        depth: D ≥ 2.
        feature_names: Names of the d inputs, used in descriptions; "x1", "x2", … if not given.

    Returns:
        The staircase of `diagonal_staircase` or `deep_diagonal_staircase`. Its times are the activation times of
        neurons, not the times at which the loss crosses the middle of each drop.

    Raises:
        InputError: If an input or target is not finite, the shapes or names do not match, no input explains the
            targets, or the scale or depth is out of range.

    Source: arXiv 2506.06489; the path of saddles is that of arXiv 2304.00488.

    Example:
        >>> steps = activation_staircase(np.eye(2), np.array([4.0, -1.0]), scale=1e-4)
        >>> (steps.times / np.log(1e4)).round(6)
        array([0.518814, 2.075257])
    """
    if depth == 2:
        limit = diagonal_staircase(inputs, targets, scale=scale, feature_names=feature_names)
        ratio = activation_phase(scale)
    else:
        limit = deep_diagonal_staircase(inputs, targets, depth=depth, scale=scale, feature_names=feature_names)
        ratio = deep_activation_phase(scale, depth) * depth * (depth - 2)
    return dataclasses.replace(limit, times=limit.accelerated_times * ratio, theory=_THEORY)
