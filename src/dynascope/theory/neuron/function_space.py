"""The neuron as a function: how its linear map moves, whatever the inputs.

The weights drop out. All that is left of them is their imbalance, which sets by how much each direction of the
gradient is taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Real

from dynascope.arguments import require
from dynascope.errors import InputError
from dynascope.theory.domain import covers
from dynascope.theory.modes.growth import real_array

__all__ = ["FunctionSpacePath", "function_space_flow", "preconditioner"]

_REFERENCE = "arXiv:2406.06158"
_MOST_STEPS = 2**16


class FunctionSpacePath(NamedTuple):
    """The linear map of a neuron over time.

    Attributes:
        coefficients: β(t), shape (..., times, d).
        loss: L = ½ E(y − xᵀβ)², shape (..., times).
        reversed: Whether the output weight has another sign than at the start, shape (..., times).
    """

    coefficients: Float[Array, "... d"]
    loss: Float[Array, ...]
    reversed: Bool[Array, ...]


class Chart(NamedTuple):
    """Constants of the coordinates (q, ξ) in which the flow has no singular point: β = (C g − D/g) ε q, g = exp ξ.

    Attributes:
        start: C − D.
        growing: C.
        shrinking: D, zero unless the imbalance is negative.
        unit: ε, the size of the direction at the start, so that q is of order one.
        rate: κ.
    """

    start: Array
    growing: Array
    shrinking: Array
    unit: Array
    rate: Array

    def coefficients(self, state: tuple[Array, Array]) -> Array:
        """β at a state (q, ξ)."""
        direction, log_growth = state
        return self.radius(log_growth)[..., None] * self.unit * direction

    def radius(self, log_growth: Array) -> Array:
        """C g − D/g, which has the sign of a(t)/a(0), without cancellation at small starts."""
        rest = jnp.where(log_growth >= 0, self.growing, self.shrinking)
        return self.start * jnp.exp(-jnp.abs(log_growth)) + 2 * rest * jnp.sinh(log_growth)

    def turning(self, log_growth: Array) -> Array:
        """τ = (√(C g) − √(D/g)) / (√(C g) + √(D/g))."""
        grown = jnp.sqrt(self.growing) * jnp.exp(log_growth / 2)
        shrunk = jnp.sqrt(self.shrinking) * jnp.exp(-log_growth / 2)
        return self.radius(log_growth) / (grown + shrunk) ** 2


@covers(
    network="single linear neuron f(x) = a wᵀx",
    data="any inputs, any targets",
    start="any imbalance; a nonzero map unless the imbalance is positive",
    gives="the matrix by which the gradient of the function is multiplied",
    reference=_REFERENCE,
)
def preconditioner(
    coefficients: Real[ArrayLike, "... d"],
    imbalance: Real[ArrayLike, ...],
    *,
    output_rate: Real[ArrayLike, ...] = 1.0,
    weight_rate: Real[ArrayLike, ...] = 1.0,
) -> Float[Array, "... d d"]:
    """The matrix M(β) of the flow in function space, dβ/dt = −M ∂L/∂β, of a single linear neuron f(x) = a wᵀx, β = a w.

    M = η_w a² I + η_a w wᵀ = (R + δ)/2 · I + (R − δ)/2 · β βᵀ/‖β‖², R = √(δ² + 4 η_a η_w ‖β‖²), where the imbalance
    δ = η_w a² − η_a ‖w‖² is conserved. The tangent kernel of inputs X (n, d) is X M Xᵀ. Upstream (δ ≫ 0) M is δ I and
    does not depend on β; downstream (δ ≪ 0) it is nearly |δ| β βᵀ/‖β‖², so that the direction of β moves slowly.

    The larger of the two parts is computed directly, and the smaller from their product η_a η_w ‖β‖².

    Args:
        coefficients: β, shape (..., d).
        imbalance: δ; it and the rates broadcast with the leading dimensions of β.
        output_rate: η_a > 0, learning rate of the output weight a.
        weight_rate: η_w > 0, learning rate of the weights w.

    Returns:
        M, shape (..., d, d), symmetric and positive semi-definite. Differentiable.

    Raises:
        InputError: A value that is not finite, a rate that is not positive, or β = 0 with δ ≤ 0, where M depends on
            the direction of w, which β does not tell. For values traced by JAX, which are not known, M is then NaN.

    References:
        Kunin, Raventós, Dominé, Chen, Klindt, Saxe, Ganguli, arXiv:2406.06158, section 3.

    Example:
        >>> preconditioner(np.array([1.0, 0.0]), 1.5).round(3).tolist()
        [[2.5, 0.0], [0.0, 2.0]]
        >>> preconditioner(np.array([1.0, 0.0]), -1.5).round(3).tolist()
        [[2.5, 0.0], [0.0, 0.5]]
    """
    beta, delta = require_vector("coefficients", coefficients), real_array("imbalance", imbalance)
    kappa = rate_of(output_rate, weight_rate)
    require_direction("coefficients", beta, delta)
    size, direction = polar(beta)
    output_part, weight_part = parts(size, delta, kappa)
    matrix = (
        output_part[..., None, None] * jnp.eye(beta.shape[-1], dtype=beta.dtype)
        + weight_part[..., None, None] * direction[..., :, None] * direction[..., None, :]
    )
    return jnp.where(((size == 0) & (delta <= 0))[..., None, None], jnp.nan, matrix)


@covers(
    network="single linear neuron f(x) = a wᵀx",
    data="any inputs, also of low rank, any targets",
    start="any imbalance; a nonzero map unless the imbalance is positive",
    gives="the linear map and the loss over time",
    reference=_REFERENCE,
)
def function_space_flow(
    times: Real[ArrayLike, ...],
    inputs: Real[ArrayLike, "n d"],
    targets: Real[ArrayLike, ...],
    coefficients: Real[ArrayLike, "... d"],
    imbalance: Real[ArrayLike, ...],
    *,
    output_rate: Real[ArrayLike, ...] = 1.0,
    weight_rate: Real[ArrayLike, ...] = 1.0,
) -> FunctionSpacePath:
    """The linear map β(t) of a single linear neuron f(x) = a wᵀx, from dβ/dt = −M(β) Xᵀ(Xβ − y)/n alone.

    M is `preconditioner`. With the gradient γ = Xᵀ(Xβ − y)/n and κ = √(η_a η_w) the equation is integrated in the
    form β = (C g − D/g) e, d ln g/dt = −2κ e·γ, de/dt = −κ τ (γ − e (e·γ)), which is regular everywhere. For δ ≥ 0,
    D = 0 and τ = 1. For δ < 0, ‖e‖ = 1 and τ = (√(C g) − √(D/g))/(√(C g) + √(D/g)); β may then pass through zero,
    where the output weight changes its sign, along the direction in which it came. An explicit solver of order 8
    takes steps of relative error 1e-11 (1e-5 in single precision).

    The paper sums the loss over samples; here it is the mean, L = ½ E(y − xᵀβ)², so that its time is t/n.

    Args:
        times: Gradient-flow times t ≥ 0, a scalar or shape (times,), in any order.
        inputs: X, shape (n, d), of any rank.
        targets: y, shape (n,) or (n, 1).
        coefficients: β(0), shape (..., d).
        imbalance: δ = η_w a² − η_a ‖w‖²; it and the rates broadcast with the leading dimensions of β(0).
        output_rate: η_a > 0.
        weight_rate: η_w > 0.

    Returns:
        `FunctionSpacePath` with β of shape (..., times, d). Compiled; differentiable in reverse mode.

    Raises:
        InputError: A value that is not finite, shapes that do not fit, t < 0, a rate that is not positive, β(0) = 0
            with δ ≤ 0, or times so long that they need more than 65536 steps (not checked on values traced by JAX).

    References:
        Kunin et al., arXiv:2406.06158, section 3; the regular form is ours.

    Example:
        >>> x, y = np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, -1.0, 1.0]]), np.array([1.0, 2.0])
        >>> times, start = np.array([0.0, 200.0]), np.array([0.15, -0.1, 0.2, 0.05])
        >>> with jax.enable_x64(True):
        ...     path = jax.device_get(function_space_flow(times, x, y, start, -0.05))
        >>> path.coefficients[1].round(6).tolist(), bool(path.loss[1] < 1e-12)
        ([-0.179373, 0.102393, -0.92302, 0.974587], True)
    """
    t = real_array("times", times, minimum=0)
    require(t.ndim <= 1, f"times has shape {t.shape}", argument="times", value=t.shape, remedy="give a row of times")
    x, y = samples(inputs, targets)
    beta, delta = require_vector("coefficients", coefficients, x.shape[1]), real_array("imbalance", imbalance)
    kappa = rate_of(output_rate, weight_rate)
    require_direction("coefficients", beta, delta)
    dtype = jnp.result_type(t, x, y, beta, delta, kappa)
    t, x, y, beta, delta, kappa = (value.astype(dtype) for value in (t, x, y, beta, delta, kappa))
    path = _flow(jnp.atleast_1d(t), x, y, beta, delta, kappa)
    if not isinstance(path.loss, Tracer) and not np.isfinite(path.loss).all():
        raise InputError(
            f"the flow until time {float(np.max(np.asarray(t))):.6g} needs more than {_MOST_STEPS} steps",
            argument="times",
            value=float(np.max(np.asarray(t))),
            remedy="ask for earlier times, or for the limit that interpolator gives",
        )
    return path if t.ndim else FunctionSpacePath(path.coefficients[..., 0, :], path.loss[..., 0], path.reversed[..., 0])


@jax.jit
def _flow(times: Array, x: Array, y: Array, beta: Array, delta: Array, kappa: Array) -> FunctionSpacePath:
    batch = jnp.broadcast_shapes(beta.shape[:-1], delta.shape, kappa.shape)
    order = jnp.argsort(times)
    ordered = times[order]

    def one(beta: Array, delta: Array, kappa: Array) -> FunctionSpacePath:
        chart, start = chart_at(x, y, *polar(beta), delta, kappa)
        solution = integrate(x, y, chart, start, ordered[-1], saveat=diffrax.SaveAt(ts=ordered))
        assert solution.ys is not None
        direction, log_growth = (values[jnp.argsort(order)] for values in solution.ys)
        map_over_time = chart.coefficients((direction, log_growth))
        loss = jnp.mean((map_over_time @ x.T - y) ** 2, axis=-1) / 2
        return FunctionSpacePath(map_over_time, loss, chart.radius(log_growth) < 0)

    flat = (
        jnp.broadcast_to(beta, (*batch, beta.shape[-1])).reshape(-1, beta.shape[-1]),
        *(jnp.broadcast_to(value, batch).ravel() for value in (delta, kappa)),
    )
    path = jax.vmap(one)(*flat)
    return FunctionSpacePath(*(values.reshape(*batch, *values.shape[1:]) for values in path))


def chart_at(
    x: Array, y: Array, size: Array, direction: Array, delta: Array, kappa: Array
) -> tuple[Chart, tuple[Array, Array]]:
    """The coordinates that suit a start at β = size · direction, and the start in them."""
    beta = size * direction
    output_part, weight_part = parts(size, delta, kappa)
    upstream = delta >= 0
    growing = jnp.where(upstream, output_part, (output_part + weight_part) / 2 + kappa * size) / kappa
    growing = jnp.where(upstream, growing, growing / 2)
    shrinking = jnp.where(upstream, 0, (delta / (4 * kappa)) ** 2 / growing)
    # In the lazy regime e = κβ/P is small; its unit is the largest that the map or its change can be.
    power = jnp.mean(jnp.sum(x**2, axis=1))
    reach = jnp.linalg.norm(x.T @ (x @ beta - y)) / (len(x) * jnp.where(power == 0, 1, power))
    unit = jnp.where(upstream, jnp.clip(jnp.maximum(size, reach) / growing, 1e-30, 1), 1.0)
    start = jnp.where(upstream, beta / growing, direction) / unit
    chart = Chart(jnp.where(upstream, growing, size), growing, shrinking, unit, kappa)
    return chart, (start, jnp.zeros_like(size))


def integrate(
    x: Array, y: Array, chart: Chart, start: tuple[Array, Array], duration: Array, **options: Any
) -> diffrax.Solution:
    """Follow the flow in the coordinates of a chart until the duration."""

    def velocity(t: Any, state: tuple[Array, Array], arguments: Any) -> tuple[Array, Array]:
        direction, log_growth = state
        gradient = x.T @ (x @ chart.coefficients(state) - y) / len(x)
        along = chart.unit * (direction @ gradient)
        turned = gradient / chart.unit - along * direction
        return -chart.rate * chart.turning(log_growth) * turned, -2 * chart.rate * along

    rounding = 1e2 * float(jnp.finfo(x.dtype).eps)
    return diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),
        diffrax.Dopri8(),
        jnp.zeros_like(duration),
        duration,
        None,
        start,
        stepsize_controller=diffrax.PIDController(rtol=max(1e-11, rounding), atol=max(1e-12, rounding / 10)),
        max_steps=_MOST_STEPS,
        throw=False,
        **options,
    )


def parts(size: Array, delta: Array, kappa: Array) -> tuple[Array, Array]:
    """η_w a² = (R + δ)/2 and η_a ‖w‖² = (R − δ)/2 for ‖β‖ = size, without cancellation."""
    large = (jnp.hypot(delta, 2 * kappa * size) + jnp.abs(delta)) / 2
    known = large > 0
    small = kappa * size * (kappa * size / jnp.where(known, large, 1))
    upstream = delta >= 0
    return jnp.where(upstream, large, small), jnp.where(upstream, small, large)


def polar(vector: Array) -> tuple[Array, Array]:
    """‖v‖ and v/‖v‖ along the last axis, without underflow; the direction of zero is zero."""
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(vector), axis=-1))
    nonzero = largest > 0
    scaled = vector / jnp.where(nonzero, largest, 1)[..., None]
    norm = jnp.sqrt(jnp.where(nonzero, jnp.sum(scaled**2, axis=-1), 1))
    return jnp.where(nonzero, norm, 0) * largest, scaled / norm[..., None]


def rate_of(output_rate: Real[ArrayLike, ...], weight_rate: Real[ArrayLike, ...]) -> Array:
    """κ = √(η_a η_w)."""
    return jnp.sqrt(real_array("output_rate", output_rate, above=0)) * jnp.sqrt(
        real_array("weight_rate", weight_rate, above=0)
    )


def samples(inputs: Real[ArrayLike, "n d"], targets: Real[ArrayLike, ...]) -> tuple[Array, Array]:
    """X of shape (n, d) and y of shape (n,), checked."""
    x, y = real_array("inputs", inputs), real_array("targets", targets)
    require(
        x.ndim == 2 and min(x.shape) > 0,
        f"inputs has shape {x.shape}",
        argument="inputs",
        value=x.shape,
        remedy="give one sample a row",
    )
    require(
        y.shape in ((len(x),), (len(x), 1)),
        f"targets has shape {y.shape} for {len(x)} samples",
        argument="targets",
        value=y.shape,
        remedy="give one number for each sample",
    )
    return x, y.reshape(-1)


def require_direction(name: str, beta: Array, delta: Array) -> None:
    """Raise `InputError` where the map is zero and the imbalance does not make up for its missing direction."""
    if isinstance(beta, Tracer) or isinstance(delta, Tracer):
        return
    lost = (np.asarray(beta) == 0).all(axis=-1) & (np.asarray(delta) <= 0)
    require(
        not lost.any(),
        f"{name} is zero and imbalance is not positive",
        argument=name,
        value=0.0,
        remedy="give a nonzero map, whose direction is that of the weights",
    )


def require_vector(name: str, value: Real[ArrayLike, "... d"], length: int | None = None) -> Array:
    """The value as an array of vectors, of that length if one is given, checked."""
    vector = real_array(name, value)
    require(
        vector.ndim >= 1 and vector.shape[-1] > 0 and length in (None, vector.shape[-1]),
        f"{name} has shape {vector.shape}",
        argument=name,
        value=vector.shape,
        remedy="give one number for each input" if length is None else f"give {length} numbers, one for each input",
    )
    return vector
