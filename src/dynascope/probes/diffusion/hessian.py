"""The sharpest directions of a loss, from products with its Hessian alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dynascope.compilation import jit
from dynascope.probes.diffusion.lanczos import tridiagonal
from dynascope.results.named_tuples import short_repr
from dynascope.validation import calling, require, require_finite_values, shown
from dynascope.validation.bounded_scalars import PositiveInt, Seed

__all__ = ["TopCurvatures", "curvature_product", "gauss_newton_product", "require_lanczos", "top_curvatures"]


class TopCurvatures(NamedTuple):
    """Curvatures and directions of a loss.

    Attributes:
        curvature: Eigenvalues, the largest first, shape (k,).
        directions: Their eigenvectors as rows, in the order of `jax.flatten_util.ravel_pytree`, shape (k, d).
        residual: ‖Hq − ρq‖ of each, within which an eigenvalue lies, shape (k,).
    """

    curvature: np.ndarray
    directions: np.ndarray
    residual: np.ndarray

    __repr__ = short_repr


def top_curvatures(
    loss: Callable[[Any], Any],
    weights: Any,
    count: PositiveInt,
    *,
    model: Callable[[Any], Any] | None = None,
    products: PositiveInt | None = None,
    seed: Seed = 0,
) -> TopCurvatures:
    """The largest eigenvalues ρ of the Hessian of a loss, or of its Gauss-Newton matrix, by Lanczos' method.

    Needs products with the matrix only, each of about four gradients, and every new vector is made orthogonal to all
    before. Cost: (products + count) such products, and memory for as many numbers times the weights. In PyTorch
    `dynascope.torch.top_curvatures` does the same.

    Args:
        loss: A JAX function of the weights, or of the outputs of `model`, with one number.
        weights: A tree of JAX or NumPy arrays of floating-point numbers, d in all.
        count: k, the number of eigenvalues.
        model: None for the Hessian; or a JAX function of the weights whose outputs the loss takes, for the Gauss-Newton
            matrix Jᵀ L'' J, which has no eigenvalue below zero where the loss is convex in the outputs.
        products: Number of products for the eigenvalues; None for max(2k, k + 40), or d if that is less.
        seed: Seed of the vector from which Lanczos' method starts.

    Raises:
        InputError: Weights that are not finite, or more eigenvalues or products than there are weights.

    References:
        C. Lanczos, An iteration method for the solution of the eigenvalue problem (1950).

    Example:
        >>> import jax.numpy as jnp
        >>> found = top_curvatures(lambda w: jnp.sum(jnp.array([3.0, 1.0, 2.0]) * w**2) / 2, np.ones(3), 2)
        >>> print(found.curvature.round(4), np.abs(found.directions[0]).round(4))
        [3. 2.] [1. 0. 0.]
    """
    flat, product = curvature_product(loss, weights, model)
    size = len(flat)
    require(
        count <= size,
        f"count is {count}, of {size} weights",
        argument="count",
        value=count,
        remedy=f"choose an integer from 1 to {size}",
    )
    wanted = min(size, max(2 * count, count + 40)) if products is None else products
    require_lanczos(wanted, size, least=count)
    start = np.random.default_rng(seed).normal(size=size)

    @jit
    def solved(point: Any, start: Any) -> Any:
        basis, matrix = tridiagonal(lambda v: product(point, v), start, wanted)
        values, vectors = jnp.linalg.eigh(matrix)
        directions = vectors[:, ::-1][:, :count].T @ basis
        curvature = values[::-1][:count]
        moved = jax.lax.map(lambda q: product(point, q), directions)
        return curvature, directions, jnp.linalg.norm(moved - curvature[:, None] * directions, axis=1)

    return TopCurvatures(*map(np.asarray, solved(flat, jnp.asarray(start, flat.dtype))))


def curvature_product(
    loss: Callable[[Any], Any], weights: Any, model: Callable[[Any], Any] | None
) -> tuple[Any, Callable[[Any, Any], Any]]:
    """The weights in a row, and the product (weights in a row, vector) → Hv, or that of the Gauss-Newton matrix.

    Raises:
        InputError: Weights that are not finite, or none, or functions that do not take them.
    """
    leaves, structure = jax.tree.flatten(weights)
    for leaf in leaves or [None]:
        require(
            isinstance(leaf, np.ndarray | jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating) and leaf.size > 0,
            f"weights holds {shown(leaf)}",
            argument="weights",
            value=shown(leaf),
            remedy="give a tree of arrays of floating-point numbers",
        )
        require_finite_values("weights", leaf)
    # JAX has one order of bytes, that of the machine.
    native = [leaf.astype(leaf.dtype.newbyteorder("=")) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    tree = jax.tree.unflatten(structure, list(map(jnp.asarray, native)))
    flat, unravel = ravel_pytree(tree)
    with calling(
        "loss",
        getattr(loss, "__name__", type(loss).__name__),
        "give a JAX function of the weights, or of the outputs of model, with one number",
    ):
        jax.eval_shape(lambda tree: jax.grad(loss)(tree if model is None else model(tree)), tree)

    if model is None:
        return flat, lambda point, v: jax.jvp(jax.grad(lambda w: loss(unravel(w))), (point,), (v,))[1]
    apply = model
    return flat, lambda point, v: gauss_newton_product(loss, lambda w: apply(unravel(w)), point, v)


def gauss_newton_product(loss: Callable[[Any], Any], model: Callable[[Any], Any], point: Any, v: Any) -> Any:
    """Jᵀ L'' J v, of a loss of the outputs of a model at a point."""
    _, pushed = jax.jvp(model, (point,), (v,))
    outputs, pull = jax.vjp(model, point)
    return pull(jax.jvp(jax.grad(loss), (outputs,), (pushed,))[1])[0]


def require_lanczos(products: int, size: int, *, least: int = 1) -> None:
    """Raise `InputError` unless there are enough products, and not more than weights."""
    require(
        least <= products <= size,
        f"products is {products}, of {size} weights",
        argument="products",
        value=products,
        remedy=f"choose an integer from {least} to {size}",
    )
