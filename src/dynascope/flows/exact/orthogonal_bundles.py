"""Orthogonalisation of the neurons of a linear network by rotations."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dynascope.compilation import jit

__all__ = ["Bundles", "orthogonal_bundles"]

Bundles = tuple[Float[Array, "parameters bundle"], Float[Array, " bundle"]]


@functools.partial(jit, static_argnames="sweeps")
def orthogonal_bundles(bundles: Bundles, sweeps: int = 6, enough: Float[Array, ""] | float = 1e-8) -> Bundles:
    """Rotate bundles until their directions are orthogonal, with full precision for the smallest bundles.

    The method applies one-sided Jacobi rotations to all disjoint pairs in parallel. For columns a and e^δ b with δ ≤ 0,
    the tangent of the angle is e^δ τ with

        τ = 2 a·b / (D + √(D² + 4 e^{2δ} (a·b)²)),   D = 1 − e^{2δ}.

    The smaller direction changes by τ, so nothing underflows.

    Args:
        bundles: Unit columns, and their log-norms.
        sweeps: Maximum number of passes over all pairs; the convergence is quadratic.
        enough: Largest acceptable overlap between two directions.

    Returns:
        The rotated bundles. The sum Σ e^{2·log-norm} · direction directionᵀ is unchanged.

    Example:
        >>> import numpy as np
        >>> bundles = jax.jit(orthogonal_bundles)((np.array([[1.0, 0.6], [0.0, 0.8]]), np.array([0.0, -300.0])))
        >>> [each.round(3).tolist() for each in jax.device_get(bundles)]
        [[[1.0, 0.0], [0.0, 1.0]], [0.0, -300.22...]]
    """
    directions, log_norms = bundles
    count = directions.shape[1]
    if count < 2:
        return bundles
    pairs = _disjoint_pairs(count)

    def rotate(round_number, state):
        directions, log_norms, largest = state
        left, right = pairs[round_number].T
        swap = log_norms[left] < log_norms[right]
        large, small = jnp.where(swap, right, left), jnp.where(swap, left, right)
        a, b = directions[:, large], directions[:, small]
        ratio = jnp.exp(log_norms[small] - log_norms[large])
        overlap = jnp.sum(a * b, axis=0)
        gap = 1 - ratio**2
        length = gap + jnp.sqrt(gap**2 + 4 * ratio**2 * overlap**2)
        tangent = jnp.where(length > 0, 2 * overlap / jnp.where(length > 0, length, 1.0), 0.0)
        cosine = 1 / jnp.sqrt(1 + (ratio * tangent) ** 2)
        a, b = cosine * (a + ratio**2 * tangent * b), cosine * (b - tangent * a)
        # The remainder of an exact copy of another bundle is zero; avoid 0/0.
        norms = [jnp.maximum(jnp.linalg.norm(each, axis=0), jnp.finfo(each.dtype).tiny) for each in (a, b)]
        directions = directions.at[:, large].set(a / norms[0]).at[:, small].set(b / norms[1])
        log_norms = log_norms.at[large].add(jnp.log(norms[0])).at[small].add(jnp.log(norms[1]))
        return directions, log_norms, jnp.maximum(largest, jnp.max(jnp.abs(overlap)))

    def swept(state):
        directions, log_norms, _, count = state
        start = directions, log_norms, jnp.zeros((), directions.dtype)
        return *jax.lax.fori_loop(0, len(pairs), rotate, start), count + 1

    def unfinished(state):
        _, _, largest, count = state
        return (largest > enough) & (count < sweeps)

    start = directions, log_norms, jnp.asarray(jnp.inf, directions.dtype), 0
    directions, log_norms, _, _ = jax.lax.while_loop(unfinished, swept, start)
    return directions, log_norms


def _disjoint_pairs(count: int) -> Int[Array, "round pair 2"]:
    """Schedule all pairs of columns in rounds of disjoint pairs (a round-robin tournament)."""
    players = list(range(count + count % 2))
    rounds = []
    for _ in range(len(players) - 1):
        half = len(players) // 2
        meetings = itertools.zip_longest(players[:half], reversed(players[half:]))
        rounds.append([pair for pair in meetings if max(pair) < count])
        players = [players[0], players[-1], *players[1:-1]]
    return jnp.array(rounds)
