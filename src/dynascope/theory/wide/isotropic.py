"""Isotropic starts: two-layer networks whose function tells its own motion."""

from __future__ import annotations

from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.arguments import require
from dynascope.theory.domain import covers
from dynascope.theory.modes.growth import real_array
from dynascope.theory.wide.conserved import kronecker_sum

__all__ = ["MapPath", "integrated", "isotropic_flow", "isotropic_preconditioner", "rank", "sampled"]

_MOST_STEPS = 2**16
_COVERED: dict[str, Any] = {
    "network": "two-layer linear",
    "start": "isotropic: Δ = δ I with δ = 0, or δ > 0 and as many neurons as outputs, or δ < 0 and as many as inputs",
    "reference": "arXiv:2406.06158",
}


class MapPath(NamedTuple):
    """A linear map over time.

    Attributes:
        coefficients: The map, shape (times, inputs, outputs).
        loss: L = ½ E‖xβ − y‖², shape (times,).
    """

    coefficients: Float[Array, "times inputs outputs"]
    loss: Float[Array, " times"]


@covers(data="any", gives="the matrix of the flow in function space, from the map alone", **_COVERED)
def isotropic_preconditioner(
    coefficients: ArrayLike, imbalance: float, width: int, *, rate: float = 1.0
) -> Float[Array, "*members dc dc"]:
    """M(β) = √(κ² βᵀβ + δ²/4) ⊗ I + I ⊗ √(κ² ββᵀ + δ²/4) of the flow vec(β)' = −M vec(∂L/∂β), β = W₁ W₂.

    For Δ = η₁ W₂W₂ᵀ − η₂ W₁ᵀW₁ = δ I the two parts of `preconditioner_matrix` are these roots ± δ/2, and the δ/2
    cancel: networks with a large first or a large second layer have the same dynamics in function space. The roots
    are taken through the singular values of β, so that no digits are lost.

    Args:
        coefficients: β, shape (..., d, c).
        imbalance: δ.
        width: h, the number of hidden neurons.
        rate: κ = √(η₁ η₂) > 0.

    Returns:
        M; row o·d + i belongs to β[i, o].

    Raises:
        InputError: A δ and a width for which the function does not tell M: δ > 0 and h ≠ c, or δ < 0 and h ≠ d; or
            a map of a rank above h; or values that are not
            finite.

    References:
        Kunin et al., arXiv:2406.06158, section 4; the domain is derived anew.

    Example:
        >>> isotropic_preconditioner([[3.0], [0.0]], 8.0, 1).tolist()
        [[10.0, 0.0], [0.0, 9.0]]
    """
    beta, delta, kappa, kept = _checked(coefficients, imbalance, width, rate)
    return kronecker_sum(*_roots(beta, delta, kappa, kept))


@covers(data="any inputs and targets", gives="the function over time", **_COVERED)
def isotropic_flow(
    times: ArrayLike,
    inputs: ArrayLike,
    targets: ArrayLike,
    coefficients: ArrayLike,
    imbalance: float,
    width: int,
    *,
    rate: float = 1.0,
) -> MapPath:
    """Follow β' = −(G √(κ² βᵀβ + δ²/4) + √(κ² ββᵀ + δ²/4) G), G = E[x xᵀ] β − E[x yᵀ], integrated to 1e-10.

    For whitened inputs `balanced.product` is a closed form of the same, for more widths.

    Args:
        times: Gradient-flow times t ≥ 0, increasing.
        inputs: X, shape (n, d).
        targets: Y, shape (n, c).
        coefficients: β(0) = W₁ W₂, shape (d, c); not zero if δ = 0, which is a resting point.
        imbalance: δ, of Δ = η₁ W₂W₂ᵀ − η₂ W₁ᵀW₁ = δ I.
        width: h, the number of hidden neurons.
        rate: κ = √(η₁ η₂) > 0.

    Raises:
        InputError: As `isotropic_preconditioner`; shapes that do not fit; times that do not increase; β(0) = 0 = δ; or
            an equation too stiff to be integrated.

    References:
        Kunin et al., arXiv:2406.06158, section 4.

    Example:
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     path = isotropic_flow(np.array([0.0, 1.0, 20.0]), np.ones((1, 1)), np.ones((1, 1)), [[0.5]], 2.0, 1)
        ...     print(path.coefficients.ravel().round(4))
        [0.5    0.9624 1.    ]
    """
    beta, delta, kappa, kept = _checked(coefficients, imbalance, width, rate)
    require(
        beta.ndim == 2,
        f"coefficients has shape {beta.shape}",
        argument="coefficients",
        value=beta.shape,
        remedy="give one map",
    )
    moments, times = sampled(inputs, targets, times, beta.shape)
    require(
        isinstance(beta, Tracer) or bool(jnp.any(beta != 0)) or bool(delta != 0),
        "the map is zero and the layers are balanced, where nothing moves",
        argument="coefficients",
        value=0.0,
        remedy="start from another map, or with an imbalance",
    )
    # Below |δ|/2κ a map moves as in linear regression, and needs no more digits than that.
    reach = jnp.minimum(jnp.abs(delta) / (2 * kappa), jnp.sqrt(jnp.mean(moments[1] ** 2)))
    size = jnp.maximum(jnp.sqrt(jnp.mean(beta**2)), reach)
    return integrated(_velocity, beta, times, (*moments, delta, kappa, kept), size)


def _velocity(t: Any, beta: Array, arguments: tuple[Array, ...]) -> Array:
    inner, cross, _, delta, kappa, kept = arguments
    gradient = inner @ beta - cross
    outer_root, inner_root = _roots(beta, delta, kappa, kept)
    return -(gradient @ outer_root + inner_root @ gradient)


