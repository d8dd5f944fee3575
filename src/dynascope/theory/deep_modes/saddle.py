"""How long a mode of a deep linear network waits at the saddle."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.arguments import require
from dynascope.theory.deep_modes.arguments import broadcast_floats, checked_depth
from dynascope.theory.domain import covers

__all__ = ["escape_time"]


@covers(
    network="deep linear with aligned layers, any depth",
    data="whitened inputs, any targets",
    start="balanced, small",
    gives="how long a mode waits at the saddle before it is learned",
    reference="arXiv:2106.15933",
    exact=False,
)
def escape_time(
    target: Real[ArrayLike, ...], initial_strength: Real[ArrayLike, ...], *, depth: int
) -> Float[Array, ...]:
    """The leading order of the time to leave the saddle at zero, for s₀ ≪ σ.

    It is ln(σ/s₀)/(2σ) for L = 2 and s₀^−(1−2/L)/((L − 2) σ) for L ≥ 3. With layers of scale ε, s₀ = ε^L: plateaus of
    two layers are logarithmically long, those of more layers ε^(2−L), and stronger modes are learned first.

    Args:
        target: σ ≠ 0.
        initial_strength: s₀, of the sign of σ and smaller.
        depth: L ≥ 2; a single layer has no saddle.

    Raises:
        InputError: A start that is not between zero and its target, or a depth that is no whole number from two.

    Example:
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     print([round(float(escape_time(2.0, 1e-6, depth=L)), 3) for L in (2, 3, 4)])
        [3.627, 50.0, 250.0]
    """
    layers = checked_depth(depth, least=2)
    sigma, start = broadcast_floats(target=target, initial_strength=initial_strength)
    ratio = start / jnp.where(sigma == 0, 1, sigma)
    require(
        isinstance(ratio, Tracer) or bool(jnp.all((sigma != 0) & (ratio > 0) & (ratio < 1))),
        "a mode does not start between zero and its target",
        argument="initial_strength",
        value=str(initial_strength),
        remedy="give it the sign of the target and a smaller size",
    )
    sigma, start = jnp.abs(sigma), jnp.abs(start)
    if layers == 2:
        return (jnp.log(sigma) - jnp.log(start)) / (2 * sigma)
    return start ** -(1 - 2 / layers) / ((layers - 2) * sigma)
