"""What follows from the exact solution: the loss and the kernel of a λ-balanced network at any time."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.arguments import in_units, is_traced, nan_outside, real_value, require, require_broadcast
from dynascope.compilation import AnyArray, float64_jit
from dynascope.theory.balanced.balance import STANDARDS, UNITS, TwoLayers
from dynascope.theory.balanced.solution import BalancedGram, covers_balanced, gram, product

__all__ = ["loss", "ntk"]

_SHARE = 1e-6  # of the power that the map explains, by which the power of the targets may be rounded


@covers_balanced(gives="the loss at any time")
@in_units(*STANDARDS, **UNITS, times="t", target_power="w^2 a^2", gives="w^2 a^2")
def loss(
    first: ArrayLike,
    second: ArrayLike,
    target_map: ArrayLike,
    times: ArrayLike,
    *,
    target_power: ArrayLike | None = None,
    **options: Any,
) -> Float[AnyArray, "*members times"]:
    """L = ½‖W₁W₂ − Σ‖² + ½(E‖y‖² − ‖Σ‖²) over time.

    The first term stays above ½ s², s the smallest singular value of Σ, where det W₁W₂ and det Σ differ in sign and
    λ = 0, as `gram` explains; a warning says so.

    Args:
        first: As in `gram`.
        second: As in `gram`.
        target_map: As in `gram`.
        times: As in `gram`.
        target_power: E‖y‖² ≥ ‖Σ‖², or one for each member; without it the second term, the loss that no linear map
            avoids, is left out.
        options: Further arguments of `gram`.

    Returns:
        L, shape (..., times).

    Raises:
        InputError: E‖y‖² below ‖Σ‖², or as `gram`. Where JAX traces them, such values give NaN.

    Example:
        >>> print(loss([[0.1]], [[0.1]], [[2.0]], np.array([0.0, 3.0]), target_power=4.5).round(4))
        [2.2301 0.25  ]
    """
    target = real_value("target_map", target_map, last=(None, None))
    power = None if target_power is None else real_value("target_power", target_power)
    if not is_traced(target) and power is not None and not is_traced(power):
        explained = np.sum(np.asarray(target) ** 2, axis=(-2, -1))
        require_broadcast(target_map=explained.shape, target_power=np.shape(power))
        given, least = (np.ravel(each) for each in np.broadcast_arrays(power, explained))
        worst = np.argmin(given - least * (1 - _SHARE))
        require(
            bool(np.all(given >= least * (1 - _SHARE))),
            f"target_power is {given[worst]:g}, and the map alone explains {least[worst]:g}",
            argument="target_power",
            value=float(given[worst]),
            remedy="give the mean of ‖y‖² of targets whose whitened inputs have that map",
        )
    return _losses(product(first, second, target, times, **options), target, power)


@covers_balanced(gives="the neural tangent kernel at any time")
@in_units(*STANDARDS, **UNITS, times="t", inputs="x", gives="x^2 t^-1")
def ntk(
    first: ArrayLike,
    second: ArrayLike,
    target_map: ArrayLike,
    times: ArrayLike,
    inputs: ArrayLike,
    *,
    first_rate: ArrayLike = 1.0,
    second_rate: ArrayLike = 1.0,
    **options: Any,
) -> Float[AnyArray, "*members times nc nc"]:
    """The neural tangent kernel K = η₂ I ⊗ X W₁W₁ᵀ Xᵀ + η₁ W₂ᵀW₂ ⊗ X Xᵀ over time.

    Args:
        first: As in `gram`.
        second: As in `gram`.
        target_map: As in `gram`.
        times: As in `gram`.
        inputs: X, shape (n, d), of any points.
        first_rate: As in `gram`.
        second_rate: As in `gram`.
        options: Further arguments of `gram`.

    Returns:
        K between all outputs at all points, shape (..., times, n c, n c); row o·n + i is output o at point i.

    Raises:
        InputError: As `gram`, or inputs that do not fit the map.

    Example:
        >>> print(ntk([[0.1]], [[0.1]], [[2.0]], np.array([0.0, 9.0]), [[1.0]]).ravel().round(4))
        [0.02 4.  ]
    """
    network = TwoLayers.checked(first, second, first_rate, second_rate)
    x = real_value("inputs", inputs, dimensions=2, last=(None, network.first.shape[-2]))
    found = gram(first, second, target_map, times, first_rate=first_rate, second_rate=second_rate, **options)
    return _kernel(found, network, x)


@float64_jit
def _losses(found: Array, target: Array, power: Array | None) -> Array:
    excess = jnp.sum((found - target[..., None, :, :]) ** 2, axis=(-2, -1)) / 2
    if power is None:
        return excess
    explained = jnp.sum(target**2, axis=(-2, -1))
    rest = nan_outside(power >= explained * (1 - _SHARE), jnp.maximum(power - explained, 0) / 2, leading=True)
    return excess + rest[..., None]


@float64_jit
def _kernel(found: BalancedGram, network: TwoLayers, x: Array) -> Array:
    first_rate, second_rate = (jnp.asarray(rate)[..., None, None, None] for rate in network.rates)
    inner = second_rate * (x @ found.first @ x.T)
    outer = first_rate * found.second
    points, outputs = len(x), outer.shape[-1]
    kernel = jnp.einsum("ab,...ij->...aibj", jnp.eye(outputs, dtype=x.dtype), inner)
    kernel += jnp.einsum("...ab,ij->...aibj", outer, x @ x.T)
    kernel = kernel.reshape(*kernel.shape[:-4], points * outputs, points * outputs)
    return nan_outside(jnp.all(jnp.isfinite(x)), kernel, leading=True)
