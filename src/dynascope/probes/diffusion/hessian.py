"""The sharpest directions of a loss, from products with its Hessian alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dynascope.compilation import jit
from dynascope.compilation.frameworks import also_in_pytorch
from dynascope.probes.diffusion.lanczos import tridiagonal
from dynascope.results.named_tuples import short_repr
from dynascope.validation import calling, require, require_finite_values, shown
from dynascope.validation.bounded_scalars import PositiveInt, Seed

__all__ = ["TopCurvatures", "curvature_product", "gauss_newton_product", "require_lanczos", "top_curvatures"]


class TopCurvatures(NamedTuple):
    """Curvatures and directions of a loss.

    Attributes:
        curvature: Eigenvalues, the largest first, shape (k,).
        directions: Their eigenvectors as rows, shape (k, d), in the order of `jax.flatten_util.ravel_pytree`, or of the
            parameters of a module that require a gradient.
        residual: ‖Hq − ρq‖ of each, within which an eigenvalue lies, shape (k,).
    """

    curvature: np.ndarray
    directions: np.ndarray
    residual: np.ndarray

    __repr__ = short_repr


@also_in_pytorch("dynascope.torch.curvature")
def top_curvatures(
    loss: Callable[..., Any],
    weights: Any,
    count: PositiveInt,
    *,
    batches: Iterable[tuple[Any, Any]] | None = None,
    model: Callable[[Any], Any] | None = None,
    gauss_newton: bool = False,
    reduction: Literal["mean", "sum"] | None = None,
    products: PositiveInt | None = None,
    seed: Seed = 0,
) -> TopCurvatures:
    """The largest eigenvalues ρ of the Hessian of a loss, or of its Gauss-Newton matrix, by Lanczos' method.

    Needs products with the matrix only, each of about four gradients. In JAX every new vector is made orthogonal to all
    before. Cost: (products + count) such products, and memory for as many numbers times the weights.

    For a module of PyTorch the eigenvalues are by ARPACK, products with the Hessian by two backward passes and those
    with the Gauss-Newton matrix by curvlinops. Cost: some tens of passes over all batches, of about four gradients
    each, memory for 3k times as many numbers as there are weights. Every product passes over all batches, so that the
    loss must be the same function in each pass. Two passes check this before the iteration starts. The module and the
    random numbers of PyTorch are left unchanged.

    Args:
        loss: A JAX function of the weights, or of the outputs of `model`, with one number. For a module a loss of
            PyTorch that takes outputs and targets, such as `torch.nn.CrossEntropyLoss()`, with the reduction "mean" or
            "sum" (that of the sum is not divided by anything).
        weights: A tree of JAX or NumPy arrays of floating-point numbers, d in all; or a `torch.nn.Module`, of which
            those that require a gradient count, in evaluation mode if it has dropout or batch normalisation.
        count: k, the number of eigenvalues; for a module below d.
        batches: For a module pairs (inputs, targets) of all the data: a list, or a loader without shuffling and random
            augmentation. In JAX the loss holds the data.
        model: In JAX a function of the weights whose outputs the loss takes; None if it takes the weights.
        gauss_newton: Whether it is the Gauss-Newton matrix Jᵀ L'' J, which has no eigenvalue below zero where the loss
            is convex in the outputs. In JAX it needs `model`.
        reduction: For a module, "mean" or "sum" over the samples of a batch, if the loss is a function; None for a loss
            of `torch.nn`.
        products: In JAX the number of products for the eigenvalues; None for max(2k, k + 40), or d if that is less.
        seed: Seed of the vector from which the iteration starts.

    Raises:
        InputError: Weights that are not finite, more eigenvalues or products than there are weights, or arguments of
            the other framework. For a module also layers in training mode that draw random numbers or use statistics
            of the batch, a module or loss that gives other numbers when it is called again, batches that change between
            passes, or a loss that is not finite, or that PyTorch cannot differentiate twice.

    References:
        C. Lanczos, An iteration method for the solution of the eigenvalue problem (1950); F. Dangel et al., Position:
        curvature matrices should be democratized via linear operators, arXiv:2501.19183.

    Example:
        >>> import jax.numpy as jnp
        >>> found = top_curvatures(lambda w: jnp.sum(jnp.array([3.0, 1.0, 2.0]) * w**2) / 2, np.ones(3), 2)
        >>> print(found.curvature.round(4), np.abs(found.directions[0]).round(4))
        [3. 2.] [1. 0. 0.]
    """
    require(
        batches is None,
        "batches are given for a function of JAX",
        argument="batches",
        value=type(batches).__name__,
        remedy="leave them out and let the loss hold the data, or give a torch.nn.Module as weights",
    )
    require(
        reduction is None,
        f"reduction is {reduction!r} for a function of JAX",
        argument="reduction",
        value=reduction,
        remedy="omit it; it belongs to a loss of PyTorch",
    )
    flat, product = curvature_product(loss, weights, model, gauss_newton=gauss_newton)
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
    loss: Callable[[Any], Any], weights: Any, model: Callable[[Any], Any] | None, *, gauss_newton: bool
) -> tuple[Any, Callable[[Any, Any], Any]]:
    """The weights in a row, and the product (weights in a row, vector) → Hv, or that of the Gauss-Newton matrix.

    Raises:
        InputError: Weights that are not finite, or none, functions that do not take them, or a Gauss-Newton matrix
            without a model.
    """
    require(
        model is not None or not gauss_newton,
        "gauss_newton is True, and there is no model",
        argument="model",
        value=None,
        remedy="give the function of the weights whose outputs the loss takes",
    )
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

    apply = model or (lambda tree: tree)
    if gauss_newton:
        return flat, lambda point, v: gauss_newton_product(loss, lambda w: apply(unravel(w)), point, v)
    return flat, lambda point, v: jax.jvp(jax.grad(lambda w: loss(apply(unravel(w)))), (point,), (v,))[1]


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
