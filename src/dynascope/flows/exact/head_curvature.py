"""First and second derivatives of rank-one attention heads in closed form."""

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
    """Compute the derivatives D_h of f_h = v (u·k)(z·q) with respect to v, k and q.

        ∂f_h/∂v = (u·k)(z·q),   ∂f_h/∂k = v (z·q) u,   ∂f_h/∂q = v (u·k) z

    Args:
        prompts: Prompts, with context u = 1/N Σ y x and query z.
        rows: v, k and q of each head.

    Example:
        >>> import jax
        >>> jax.jit(head_slopes)(np.array([[2.0, 1.0, 3.0, 0.0]]), np.array([[1.0, 5.0, 7.0]])).tolist()
        [[[210.0, 42.0, 30.0]]]
    """
    context, query = context_and_query(prompts, rows.shape[1] // 2)
    v, k, q = _weights(rows)
    context_product, query_product = context @ k.T, query @ q.T
    parts = (
        (context_product * query_product)[..., None],
        (v * query_product)[..., None] * context[:, None, :],
        (v * context_product)[..., None] * query[:, None, :],
    )
    return jnp.concatenate(parts, axis=-1)


def head_curvatures(
    prompts: Float[Array | np.ndarray, "n D"], error: Float[Array, "n 1"], rows: Float[Array, "heads weights"]
) -> Float[Array, "heads weights weights"]:
    """Compute the Hessian H_h of E[f_h r] with respect to v, k and q at a fixed error r.

    With G = E[r u zᵀ], which all heads share, the mixed derivatives are

        ∂²/∂v∂k = G q,   ∂²/∂v∂q = Gᵀ k,   ∂²/∂k∂q = v G,

    and the diagonal blocks are zero.

    Args:
        prompts: Prompts, with context u = 1/N Σ y x and query z.
        error: Error r, shape (n, 1).
        rows: v, k and q of each head.

    Example:
        >>> import jax
        >>> prompts, rows = np.array([[2.0, 1.0, 3.0, 0.0]]), np.array([[1.0, 5.0, 7.0]])
        >>> jax.jit(head_curvatures)(prompts, np.ones((1, 1)), rows).tolist()
        [[[0.0, 42.0, 30.0], [42.0, 0.0, 6.0], [30.0, 6.0, 0.0]]]
    """
    size = rows.shape[1] // 2
    context, query = context_and_query(prompts, size)
    v, k, q = _weights(rows)
    shared = (context * error).T @ query / len(context)
    above = jnp.concatenate([q @ shared.T, k @ shared], axis=1)
    corner = jnp.pad(v[:, None, None] * shared, ((0, 0), (0, size), (size, 0)))
    half = jnp.concatenate([jnp.pad(above, ((0, 0), (1, 0)))[:, None, :], jnp.pad(corner, ((0, 0), (0, 0), (1, 0)))], 1)
    return half + half.transpose(0, 2, 1)


def _weights(rows: Any) -> tuple[Array, Array, Array]:
    size = rows.shape[1] // 2
    return rows[:, 0], rows[:, 1 : size + 1], rows[:, size + 1 :]
