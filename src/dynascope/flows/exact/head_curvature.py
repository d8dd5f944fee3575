"""Derivatives of attention heads on prompts, which are products of what a head reads of a prompt."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.networks.linear_attention import context_and_query

__all__ = ["head_curvatures", "head_slopes"]


def head_slopes(
    prompts: Float[Array | np.ndarray, "n D"], rows: Float[Array, "heads weights"]
) -> Float[Array, "n heads weights"]:
    """D_h, the derivatives of f_h = v (u·k)(z·q) in v, k and q: (u·k)(z·q), v (z·q) u and v (u·k) z.

    Args:
        prompts: Rows with a context u = 1/N Σ y x and a query z.
        rows: v, k and q of each head.

    Example:
        >>> import jax
        >>> jax.jit(head_slopes)(np.array([[2.0, 1.0, 3.0, 0.0]]), np.array([[1.0, 5.0, 7.0]])).tolist()
        [[[210.0, 42.0, 30.0]]]
    """
    context, query = context_and_query(prompts, rows.shape[1] // 2)
    value, key, asked = _weights(rows)
    heard, sought = context @ key.T, query @ asked.T
    parts = (
        (heard * sought)[..., None],
        (value * sought)[..., None] * context[:, None, :],
        (value * heard)[..., None] * query[:, None, :],
    )
    return jnp.concatenate(parts, axis=-1)


def head_curvatures(
    prompts: Float[Array | np.ndarray, "n D"], error: Float[Array, "n 1"], rows: Float[Array, "heads weights"]
) -> Float[Array, "heads weights weights"]:
    """H_h, the Hessian of E f_h r in v, k and q at a fixed error r, of which all heads share G = E[r u zᵀ].

    Of v and k it is G q, of v and q Gᵀ k, of k and q v G, and zero of each by itself.

    Args:
        prompts: Rows with a context u = 1/N Σ y x and a query z.
        error: r.
        rows: v, k and q of each head.

    Example:
        >>> import jax
        >>> prompts, rows = np.array([[2.0, 1.0, 3.0, 0.0]]), np.array([[1.0, 5.0, 7.0]])
        >>> jax.jit(head_curvatures)(prompts, np.ones((1, 1)), rows).tolist()
        [[[0.0, 42.0, 30.0], [42.0, 0.0, 6.0], [30.0, 6.0, 0.0]]]
    """
    size = rows.shape[1] // 2
    context, query = context_and_query(prompts, size)
    value, key, asked = _weights(rows)
    shared = (context * error).T @ query / len(context)
    above = jnp.concatenate([asked @ shared.T, key @ shared], axis=1)
    corner = jnp.pad(value[:, None, None] * shared, ((0, 0), (0, size), (size, 0)))
    half = jnp.concatenate([jnp.pad(above, ((0, 0), (1, 0)))[:, None, :], jnp.pad(corner, ((0, 0), (0, 0), (1, 0)))], 1)
    return half + half.transpose(0, 2, 1)


def _weights(rows: Any) -> tuple[Array, Array, Array]:
    size = rows.shape[1] // 2
    return rows[:, 0], rows[:, 1 : size + 1], rows[:, size + 1 :]
