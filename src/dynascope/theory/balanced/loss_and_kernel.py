"""Loss and NTK of a λ-balanced network at any time, from the exact solution."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from annotated_types import IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.theory.balanced.balance import (
    FirstLayer,
    MapTimes,
    SecondLayer,
    TargetMap,
)
from dynascope.theory.balanced.solution import BalancedGram, covers_balanced, layers_and_map, solve_gram
from dynascope.theory.kernels import nan_outside
from dynascope.theory.layer_rates import LayerRates
from dynascope.validation import is_traced, require, require_broadcast, require_shape
from dynascope.validation.bounded import NonNegativeArray, PositiveInt

__all__ = ["loss", "ntk"]

_SHARE = 1e-6  # tolerance of the power of the targets, relative to the power that the map explains


@covers_balanced(gives="the loss at any time")
def loss(
    first: FirstLayer,
    second: SecondLayer,
    target_map: TargetMap,
    times: MapTimes,
    *,
    target_power: NonNegativeArray | None = None,
    rates: LayerRates = LayerRates(),
    approximate: bool = False,
    steps: PositiveInt | None = None,
) -> Float[AnyArray, "*members times"]:
    """Compute the loss of a λ-balanced network over time.

    L = ½‖W₁W₂ − Σ‖² + ½(E‖y‖² − ‖Σ‖²)

    If λ = 0 and det W₁W₂ and det Σ differ in sign, the function warns (see `gram`). The first term is then at least
    ½ s², where s is the smallest singular value of Σ.

    Args:
        first: See `gram`.
        second: See `gram`.
        target_map: See `gram`.
        times: See `gram`.
        target_power: Mean squared norm E‖y‖² ≥ ‖Σ‖² of the targets, a number or one value per member. If None, the
            second term, which is the loss of the best linear map, is omitted.
        rates: See `gram`.
        approximate: See `gram`.
        steps: See `gram`.

    Returns:
        L, shape (..., times).

    Raises:
        InputError: If E‖y‖² is below ‖Σ‖², or as for `gram`. Inside `jit`, values outside this domain give NaN.

    Example:
        >>> print(loss([[0.1]], [[0.1]], [[2.0]], np.array([0.0, 3.0]), target_power=4.5).round(4))
        [2.2301 0.25  ]
    """
    network, target = layers_and_map(first, second, target_map, rates)
    if not is_traced(target) and target_power is not None and not is_traced(target_power):
        explained = np.sum(np.asarray(target) ** 2, axis=(-2, -1))
        require_broadcast(target_map=explained.shape, target_power=np.shape(target_power))
        require(
            np.size(target_power) > 0,
            "target_power is empty",
            argument="target_power",
            remedy="give a number, or one value per member",
        )
        given, least = (np.ravel(each) for each in np.broadcast_arrays(target_power, explained))
        worst = np.argmin(given - least * (1 - _SHARE))
        require(
            bool(np.all(given >= least * (1 - _SHARE))),
            f"target_power is {given[worst]:g}, which is below ‖Σ‖² = {least[worst]:g}",
            argument="target_power",
            value=float(given[worst]),
            remedy="give the mean of ‖y‖² over the samples from which target_map was computed",
        )
    return _losses(solve_gram(network, target, times, approximate, steps).product, target, target_power)


@covers_balanced(gives="the neural tangent kernel at any time")
def ntk(
    first: FirstLayer,
    second: SecondLayer,
    target_map: TargetMap,
    times: MapTimes,
    inputs: IsFinite[Real[ArrayLike, "samples inputs"]],
    *,
    rates: LayerRates = LayerRates(),
    approximate: bool = False,
    steps: PositiveInt | None = None,
) -> Float[AnyArray, "*members times nc nc"]:
    """Compute the neural tangent kernel (NTK) of a λ-balanced network over time.

    K = η₂ I ⊗ X W₁W₁ᵀ Xᵀ + η₁ W₂ᵀW₂ ⊗ X Xᵀ

    Args:
        first: See `gram`.
        second: See `gram`.
        target_map: See `gram`.
        times: See `gram`.
        inputs: X, the points at which the kernel is evaluated, shape (n, d).
        rates: See `gram`.
        approximate: See `gram`.
        steps: See `gram`.

    Returns:
        K between all outputs at all points, shape (..., times, n c, n c). Row and column o·n + i belong to output o at
        point i.

    Raises:
        InputError: As for `gram`, or if the dimension of the inputs does not match the map.

    Example:
        >>> print(ntk([[0.1]], [[0.1]], [[2.0]], np.array([0.0, 9.0]), [[1.0]]).ravel().round(4))
        [0.02 4.  ]
    """
    network, target = layers_and_map(first, second, target_map, rates)
    require_shape("inputs", inputs, (..., None, network.first.shape[-2]))
    return _kernel(solve_gram(network, target, times, approximate, steps), network.rates, inputs)


@float64_jit
def _losses(found: Array, target: Array, power: Array | None) -> Array:
    excess = jnp.sum((found - target[..., None, :, :]) ** 2, axis=(-2, -1)) / 2
    if power is None:
        return excess
    explained = jnp.sum(target**2, axis=(-2, -1))
    rest = nan_outside(power >= explained * (1 - _SHARE), jnp.maximum(power - explained, 0) / 2, leading=True)
    return excess + rest[..., None]


@float64_jit
def _kernel(found: BalancedGram, rates: LayerRates, x: Array) -> Array:
    first_rate, second_rate = (jnp.asarray(rate)[..., None, None, None] for rate in rates)
    inner = second_rate * (x @ found.first @ x.T)
    outer = first_rate * found.second
    points, outputs = len(x), outer.shape[-1]
    kernel = jnp.einsum("ab,...ij->...aibj", jnp.eye(outputs, dtype=x.dtype), inner)
    kernel += jnp.einsum("...ab,ij->...aibj", outer, x @ x.T)
    kernel = kernel.reshape(*kernel.shape[:-4], points * outputs, points * outputs)
    return nan_outside(jnp.all(jnp.isfinite(x)), kernel, leading=True)
