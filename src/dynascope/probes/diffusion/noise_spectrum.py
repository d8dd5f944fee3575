"""The curvature of a loss where the noise of its batches is, for networks of any size."""

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
    """Curvatures, each with the noise that stands for it.

    Attributes:
        curvature: Nodes ρ of all noise vectors, shape (n·products,).
        noise: Variance over samples of the gradient at each, which sum to its trace, shape (n·products,).
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
    """Nodes ρ_i and variances s_i with tr(Σ f(H)) ≃ Σ_i s_i f(ρ_i), Σ the mean of x xᵀ over noise vectors x.

    How far stationary SGD goes is such a trace, whatever the eigenvectors of Σ, so that `theory.noise` takes both as
    its modes: no eigenvector is needed, and a network of millions of weights has its spectrum from some hundred
    products with the Hessian. Each noise vector starts a Lanczos tridiagonalisation. The nodes of Gauss' quadrature are
    its eigenvalues, and their weights the squares of the first entries of its eigenvectors: exact for polynomials f of
    degree below twice the number of products.

    Cost: n·products products of about four gradients, memory for products·d numbers.

    Args:
        loss: A JAX function of the weights, or of the outputs of `model`, with one number.
        weights: A tree of JAX or NumPy arrays of floating-point numbers, d in all.
        noise: Vectors x with E x xᵀ = Σ, shape (n, d), in the order of `jax.flatten_util.ravel_pytree`: gradients of
            batches of S samples less that of all samples, times √S.
        model: A JAX function of the weights whose outputs the loss takes; None if it takes the weights.
        gauss_newton: Whether it is the Gauss-Newton matrix, which needs `model` and has no node below zero where the
            loss is convex in the outputs, and not the Hessian.
        products: Number of nodes of each vector, at most d.

    Raises:
        InputError: Weights or noise that are not finite, shapes that do not fit, or more products than weights.

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
        f"noise has {size} entries in a row, of {len(flat)} weights",
        argument="noise",
        value=size,
        remedy="give rows with one entry for each weight",
    )
    require_lanczos(products, size)
    rows = np.asarray(noise, flat.dtype)
    with np.errstate(over="ignore"):
        require(
            np.isfinite(np.sum(rows**2)),
            f"noise has values of {np.abs(rows).max():.0e}, whose squares leave the numbers of {rows.dtype}",
            argument="noise",
            value=float(np.abs(rows).max()),
            remedy="give the loss and the noise in larger units",
        )

    @jit
    def solved(point: Any, rows: Any) -> Any:
        return quadrature_nodes(lambda v: product(point, v), rows, products)

    curvature, variance = solved(flat, jnp.asarray(rows))
    return NoiseSpectrum(np.asarray(curvature).reshape(-1), np.asarray(variance).reshape(-1) / count)


def quadrature_nodes(product: Callable[[Any], Any], rows: Any, products: int) -> tuple[Any, Any]:
    """Nodes of Gauss' quadrature for each row, and their weights, which sum to its squared norm: (n, products) each."""

    def nodes(row: Any) -> Any:
        power = jnp.sum(row**2)
        # A vector of zeros has no direction, and no weight wherever it starts.
        start = jnp.where(power > 0, row, jnp.ones_like(row))
        _, matrix = tridiagonal(product, start, products)
        values, vectors = jnp.linalg.eigh(matrix)
        return values, power * vectors[0] ** 2

    return jax.lax.map(nodes, rows)
