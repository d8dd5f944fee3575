"""Lanczos tridiagonalisation with restarts after breakdowns, which occur for matrices with few distinct eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["tridiagonal"]

_NEGLIGIBLE = 100  # a remainder below this many rounding errors of the largest product counts as zero


def tridiagonal(product: Callable[[Any], Any], start: Any, steps: int) -> tuple[Any, Any]:
    """Compute orthonormal rows Q, the first along `start`, such that Q A Qᵀ is tridiagonal.

    The Hessian of a loss over few samples has few distinct eigenvalues. After one step per distinct eigenvalue, the
    remainder of a product is only rounding error, and normalising this remainder would lead to wrong eigenvalues. The
    iteration then restarts from a random direction orthogonal to all previous rows. The restarts also make it possible
    to find repeated eigenvalues. Every vector is orthogonalised twice against all previous rows, which is sufficient.

    Args:
        product: v (d,) → A v, for a symmetric matrix A.
        start: A non-zero vector, shape (d,).
        steps: Number of rows of Q, which is also the number of products with A; at most d.

    Returns:
        Q, shape (steps, d), and Q A Qᵀ, shape (steps, steps).

    References:
        C. Lanczos, An iteration method for the solution of the eigenvalue problem (1950); G. H. Golub, C. F. Van Loan,
        Matrix Computations (2013), 10.1.

    Example:
        >>> import numpy as np
        >>> basis, matrix = jax.jit(lambda start: tridiagonal(lambda v: v, start, 2))(np.ones(3))
        >>> print(np.round(matrix, 5))
        [[1. 0.]
         [0. 1.]]
    """
    size, dtype = len(start), start.dtype
    rounding = _NEGLIGIBLE * jnp.finfo(dtype).eps

    def orthogonal(vector: Any, basis: Any) -> Any:
        for _ in range(2):
            vector = vector - basis.T @ (basis @ vector)
        return vector

    def step(state: tuple[Any, Any, Any], place: Any) -> tuple[tuple[Any, Any, Any], tuple[Any, Any]]:
        basis, row, largest = state
        basis = basis.at[place].set(row)
        moved = product(row)
        largest = jnp.maximum(largest, jnp.linalg.norm(moved))
        left = orthogonal(moved, basis)
        norm = jnp.linalg.norm(left)
        ended = norm <= rounding * largest
        fresh = orthogonal(jax.random.normal(jax.random.fold_in(jax.random.key(0), place), (size,), dtype), basis)
        row = jnp.where(ended, fresh / jnp.linalg.norm(fresh), left / jnp.where(ended, 1, norm))
        return (basis, row, largest), (basis[place] @ moved, jnp.where(ended, 0, norm))

    first = start / jnp.max(jnp.abs(start))  # prevents overflow of the squares
    state = jnp.zeros((steps, size), dtype), first / jnp.linalg.norm(first), jnp.zeros((), dtype)
    (basis, _, _), (diagonal, off_diagonal) = jax.lax.scan(step, state, jnp.arange(steps))
    return basis, jnp.diag(diagonal) + jnp.diag(off_diagonal[:-1], 1) + jnp.diag(off_diagonal[:-1], -1)
