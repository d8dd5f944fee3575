"""Lanczos' tridiagonalisation that goes on where a matrix has fewer different eigenvalues than steps were asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["tridiagonal"]

_NOTHING = 100  # roundings of the matrix, below which what is left of a product is rounding


def tridiagonal(product: Callable[[Any], Any], start: Any, steps: int) -> tuple[Any, Any]:
    """Orthonormal rows Q, the first along `start`, with Q A Qᵀ tridiagonal, after as many products with A.

    Hessians of few samples have few different eigenvalues, and after as many steps nothing is left of a product but
    rounding: made a unit vector, it would be no direction, and the eigenvalues wrong. There a random direction that is
    orthogonal to all before begins a block of its own, which finds further copies of equal eigenvalues too. Every
    vector is made orthogonal to all before twice, which is enough.

    Args:
        product: v (d,) → A v, of a symmetric A.
        start: A vector (d,) that is not zero.
        steps: Number of rows, at most d.

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
    rounding = _NOTHING * jnp.finfo(dtype).eps

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

    first = start / jnp.max(jnp.abs(start))  # whose squares no number is too large for
    state = jnp.zeros((steps, size), dtype), first / jnp.linalg.norm(first), jnp.zeros((), dtype)
    (basis, _, _), (along, beside) = jax.lax.scan(step, state, jnp.arange(steps))
    return basis, jnp.diag(along) + jnp.diag(beside[:-1], 1) + jnp.diag(beside[:-1], -1)
