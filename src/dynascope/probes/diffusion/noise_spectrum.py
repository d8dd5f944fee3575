"""The distribution of gradient noise over the curvatures of a loss, for networks of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.compilation import jit
from dynascope.probes.diffusion.hessian import curvature_product, require_lanczos
from dynascope.probes.diffusion.lanczos import tridiagonal
from dynascope.results.named_tuples import short_repr
from dynascope.validation import require, require_axes, require_finite_values
from dynascope.validation.bounded_scalars import PositiveInt

__all__ = ["NoiseSpectrum", "noise_spectrum", "quadrature_nodes"]


class NoiseSpectrum(NamedTuple):
    """Curvatures with the gradient noise assigned to each.

    Attributes:
        curvature: Quadrature nodes ρ of all noise vectors, shape (n·products,).
        noise: Variance over samples of the gradient at each node, shape (n·products,); the sum over nodes is Tr Σ.
    """

    curvature: np.ndarray
    noise: np.ndarray

    __repr__ = short_repr


def noise_spectrum(
    loss: Callable[[Any], Any],
    weights: Any,
    noise: Any,
    *,
    model: Callable[[Any], Any] | None = None,
    gauss_newton: bool = False,
    products: PositiveInt = 32,
) -> NoiseSpectrum:
    """Compute nodes ρ_i and variances s_i with tr(Σ f(H)) ≃ Σ_i s_i f(ρ_i).

    Σ is the mean of x xᵀ over noise vectors x. The stationary displacement of SGD is a trace of this form for any
    eigenvectors of Σ, so `theory.noise` accepts the nodes and variances as modes. No eigenvectors are required: a few
    hundred Hessian products suffice for a network with millions of weights. Each noise vector starts a Lanczos
    tridiagonalisation. The Gauss quadrature nodes are the eigenvalues of the tridiagonal matrix, and the quadrature
    weights are the squared first entries of its eigenvectors. The quadrature is exact for polynomials f of degree below
    twice the number of products.

    Cost: n·products products of about four gradients each, and memory for products·d numbers.

    Args:
        loss: A JAX function of the weights, or of the outputs of `model`, that returns one number.
        weights: A tree of floating-point JAX or NumPy arrays, d numbers in total.
        noise: Vectors x with E x xᵀ = Σ, shape (n, d), in the order of `jax.flatten_util.ravel_pytree`: for batches of
            S samples, batch gradient minus full gradient, times √S.
        model: A JAX function from the weights to the outputs that the loss takes; None if the loss takes the weights
            directly.
        gauss_newton: Whether to use the Gauss-Newton matrix instead of the Hessian; this option requires `model`. No
            node is negative if the loss is convex in the outputs.
        products: Number of nodes per vector, at most d.

    Raises:
        InputError: If weights or noise are not finite, shapes do not match, or there are more products than weights.

    References:
        G. H. Golub, G. Meurant, Matrices, moments and quadrature with applications (2010).

    Example:
        >>> import jax.numpy as jnp
        >>> quadratic = lambda w: jnp.sum(jnp.array([3.0, 1.0]) * w**2) / 2
        >>> found = noise_spectrum(quadratic, np.ones(2), np.array([[1.0, 2.0]]), products=2)
        >>> print(found.curvature.round(4), found.noise.round(4))
        [1. 3.] [4. 1.]
    """
    flat, product = curvature_product(loss, weights, model, gauss_newton=gauss_newton)
    count, size = require_axes("noise", noise, 2)
    require_finite_values("noise", noise, floating=True)
    require(
        size == len(flat),
        f"noise has rows of {size} entries, but there are {len(flat)} weights",
        argument="noise",
        value=size,
        remedy="give rows with one entry per weight",
    )
    require_lanczos(products, size)
    rows = np.asarray(noise, flat.dtype)
    with np.errstate(over="ignore"):
        require(
            np.isfinite(np.sum(rows**2)),
            f"noise has values as large as {np.abs(rows).max():.0e}, which overflow {rows.dtype} when squared",
            argument="noise",
            value=float(np.abs(rows).max()),
            remedy="rescale the loss and the noise to smaller values",
        )

    @jit
    def solved(point: Any, rows: Any) -> Any:
        return quadrature_nodes(lambda v: product(point, v), rows, products)

    curvature, variance = solved(flat, jnp.asarray(rows))
    return NoiseSpectrum(np.asarray(curvature).reshape(-1), np.asarray(variance).reshape(-1) / count)


def quadrature_nodes(product: Callable[[Any], Any], rows: Any, products: int) -> tuple[Any, Any]:
    """Compute Gauss quadrature nodes for each row, and weights that sum to its squared norm; shape (n, products)."""

    def nodes(row: Any) -> Any:
        power = jnp.sum(row**2)
        # A zero vector has zero weight, so any start vector can replace it.
        start = jnp.where(power > 0, row, jnp.ones_like(row))
        _, matrix = tridiagonal(product, start, products)
        values, vectors = jnp.linalg.eigh(matrix)
        return values, power * vectors[0] ** 2

    return jax.lax.map(nodes, rows)
