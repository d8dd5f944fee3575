"""A leaky ReLU neuron within one activation pattern: a linear neuron on masked inputs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import ONE_OUTPUT
from dynascope.theory.domain import covers
from dynascope.theory.units import in_units
from dynascope.validation import require, require_shape
from dynascope.validation.bounded import Fraction

__all__ = ["FixedPattern", "fixed_pattern", "preactivations_of"]


class FixedPattern(NamedTuple):
    """The linear problem that a leaky ReLU neuron solves while its activation pattern is fixed.

    Attributes:
        slopes: c = σ'(X w), 1 where the neuron is active and γ elsewhere, shape (..., n).
        inputs: The masked inputs diag(c) X, shape (..., n, d).
        second_moment: Xᵀ diag(c²) X/n, shape (..., d, d).
        correlation: Xᵀ diag(c) y/n, shape (..., d).
    """

    slopes: Float[np.ndarray, "... n"]
    inputs: Float[np.ndarray, "... n d"]
    second_moment: Float[np.ndarray, "... d d"]
    correlation: Float[np.ndarray, "... d"]

    __repr__ = short_repr


@covers(
    network="single leaky ReLU neuron f(x) = a σ(wᵀx), layer-wise rates",
    data="any inputs, any targets",
    start="no sample on the boundary w·x = 0",
    gives="the equivalent linear neuron until the activation pattern changes",
    reference="arXiv:2406.06158",
    assumes=(ONE_OUTPUT,),
)
@in_units(
    "inputs",
    "targets",
    "weights",
    inputs="x",
    targets="y",
    weights="w",
    gives={"inputs": "x", "second_moment": "x^2", "correlation": "x y"},
)
def fixed_pattern(
    inputs: IsFinite[Float[np.ndarray, "n d"]],
    targets: IsFinite[Float[np.ndarray, " n"]],
    weights: IsFinite[Float[np.ndarray, "... d"]],
    *,
    negative_slope: Fraction = 0.0,
) -> FixedPattern:
    """Compute the linear problem of the neuron f(x) = a σ(w·x), σ(z) = max(z, γ z), in its activation pattern.

    f = diag(c) X β, dβ/dt = −M(β) Xᵀ diag(c) (f − y)/n, β = a w, c = σ'(X w)

    M is `preconditioner`, and δ = η_w a² − η_a ‖w‖² is conserved even when the pattern changes. As long as c is fixed,
    the neuron is a linear neuron on the inputs diag(c) X: pass these inputs to `function_space_flow`. If the second
    moment is σ_c² I, `neuron_trajectory` gives the closed form for the target correlation/σ_c² at the times σ_c² t.

    Args:
        inputs: X, shape (n, d).
        targets: y, shape (n,).
        weights: w, shape (..., d).
        negative_slope: γ, from 0 (ReLU) to 1 (linear).

    Returns:
        The slopes, the masked inputs and their moments.

    Raises:
        InputError: If a value is not finite, shapes do not match, γ is outside [0, 1], or a sample is on the boundary
            w·x = 0, where the neuron has no slope.

    References:
        Kunin, Raventós, Dominé, Chen, Klindt, Saxe, Ganguli, arXiv:2406.06158, section 4, for the patterns of ReLU
        networks; the statement for one neuron is derived here.

    Example:
        >>> pattern = fixed_pattern([[1.0, 0.0], [-1.0, 2.0]], [1.0, 3.0], [1.0, 0.2], negative_slope=0.5)
        >>> pattern.slopes.tolist(), pattern.correlation.tolist()
        ([1.0, 0.5], [-0.25, 1.5])
    """
    z = preactivations_of(inputs, targets, weights, "weights")
    slopes = np.where(z > 0, 1.0, negative_slope)
    masked = slopes[..., None] * inputs
    moment = np.swapaxes(masked, -1, -2) @ masked / len(inputs)
    return FixedPattern(slopes, masked, moment, (slopes * targets) @ inputs / len(inputs))


def preactivations_of(inputs: np.ndarray, targets: np.ndarray, weights: np.ndarray, name: str) -> np.ndarray:
    """Return the pre-activations X w, shape (..., n), after checking shapes and that none is zero.

    Args:
        inputs: X, shape (n, d).
        targets: y, shape (n,).
        weights: w, shape (..., d).
        name: Name of the argument `weights`, for error messages.
    """
    require_shape("inputs", inputs, (None, None))
    require_shape("targets", targets, (len(inputs),))
    require_shape(name, weights, (..., inputs.shape[1]))
    z = weights @ inputs.T
    require(
        bool((z != 0).all()) and z.size > 0,
        f"{name} has a sample on its boundary w·x = 0, where the slope of the activation is undefined",
        argument=name,
        value=0.0,
        remedy="choose weights that are orthogonal to no input",
    )
    return z
