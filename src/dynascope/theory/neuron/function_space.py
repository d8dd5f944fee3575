"""Gradient flow of a single linear neuron in function space, for any inputs.

The linear map obeys a closed differential equation. The weights enter only through their imbalance, which determines
the preconditioner of the gradient.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, TypeAlias

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import IsFinite
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import ONE_OUTPUT
from dynascope.theory.domain import covers
from dynascope.theory.integration_steps import MOST_STEPS
from dynascope.theory.kernels import broadcast_known, nan_outside
from dynascope.theory.layer_rates import LayerRates, clock_of, positive_rates, rate_shapes
from dynascope.theory.neuron.coordinates import chart_at, integrate, map_members, parts, polar
from dynascope.theory.neuron.state import Vector
from dynascope.theory.units import in_units
from dynascope.validation import is_traced, require, require_broadcast, require_shape
from dynascope.validation.bounded import FiniteArray, NonNegativeArray

__all__ = [
    "FunctionSpacePath",
    "Inputs",
    "MapStart",
    "covers_map",
    "function_space_flow",
    "preconditioner",
    "preconditioner_of",
    "samples",
]


Inputs: TypeAlias = IsFinite[Real[ArrayLike, "n d"]]


covers_map = functools.partial(
    covers,
    network="single linear neuron f(x) = a wᵀx",
    start="any imbalance; a nonzero map unless the imbalance is positive",
    reference="arXiv:2406.06158",
    assumes=(ONE_OUTPUT,),
)


class FunctionSpacePath(NamedTuple):
    """Trajectory of a neuron's linear map.

    Attributes:
        coefficients: β(t), shape (..., times, d).
        loss: L = ½ E(y − xᵀβ)², shape (..., times).
        reversed: Whether the output weight has changed its sign since t = 0, shape (..., times).
    """

    coefficients: Float[AnyArray, "... d"]
    loss: Float[AnyArray, ...]
    reversed: Bool[AnyArray, ...]

    __repr__ = short_repr


@covers_map(data="any inputs, any targets", gives="the preconditioner of the gradient in function space")
def preconditioner(
    coefficients: Vector,
    imbalance: FiniteArray,
    *,
    rates: LayerRates = LayerRates(),
) -> Float[AnyArray, "... d d"]:
    """Compute the preconditioner M(β) of the function-space flow of a single linear neuron f(x) = a wᵀx, β = a w.

    dβ/dt = −M ∂L/∂β, M = η_w a² I + η_a w wᵀ = (R + δ)/2 · I + (R − δ)/2 · β βᵀ/‖β‖², R = √(δ² + 4 η_a η_w ‖β‖²)

    The imbalance δ = η_w a² − η_a ‖w‖² is conserved. The tangent kernel of inputs X (n, d) is X M Xᵀ. If δ ≫ 0
    (upstream), M is nearly δ I and does not depend on β. If δ ≪ 0 (downstream), M is nearly |δ| β βᵀ/‖β‖², so the
    direction of β changes slowly.

    The larger of η_w a² and η_a ‖w‖² is computed directly, and the smaller from their product η_a η_w ‖β‖².

    Args:
        coefficients: β, shape (..., d).
        imbalance: δ; the imbalance and the rates broadcast with the leading dimensions of β.
        rates: Learning rates η_w of the weights w and η_a of the output weight a.

    Returns:
        M, shape (..., d, d), symmetric and positive semi-definite. The function is differentiable.

    Raises:
        InputError: If a value is not finite, a rate is not positive, or β = 0 with δ ≤ 0. In the last case, M depends
            on the direction of w, which β = 0 does not determine. Inside `jit`, values outside this domain give NaN.

    References:
        Kunin, Raventós, Dominé, Chen, Klindt, Saxe, Ganguli, arXiv:2406.06158, section 3.

    Example:
        >>> preconditioner(np.array([1.0, 0.0]), 1.5).round(3).tolist()
        [[2.5, 0.0], [0.0, 2.0]]
        >>> preconditioner(np.array([1.0, 0.0]), -1.5).round(3).tolist()
        [[2.5, 0.0], [0.0, 0.5]]
    """
    return _preconditioner(MapStart.checked("coefficients", coefficients, imbalance, rates))


@covers_map(
    data="any inputs, including low rank, any targets", gives="the linear map of the network and the loss over time"
)
@in_units(
    "inputs",
    "targets|coefficients",
    "rates.second",
    times="t",
    inputs="x",
    targets="y",
    coefficients="y x^-1",
    imbalance="x^-2 t^-1",
    rates={"first": "x^-1 y^-1 t^-1", "second": "x^-1 y^-1 t^-1"},
    gives={"coefficients": "y x^-1", "loss": "y^2"},
)
def function_space_flow(
    times: NonNegativeArray,
    inputs: Inputs,
    targets: FiniteArray,
    coefficients: Vector,
    imbalance: FiniteArray,
    *,
    rates: LayerRates = LayerRates(),
) -> FunctionSpacePath:
    """Integrate the linear map β(t) of a single linear neuron f(x) = a wᵀx in function space.

    dβ/dt = −M(β) Xᵀ(Xβ − y)/n

    M is `preconditioner`. With the gradient γ = Xᵀ(Xβ − y)/n and κ = √(η_a η_w), the equation is integrated in the form
    β = (C g − D/g) e, d ln g/dt = −2κ e·γ, de/dt = −κ τ (γ − e (e·γ)), which is regular everywhere. For δ ≥ 0, D = 0
    and τ = 1. For δ < 0, ‖e‖ = 1 and τ = (√(C g) − √(D/g))/(√(C g) + √(D/g)). In this case, β may pass through zero
    along a straight line, where the output weight changes its sign. An explicit solver of order 8 keeps the relative
    error per step below 1e-11 (1e-5 in single precision).

    The paper sums the loss over samples. Here the loss is the mean, L = ½ E(y − xᵀβ)², so the paper's time is t/n.

    Args:
        times: Gradient-flow times t ≥ 0, a scalar or an array of shape (times,), in any order.
        inputs: X, shape (n, d), of any rank.
        targets: y, shape (n,) or (n, 1).
        coefficients: β(0), shape (..., d).
        imbalance: δ = η_w a² − η_a ‖w‖²; the imbalance and the rates broadcast with the leading dimensions of β(0).
        rates: Learning rates η_w of the weights and η_a of the output weight.

    Returns:
        The trajectory, with β of shape (..., times, d). The function is compiled, and differentiable in reverse mode.

    Raises:
        InputError: If a value is not finite, shapes do not match, t < 0, a rate is not positive, β(0) = 0 with δ ≤ 0,
            or the times require more than 65536 integration steps. Inside `jit`, values outside this domain give NaN.

    References:
        Kunin et al., arXiv:2406.06158, section 3; the regular form is derived here.

    Example:
        >>> x, y = np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, -1.0, 1.0]]), np.array([1.0, 2.0])
        >>> times, start = np.array([0.0, 200.0]), np.array([0.15, -0.1, 0.2, 0.05])
        >>> with jax.enable_x64(True):
        ...     path = jax.device_get(function_space_flow(times, x, y, start, -0.05))
        >>> path.coefficients[1].round(6).tolist(), bool(path.loss[1] < 1e-12)
        ([-0.179373, 0.102393, -0.92302, 0.974587], True)
    """
    x, y = samples(inputs, targets)
    start = MapStart.checked("coefficients", coefficients, imbalance, rates, length=x.shape[1])
    require_shape("times", times, (), (None,))
    require(np.size(times) > 0, "times is empty", argument="times", value=0, remedy="give at least one time")
    path = _flow(times, x, y, start)
    if not is_traced(path.loss):
        last = float(np.max(times, initial=0.0))
        require(
            np.isfinite(path.loss).all(),
            f"times extends to {last:.6g}, which requires more than {MOST_STEPS} integration steps",
            argument="times",
            value=last,
            remedy="choose earlier times, or compute the limit with the function interpolator",
        )
    return path


class MapStart(NamedTuple):
    """The initial linear map and the imbalance of its weights, or a batch of them; concrete values remain NumPy arrays.

    Attributes:
        coefficients: β, shape (..., d).
        imbalance: δ; the imbalance and the rates broadcast with the leading dimensions of β.
        rates: Learning rates η_w of the first layer and η_a of the second.
    """

    coefficients: Float[Array, "... d"]
    imbalance: Float[Array, ...]
    rates: LayerRates

    @classmethod
    def checked(
        cls, name: str, beta: Any, delta: Any, rates: LayerRates, *, length: Any = None, **before: tuple[int, ...]
    ) -> MapStart:
        """Check that a map determines the direction of the weights; `name` is the name of its argument."""
        require_shape(name, beta, (..., length))
        shapes = {**before, name: beta.shape[:-1], "imbalance": getattr(delta, "shape", ())}
        require_broadcast(**shapes, **rate_shapes(rates))
        if not is_traced(beta) and not is_traced(delta):
            require(
                not np.any((np.asarray(beta) == 0).all(axis=-1) & (np.asarray(delta) <= 0)),
                f"{name} is zero and imbalance is not positive",
                argument=name,
                value=0.0,
                remedy=f"give nonzero {name}, to determine the direction of the weights",
            )
        delta, *known = broadcast_known(delta, *rates)
        return cls(beta, delta, LayerRates._make(known))

    @property
    def valid(self) -> Bool[Array, ...]:
        """Whether all values are finite, the rates positive and the direction of the weights determined."""
        finite = jnp.all(jnp.isfinite(self.coefficients), axis=-1) & jnp.isfinite(self.imbalance)
        return finite & positive_rates(self.rates) & (jnp.any(self.coefficients != 0, axis=-1) | (self.imbalance > 0))


def samples(inputs: Any, targets: Any) -> tuple[Any, Any]:
    """Check X, of shape (n, d), and y, and return y with shape (n,).

    Targets of shape (n,) and (n, 1) thus share one compiled program.
    """
    require_shape("inputs", inputs, (..., None, None))
    require(
        np.shape(targets) in ((len(inputs),), (len(inputs), 1)),
        f"targets has shape {np.shape(targets)}, but inputs has length {len(inputs)}",
        argument="targets",
        value=np.shape(targets),
        remedy="give one target per sample",
    )
    return inputs, targets.reshape(-1)


def preconditioner_of(beta: Array, delta: Array, kappa: Array) -> Array:
    """Return M of a nonzero map."""
    size, direction = polar(beta)
    output_part, weight_part = parts(size, delta, kappa)
    return (
        output_part[..., None, None] * jnp.eye(beta.shape[-1], dtype=beta.dtype)
        + weight_part[..., None, None] * direction[..., :, None] * direction[..., None, :]
    )


@float64_jit
def _preconditioner(start: MapStart) -> Array:
    matrix = preconditioner_of(start.coefficients, start.imbalance, clock_of(start.rates))
    return nan_outside(start.valid, matrix, leading=True)


@float64_jit
def _flow(times: Array, x: Array, y: Array, start: MapStart) -> FunctionSpacePath:
    timely = jnp.isfinite(times) & (times >= 0)
    valid = start.valid & jnp.all(jnp.isfinite(x)) & jnp.all(jnp.isfinite(y))
    dtype = jnp.result_type(times, x, y, *jax.tree.leaves(start))
    t = jnp.where(timely, times, 0).astype(dtype).reshape(-1)
    x, y, beta, delta, kappa = (
        value.astype(dtype) for value in (x, y, start.coefficients, start.imbalance, clock_of(start.rates))
    )
    batch = valid.shape
    order = jnp.argsort(t)

    def one(beta: Array, delta: Array, kappa: Array, valid: Array) -> FunctionSpacePath:
        ordered = jnp.where(valid, t[order], 0)
        chart, start = chart_at(x, y, beta, *polar(beta), delta, kappa)
        solution = integrate(x, y, chart, start, ordered[-1], saveat=diffrax.SaveAt(ts=ordered))
        assert solution.ys is not None
        direction, log_growth = (values[jnp.argsort(order)] for values in solution.ys)
        map_over_time = chart.coefficients((direction, log_growth))
        loss = jnp.mean((map_over_time @ x.T - y) ** 2, axis=-1) / 2
        return FunctionSpacePath(map_over_time, loss, chart.radius(log_growth) < 0)

    flat = (
        jnp.broadcast_to(beta, (*batch, beta.shape[-1])).reshape(-1, beta.shape[-1]),
        *(jnp.broadcast_to(value, batch).ravel() for value in (delta, kappa, valid)),
    )
    path = jax.tree.map(lambda values: values.reshape(*batch, *values.shape[1:]), map_members(one, *flat))
    path = nan_outside(valid[..., None] & timely.reshape(-1) & jnp.isfinite(path.loss), path, leading=True)
    single = times.ndim == 0
    return jax.tree.map(lambda values: jnp.squeeze(values, axis=len(batch)), path) if single else path
