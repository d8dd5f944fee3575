"""Least-squares fit of Gabor functions to filters."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dynascope.compilation import float64_jit
from dynascope.errors import InputError
from dynascope.probes.filters.planes import planes
from dynascope.validation import checked, is_traced

__all__ = ["SMALLEST_KERNEL", "gabor_fit"]

SMALLEST_KERNEL = 7
REMEDY = f"use kernels of at least {SMALLEST_KERNEL} × {SMALLEST_KERNEL}, because Gabor functions fit any smaller one"
_ORIENTATIONS = 12
_ITERATIONS = 60  # of Levenberg-Marquardt; more change the mean R² of white noise by less than 1e-3
_NARROWEST, _FASTEST = 0.5, 0.5  # smallest width, and largest frequency per pixel
_RIDGE = 1e-9  # relative; the sine part vanishes at frequency zero


@checked
def gabor_fit(filters: Any) -> Float[np.ndarray, " n"]:
    """Compute the fraction R² of the variance of each filter that the closest Gabor function explains.

        A exp(−x'²/2s_x² − y'²/2s_y²) cos(2πfx' + φ),   0 < f ≤ ½,   s_x, s_y ≥ ½

    x' and y' are coordinates in pixels, rotated by θ around a centre within the filter. The mean is subtracted from the
    filter. Fits by Levenberg-Marquardt start at 12 orientations θ, each with the best frequency, width and centre from
    a grid; A and φ are solved for exactly. The largest R² is returned.

    R² is not zero for white noise: it is about a quarter for 9 × 9 pixels (`white_noise_scores`). Smaller kernels are
    fitted more closely, and those below 7 × 7 are rejected.

    Cost: about 10⁴ k² evaluations of the Gabor function per filter, and memory for 10³ k² numbers.

    Args:
        filters: Shape (n, k, k), or (n, k, k, channels) for colour, as a NumPy, JAX or PyTorch array of floating-point
            numbers; k ≥ 7. Colour is replaced by its first principal component over the pixels of a filter.

    Returns:
        R² as a NumPy array, between zero and one. The R² of a constant filter among others is undefined, and its
        result is NaN.

    Raises:
        InputError: If the filters have another shape, values that are not finite, or fewer than 7 × 7 pixels; if all
            of them are constant; or if the function is called under JAX tracing.

    Example:
        >>> import numpy as np
        >>> y, x = np.mgrid[-4:5, -4:5]
        >>> gabor = np.exp(-(x**2 + y**2) / 8) * np.cos(2 * np.pi * 0.2 * x + 0.3)
        >>> gabor_fit(gabor[None]).round(2)
        array([1.])
    """
    if is_traced(filters):
        remedy = "call gabor_fit outside jit, grad and vmap"
        raise InputError("filters is traced by JAX", argument="filters", remedy=remedy)
    found = planes(filters, least=SMALLEST_KERNEL, remedy=REMEDY)
    values, varies = (np.asarray(part) for part in found)
    result = np.full(len(values), math.nan)
    if varies.any():
        units = values[varies].reshape(int(varies.sum()), -1).astype(np.float64)
        units /= np.linalg.norm(units, axis=1, keepdims=True)
        result[varies] = np.clip(_best_fits(units), 0.0, 1.0)
    return result


@float64_jit
def _best_fits(units: Any) -> Any:
    """R² for filters of unit norm, shape (n, k²)."""
    side = math.isqrt(units.shape[1])
    starts = _grid(side)
    explained = jax.vmap(lambda start: jnp.sum(_fitted(start, units.T, side) * units.T, axis=0))
    coarse = jax.lax.map(explained, starts)  # (orientations, grid, filters)
    first = starts[jnp.arange(_ORIENTATIONS)[:, None], jnp.argmax(coarse, axis=1)]  # (orientations, filters, 6)
    fit = jax.vmap(jax.vmap(lambda start, unit: _refined(start, unit, side)), in_axes=(0, None))
    return jnp.max(fit(first, units), axis=0)


def _grid(side: int) -> Any:
    """Initial parameters, shape (orientations, grid, 6): centre, logarithms of the widths, frequency and θ."""
    offsets = np.array([-side / 4, 0.0, side / 4])
    widths = np.log(np.array([side / 6, side / 3]) - _NARROWEST)
    frequencies = np.array([0.05, 0.12, 0.2, 0.3, 0.42])
    frequencies = np.log(frequencies / (_FASTEST - frequencies))
    angles = np.arange(_ORIENTATIONS) * np.pi / _ORIENTATIONS
    theta, x, y, width, frequency = np.meshgrid(angles, offsets, offsets, widths, frequencies, indexing="ij")
    grid = np.stack([x, y, width, width, frequency, theta], axis=-1)
    return jnp.asarray(grid.reshape(_ORIENTATIONS, -1, 6))


def _fitted(parameters: Any, unit: Any, side: int) -> Any:
    """The closest Gabor function with the given parameters, for the best amplitude A and phase φ."""
    x, y, wide, high, frequency, theta = parameters
    pixels = jnp.arange(side) - (side - 1) / 2
    # A centre outside the filter would add tails of Gabor functions to the family.
    half = side / 2
    down, along = jnp.meshgrid(pixels - half * jnp.tanh(y / half), pixels - half * jnp.tanh(x / half), indexing="ij")
    turned = jnp.cos(theta) * along + jnp.sin(theta) * down
    across = jnp.cos(theta) * down - jnp.sin(theta) * along
    s_x, s_y = _NARROWEST + jnp.exp(wide), _NARROWEST + jnp.exp(high)
    phase = 2 * jnp.pi * _FASTEST * jax.nn.sigmoid(frequency) * turned
    window = jnp.exp(-0.5 * ((turned / s_x) ** 2 + (across / s_y) ** 2))
    basis = jnp.stack([(window * jnp.cos(phase)).ravel(), (window * jnp.sin(phase)).ravel()])
    (a, b), (_, c) = basis @ basis.T + _RIDGE * jnp.eye(2)
    first, second = basis @ unit
    determinant = a * c - b * b
    amplitudes = jnp.stack([c * first - b * second, a * second - b * first]) / determinant
    return jnp.tensordot(basis, amplitudes, axes=(0, 0))


def _refined(start: Any, unit: Any, side: int) -> Any:
    """R² after Levenberg-Marquardt from the given parameters."""

    def residual(parameters: Any) -> Any:
        return unit - _fitted(parameters, unit, side)

    def step(_: Any, state: Any) -> Any:
        parameters, error, damping = state
        r, jacobian = residual(parameters), jax.jacfwd(residual)(parameters)
        matrix = jacobian.T @ jacobian
        scale = jnp.diag(jnp.diag(matrix) + 1e-9)
        proposed = parameters - jnp.clip(jnp.linalg.solve(matrix + damping * scale, jacobian.T @ r), -1.0, 1.0)
        new = jnp.sum(residual(proposed) ** 2)
        better = new < error
        parameters = jnp.where(better, proposed, parameters)
        damping = jnp.clip(jnp.where(better, damping / 3, damping * 4), 1e-9, 1e9)
        return parameters, jnp.where(better, new, error), damping

    first = start, jnp.sum(residual(start) ** 2), 1e-2
    return 1 - jax.lax.fori_loop(0, _ITERATIONS, step, first)[1]