def _roots(beta: Array, delta: Array, kappa: Array, kept: Array) -> tuple[Array, Array]:
    """√(κ² βᵀβ + δ²/4) and √(κ² ββᵀ + δ²/4)."""
    left, sizes, right = jnp.linalg.svd(beta, full_matrices=True)
    sizes = jnp.where(jnp.arange(sizes.shape[-1]) < kept[..., None], sizes, 0)
    rest = jnp.abs(delta) / 2

    def root(vectors: Array) -> Array:
        values = jnp.full(vectors.shape[:-1], rest, beta.dtype)
        values = values.at[..., : sizes.shape[-1]].set(jnp.hypot(kappa * sizes, rest))
        return (vectors * values[..., None, :]) @ jnp.swapaxes(vectors, -1, -2)

    return root(jnp.swapaxes(right, -1, -2)), root(left)


def _checked(coefficients: ArrayLike, imbalance: float, width: int, rate: float) -> tuple[Array, Array, Array, Array]:
    """β, δ, κ, and how many singular values of β there are: rounding must not let others grow in balance."""
    beta, delta = real_array("coefficients", coefficients), real_array("imbalance", imbalance)
    kappa = real_array("rate", rate, above=0)
    require(
        beta.ndim >= 2,
        f"coefficients has shape {beta.shape}",
        argument="coefficients",
        value=beta.shape,
        remedy="give a matrix (inputs, outputs)",
    )
    require(
        width == int(width) and width >= 1,
        f"width is {width}",
        argument="width",
        value=width,
        remedy="choose one or more",
    )
    inputs, outputs = beta.shape[-2:]
    kept = jnp.full(beta.shape[:-2], min(inputs, outputs))
    if not isinstance(delta, Tracer) and delta != 0:
        wanted = outputs if delta > 0 else inputs
        require(
            width == wanted,
            f"with an imbalance of {float(delta):g} the function tells its own motion for {wanted} hidden neurons only",
            argument="width",
            value=width,
            remedy="use balanced.product where inputs are whitened, or integrate the weights",
        )
    elif not isinstance(delta, Tracer):
        kept = rank(beta)
        require(
            isinstance(kept, Tracer) or int(jnp.max(kept, initial=0)) <= width,
            f"the map has a rank above {width}, the number of hidden neurons",
            argument="coefficients",
            value=width,
            remedy="give a map that layers of that width can have",
        )
    return beta, delta.astype(beta.dtype), kappa.astype(beta.dtype), kept


def rank(matrix: Array) -> Array:
    """The number of singular values above rounding."""
    sizes = jnp.linalg.svd(matrix, compute_uv=False)
    rounding = max(matrix.shape[-2:]) * jnp.finfo(matrix.dtype).eps
    return jnp.sum(sizes > rounding * sizes[..., :1], axis=-1)


def sampled(
    inputs: ArrayLike, targets: ArrayLike, times: ArrayLike, shape: tuple[int, ...]
) -> tuple[tuple[Array, Array, Array], Array]:
    """E[x xᵀ], E[x yᵀ] and E‖y‖² of samples, and the times, checked."""
    x, y, t = real_array("inputs", inputs), real_array("targets", targets), real_array("times", times, minimum=0)
    for name, array, columns in (("inputs", x, shape[0]), ("targets", y, shape[1])):
        require(
            array.ndim == 2 and len(array) == len(x) and array.shape[1] == columns,
            f"{name} has shape {array.shape}",
            argument=name,
            value=array.shape,
            remedy=f"give as many rows as samples and {columns} columns",
        )
    increasing = t.ndim == 1 and t.size > 0 and (isinstance(t, Tracer) or bool(jnp.all(jnp.diff(t) > 0)))
    require(increasing, "times do not increase", argument="times", value=jnp.shape(t), remedy="give an increasing list")
    return (x.T @ x / len(x), x.T @ y / len(x), jnp.sum(y**2) / len(x)), t


def integrated(velocity: Any, start: Array, times: Array, arguments: tuple[Array, ...], size: Array) -> MapPath:
    """The solution at the times, and its loss.

    Args:
        velocity: Function of the time, the map and the arguments.
        start: The map at time zero.
        times: Increasing.
        arguments: E[x xᵀ], E[x yᵀ], E‖y‖², and what else the velocity needs.
        size: Entries of the map below it may have a larger relative error.
    """
    path, finished = _integrate(velocity, start, times, arguments, size)
    require(
        isinstance(finished, Tracer) or bool(finished),
        f"the equation is too stiff to be integrated to time {np.asarray(times)[-1]:g}",
        argument="times",
        value=float(np.asarray(times)[-1]),
        remedy="choose earlier times",
    )
    inner, cross, power, *_ = arguments
    explained = jnp.einsum("tic,tic->t", path, inner @ path - 2 * cross)
    return MapPath(path, jnp.maximum(explained + power, 0) / 2)


@eqx.filter_jit
def _integrate(
    velocity: Any, start: Array, times: Array, arguments: tuple[Array, ...], size: Array
) -> tuple[Array, Array]:
    tolerance = 1e-10 if start.dtype == jnp.float64 else 1e-5
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),
        diffrax.Tsit5(),
        0.0,
        times[-1],
        None,
        start,
        arguments,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance * size),
        max_steps=_MOST_STEPS,
        throw=False,
    )
    assert solution.ys is not None
    return solution.ys, solution.result == diffrax.RESULTS.successful
