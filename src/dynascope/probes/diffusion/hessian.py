"""The sharpest directions of a loss, computed from Hessian-vector products."""

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
    """The largest curvatures of a loss and their directions.

    Attributes:
        curvature: Eigenvalues in descending order, shape (k,).
        directions: Their eigenvectors as rows, shape (k, d), in the order of `jax.flatten_util.ravel_pytree`, or of the
            parameters of a module that require a gradient.
        residual: ‖Hq − ρq‖ for each pair; an exact eigenvalue lies within this distance of ρ. Shape (k,).
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
    """Compute the largest eigenvalues ρ of the Hessian or Gauss-Newton matrix of a loss by the Lanczos method.

    Only matrix-vector products are needed; each costs about four gradients. In JAX, every new vector is orthogonalised
    against all previous ones. Cost: (products + count) matrix-vector products, and memory for products + count vectors
    of weights.

    For a PyTorch module, ARPACK computes the eigenvalues. Hessian products use two backward passes, and Gauss-Newton
    products use the package curvlinops-for-pytorch. Cost: tens of passes over all batches, each of about four
    gradients, and memory for 3k vectors of weights. Every product passes over all batches, so the loss must be
    deterministic; two passes before the first iteration check that it is. The module and the PyTorch random state are
    left unchanged.

    Args:
        loss: A JAX function of the weights, or of the outputs of `model`, that returns one number. For a module, a
            PyTorch loss of outputs and targets such as `torch.nn.CrossEntropyLoss()`, with reduction "mean" or "sum" (a
            sum is not divided by the number of samples).
        weights: A tree of floating-point JAX or NumPy arrays, d numbers in total, or a `torch.nn.Module`. For a module,
            only the parameters that require a gradient are included. A module with dropout or batch normalisation must
            be in evaluation mode.
        count: k, the number of eigenvalues; for a module, less than d.
        batches: For a module, pairs (inputs, targets) of all the data: a list, or a loader without shuffling and random
            augmentation. In JAX, the loss contains the data.
        model: In JAX, a function from the weights to the outputs that the loss takes; None if the loss takes the
            weights directly.
        gauss_newton: Whether to use the Gauss-Newton matrix Jᵀ L'' J, which has no negative eigenvalue if the loss is
            convex in the outputs. In JAX, this option requires `model`.
        reduction: For a module, "mean" or "sum" over the samples of a batch if the loss is a function; None for a
            `torch.nn` loss.
        products: In JAX, the number of matrix-vector products for the eigenvalues; None for max(2k, k + 40), or d if
            that is smaller.
        seed: Seed of the initial vector of the iteration.

    Raises:
        InputError: If weights are not finite, there are more eigenvalues or products than weights, or arguments belong
            to the other framework. For a module, also if layers in training mode draw random numbers or use batch
            statistics; if repeated calls or passes over the batches give different values; or if the loss is not finite
            or not twice differentiable.
        ModuleNotFoundError: If `gauss_newton` is true for a module, and curvlinops-for-pytorch is missing; install it
            with `pip install '.[torch]'`.

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
        "batches is given, but the loss is a JAX function",
        argument="batches",
        value=type(batches).__name__,
        remedy="omit batches and let the loss contain the data, or give a torch.nn.Module as weights",
    )
    require(
        reduction is None,
        f"reduction is {reduction!r}, but the loss is a JAX function",
        argument="reduction",
        value=reduction,
        remedy="omit reduction, which applies only to PyTorch losses",
    )
    flat, product = curvature_product(loss, weights, model, gauss_newton=gauss_newton)
    size = len(flat)
    require(
        count <= size,
        f"count is {count}, but there are {size} weights",
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
    """Return the flattened weights, and a function (flattened weights, vector) → Hv or Gauss-Newton product.

    Raises:
        InputError: If there are no weights or they are not finite, the functions do not accept them, or a Gauss-Newton
            matrix is requested without a model.
    """
    require(
        model is not None or not gauss_newton,
        "gauss_newton is True, but model is missing",
        argument="model",
        value=None,
        remedy="give as model the function that maps the weights to the outputs from which the loss is computed",
    )
    leaves, structure = jax.tree.flatten(weights)
    for leaf in leaves or [None]:
        require(
            isinstance(leaf, np.ndarray | jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating) and leaf.size > 0,
            f"weights contains {shown(leaf)}",
            argument="weights",
            value=shown(leaf),
            remedy="give a tree of floating-point arrays",
        )
        require_finite_values("weights", leaf)
    # JAX supports only the byte order of the machine.
    native = [leaf.astype(leaf.dtype.newbyteorder("=")) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    tree = jax.tree.unflatten(structure, list(map(jnp.asarray, native)))
    flat, unravel = ravel_pytree(tree)
    with calling(
        "loss",
        getattr(loss, "__name__", type(loss).__name__),
        "give a JAX function of the weights, or of the outputs of model, that returns one number",
    ):
        jax.eval_shape(lambda tree: jax.grad(loss)(tree if model is None else model(tree)), tree)

    apply = model or (lambda tree: tree)
    if gauss_newton:
        return flat, lambda point, v: gauss_newton_product(loss, lambda w: apply(unravel(w)), point, v)
    return flat, lambda point, v: jax.jvp(jax.grad(lambda w: loss(apply(unravel(w)))), (point,), (v,))[1]


def gauss_newton_product(loss: Callable[[Any], Any], model: Callable[[Any], Any], point: Any, v: Any) -> Any:
    """Compute the Gauss-Newton product Jᵀ L'' J v at a point, for a loss of the outputs of a model."""
    _, pushed = jax.jvp(model, (point,), (v,))
    outputs, pull = jax.vjp(model, point)
    return pull(jax.jvp(jax.grad(loss), (outputs,), (pushed,))[1])[0]


def require_lanczos(products: int, size: int, *, least: int = 1) -> None:
    """Raise `InputError` unless the number of products is between `least` and the number of weights."""
    require(
        least <= products <= size,
        f"products is {products}, but there are {size} weights",
        argument="products",
        value=products,
        remedy=f"choose an integer from {least} to {size}",
    )
