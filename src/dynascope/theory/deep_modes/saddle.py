"""Time that a mode of a deep linear network spends at the saddle before it is learned."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from annotated_types import Ge
from jax import Array
from jaxtyping import Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.theory.assumptions import ALIGNED_LAYERS, BALANCED_LAYERS, ENOUGH_SAMPLES, SMALL_START, WHITE_INPUTS
from dynascope.theory.domain import covers
from dynascope.theory.kernels import broadcast, nan_outside
from dynascope.validation import is_traced, require, require_known
from dynascope.validation.bounded import FiniteArray

__all__ = ["escape_slope", "saddle_escape_time"]


@covers(
    network="deep linear with aligned layers, any depth",
    data="whitened inputs, any targets",
    start="balanced, small",
    gives="the time that a mode spends at the saddle before it is learned",
    reference="arXiv:2106.15933",
    exact=False,
    assumes=(ENOUGH_SAMPLES, WHITE_INPUTS, SMALL_START, BALANCED_LAYERS, ALIGNED_LAYERS),
)
def saddle_escape_time(
    target: FiniteArray, initial_strength: FiniteArray, *, depth: Annotated[int, Ge(2)]
) -> Float[AnyArray, ...]:
    """Compute the time at which a mode leaves the saddle at zero, to leading order in s₀/σ.

    t = ln(σ/s₀)/(2σ) for L = 2, t = s₀^−(1−2/L)/((L − 2) σ) for L ≥ 3

    If the weights of each layer are of size ε, then s₀ = ε^L. The length of a plateau thus scales as ln(1/ε) for two
    layers and as ε^(2−L) for more layers. Stronger modes are learned first.

    Args:
        target: σ ≠ 0.
        initial_strength: s₀ ≠ 0, with the sign of σ and |s₀| < |σ|.
        depth: Number of layers L ≥ 2; a single layer has no saddle.

    Returns:
        Gradient-flow times, in the broadcast shape of the arguments.

    Raises:
        InputError: If an initial strength is not between zero and its target, shapes do not match, or the depth is not
            an integer of at least 2. Inside `jit`, values outside this domain give NaN.

    References:
        Leading term of `time_to_strength` for s₀ ≪ σ.

    Example:
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     print([round(float(saddle_escape_time(2.0, 1e-6, depth=L)), 3) for L in (2, 3, 4)])
        [3.627, 50.0, 250.0]
    """
    require_known(depth=depth)
    mode = broadcast(target=target, initial_strength=initial_strength)
    require(
        any(map(is_traced, mode)) or np.all(_dwells(*map(np.asarray, mode))),
        "initial_strength is not between zero and target",
        argument="initial_strength",
        value=str(initial_strength),
        remedy="choose an initial strength with the sign of the target and a smaller absolute value",
    )
    return _escape_time(depth, *mode)


def escape_slope(times: np.ndarray, scales: np.ndarray, target: float, *, depth: int) -> float:
    """Return the slope of the escape time between the two smallest scales, divided by the predicted slope.

    For two layers, the slope −dt/dlog(scale) is divided by 1/σ. For more layers, −dlog t/dlog(scale) is divided by
    L − 2.

    Args:
        times: Escape times, shape (scales,).
        scales: Scales of the initial weights, decreasing, shape (scales,).
        target: σ.
        depth: Number of layers L ≥ 2.
    """
    contrast = np.log(scales[-2] / scales[-1])
    if depth == 2:
        return float(target * (times[-1] - times[-2]) / contrast)
    return float(np.log(times[-1] / times[-2]) / contrast / (depth - 2))


def _dwells(sigma: Any, start: Any) -> Any:
    """Whether the initial strength is between zero and the target, so that the mode must escape from the saddle."""
    return (sigma != 0) & (start != 0) & ((sigma > 0) == (start > 0)) & (abs(start) < abs(sigma))


@functools.partial(float64_jit, static_argnums=0)
def _escape_time(layers: int, target: Array, initial_strength: Array) -> Array:
    sigma, start = jnp.abs(target), jnp.abs(initial_strength)
    if layers == 2:
        time = (jnp.log(sigma) - jnp.log(start)) / (2 * sigma)
    else:
        time = start ** -(1 - 2 / layers) / ((layers - 2) * sigma)
    return nan_outside(jnp.isfinite(sigma) & _dwells(target, initial_strength), time)
