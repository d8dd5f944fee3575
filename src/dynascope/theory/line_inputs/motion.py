"""Exact trajectory, time scale and limit of a two-layer linear network on inputs along a line."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.line_inputs.decomposition import (
    LOSS,
    STANDARDS,
    UNITS,
    Decomposition,
    LineStart,
    decompose,
    end_of_growth,
    root,
)
from dynascope.theory.line_inputs.setting import LineData, LineNetwork, covers_line
from dynascope.theory.scalar_networks.growth import GrowthFactor
from dynascope.theory.units import in_units
from dynascope.validation import require_shape
from dynascope.validation.bounded import NonNegativeArray, PositiveArray

__all__ = ["LineLimit", "LineTrajectory", "TimeScale", "line_limit", "line_trajectory", "time_scale"]


class LineTrajectory(NamedTuple):
    """Trajectory of a two-layer linear network on inputs along a line.

    Attributes:
        first: W(t), shape (..., times, d, h).
        second: u(t), shape (..., times, h).
        strength: θ(t) = γ Σ uᵢ (n·wᵢ), the slope of the network along the line, shape (..., times).
        residual: S − θ, computed without cancellation, shape (..., times).
        loss: p E(f − y)² = p (E[a²] (S − θ)² + E[(y − S a)²]), shape (..., times).
    """

    first: Float[AnyArray, "... inputs width"]
    second: Float[AnyArray, "... width"]
    strength: Float[AnyArray, ...]
    residual: Float[AnyArray, ...]
    loss: Float[AnyArray, ...]

    __repr__ = short_repr


class TimeScale(NamedTuple):
    """Time constant t_c of the late approach to the limit, and the rates that determine it, each of shape (...).

    1/t_c² = target_rate² + initial_rate²

    Attributes:
        time: t_c; ∞ if both rates vanish and the approach is a power law.
        target_rate: k |S|, the contribution of the target.
        initial_rate: 2 k γ √(PQ), the contribution of the initial weights; the larger of the two in the kernel regime.
    """

    time: Float[AnyArray, ...]
    target_rate: Float[AnyArray, ...]
    initial_rate: Float[AnyArray, ...]

    __repr__ = short_repr

    @property
    def status(self) -> np.ndarray:
        """Type of approach to the limit: "exponential", or "power law" if t_c = ∞."""
        return np.where(np.isfinite(np.asarray(self.time)), "exponential", "power law")


class LineLimit(NamedTuple):
    """Limit of the network as t → ∞, in NumPy arrays of shape (...) unless stated otherwise.

    Attributes:
        first: W, shape (..., d, h).
        second: u, shape (..., h).
        strength: θ, the slope of the network along the line.
        loss: p E(f − y)².
        status: "converges" (to θ = S, exponentially), "power law" (to θ = S = 0, as 1/t), "saddle" (trapped at
            θ = 0 ≠ S) or "static" (the initial weights are a fixed point).
    """

    first: Float[np.ndarray, "... inputs width"]
    second: Float[np.ndarray, "... width"]
    strength: Float[np.ndarray, ...]
    loss: Float[np.ndarray, ...]
    status: np.ndarray

    __repr__ = short_repr


@covers_line(gives="the weights, the slope of the function and the loss at any time")
@in_units(
    *STANDARDS,
    **UNITS,
    times="t",
    gives={"first": "w", "second": "u", "strength": "g w u", "residual": "g w u", "loss": LOSS},
)
def line_trajectory(
    network: LineNetwork,
    data: LineData,
    times: NonNegativeArray,
    *,
    prefactor: PositiveArray = 0.5,
) -> LineTrajectory:
    """Compute the exact gradient flow of f(x) = γ x W u on inputs x = a n, from any initial weights.

    With c = (η₁/η₂)^¼, v = n·W, p, q = ½(c u ± v/c) at t = 0, P = Σ pᵢ² and Q = Σ qᵢ², a single number g determines all
    weights:

        u(t) = (p √g + q/√g)/c,  v(t) = c (p √g − q/√g),  W(t) = W₀ + n (v(t) − v₀),  θ = γ (P g − Q/g),

    where g(0) = 1 and dg/dt = k (S g − γP g² + γQ), k = 4 p √(η₁ η₂) γ E[a²] (see `growth_factor`). The components of W
    orthogonal to the line are constant, but the output for inputs off the line changes with u. The quantities
    uᵢ² √(η₁/η₂) − vᵢ² √(η₂/η₁) = 4 pᵢ qᵢ are conserved.

    The function can be compiled and differentiated. For a batch of networks, add leading axes to both layers or to the
    scalar arguments.

    Args:
        network: Both initial layers W₀ and u₀, the multiplier γ and the learning rates η₁ and η₂.
        data: Direction, power and target slope S of the data, from `line_data`.
        times: Gradient-flow times t ≥ 0, a scalar or an array of shape (times,).
        prefactor: p > 0 in the loss p E(f − y)², shape (...). The default ½ is the convention of this library.

    Returns:
        The trajectory. The axis of the times follows the leading axes and is absent for a scalar time.

    Raises:
        InputError: If shapes do not match, a value is not finite, t < 0, ‖n‖ ≠ 1, E[a²] ≤ 0, or γ, a rate or the
            prefactor is not positive. Inside `jit`, values outside this domain give NaN.

    References:
        Xu & Ziyin, arXiv:2401.07085, Theorem 1 and Proposition 1.

    Example:
        >>> import jax
        >>> network = LineNetwork(np.array([[0.3, -0.5, 0.2], [0.1, 0.2, 0.4]]), np.array([0.4, -0.2, 0.1]))
        >>> with jax.enable_x64(True):
        ...     run = line_trajectory(network, LineData(np.array([0.6, 0.8]), 2.0, 0.6), np.arange(2.0))
        ...     print(run.strength.round(6), run.second[1].round(6))
        [0.176    0.517475] [ 0.568078 -0.28883   0.32166 ]
    """
    start = LineStart.checked(network, data, prefactor)
    require_shape("times", times, (), (None,))
    return _trajectory(start, times)


@covers_line(gives="the time constant of learning, from the target and the initial weights")
@in_units(*STANDARDS, **UNITS, gives={"time": "t", "target_rate": "t^-1", "initial_rate": "t^-1"}, infinite=True)
def time_scale(
    network: LineNetwork,
    data: LineData,
    *,
    prefactor: PositiveArray = 0.5,
) -> TimeScale:
    """Compute the time constant t_c of learning under gradient flow.

    1/t_c² = (4 p E[a²] γ)² η₁ η₂ (S² + 4 γ² P Q)

    At late times, the distance to the limit decays as exp(−t/t_c). S² is the contribution of the target, and 4 γ² P Q
    is the contribution of the initial weights; P and Q are defined in `line_trajectory`. A network that is initialised
    near a saddle may stay there for many time constants.

    Args:
        network: Both initial layers, the multiplier γ and the learning rates η₁ and η₂.
        data: Direction, power and target slope of the data, from `line_data`.
        prefactor: p > 0 in the loss p E(f − y)².

    Returns:
        The time constant and both rates; `status` is "power law" if t_c is infinite. The function can be compiled.

    Raises:
        InputError: As for `line_trajectory`. Inside `jit`, values outside this domain give NaN.

    References:
        Xu & Ziyin, arXiv:2401.07085, equation 17.

    Example:
        >>> network = LineNetwork(np.array([[1.0, 0.0]]), np.array([0.0, 1.0]))
        >>> scale = time_scale(network, LineData(np.ones(1), 1.0, 2.0))
        >>> tuple(round(float(each), 6) for each in scale)
        (0.223607, 4.0, 2.0)
    """
    return _time_scale(LineStart.checked(network, data, prefactor))


@covers_line(gives="the end of training, and whether it is a saddle")
@in_units(*STANDARDS, **UNITS, gives={"first": "w", "second": "u", "strength": "g w u", "loss": LOSS})
def line_limit(
    network: LineNetwork,
    data: LineData,
    *,
    prefactor: PositiveArray = 0.5,
) -> LineLimit:
    """Compute the limit of `line_trajectory` as t → ∞.

    p → p √g∞, q → q/√g∞, g∞ = (S + √(S² + 4γ²PQ))/(2γP)

    Layers that are exactly opposite (P = 0) with S > 0, or exactly parallel (Q = 0) with S < 0, are trapped in the
    saddle f = 0. Layers that are opposite or parallel up to rounding count as exactly opposite or parallel; in
    training, such layers stay on a long plateau.

    Args:
        network: Both initial layers, the multiplier γ and the learning rates η₁ and η₂.
        data: Direction, power and target slope of the data, from `line_data`.
        prefactor: p > 0 in the loss p E(f − y)².

    Returns:
        The limit and its `status`.

    Raises:
        InputError: As for `line_trajectory`, or if JAX traces a value.

    References:
        Xu & Ziyin, arXiv:2401.07085, equations 15 and 16, Proposition 1.

    Example:
        >>> data = LineData(np.ones(1), 1.0, 1.0)
        >>> networks = LineNetwork(np.array([[[1.0]], [[0.5]], [[-1.0]]]), np.ones((3, 1)))
        >>> line_limit(networks, data).status.tolist()
        ['static', 'converges', 'saddle']
    """
    start = LineStart.checked(network, data, prefactor)
    start.require_known()
    initial, initial_strength, drive = _initial(start)
    known = Decomposition._make(map(np.asarray, initial))
    end = end_of_growth(known, initial_strength, drive)
    strength = end.strength.astype(known.unit.dtype)
    residual = np.where(end.status == "converges", 0, known.target - strength)
    final = GrowthFactor._make((end.log_growth.astype(known.unit.dtype), strength, residual))
    final_first, final_second, loss = map(np.asarray, _final(start, initial, final))
    return LineLimit(final_first, final_second, strength, loss, end.status)


@float64_jit
def _trajectory(start: LineStart, times: Array) -> LineTrajectory:
    initial = decompose(start)
    growth = initial.growth(times)
    first, second = _weights(initial, growth)
    return LineTrajectory(first, second, growth.strength, growth.residual, start.loss(growth.residual))


@float64_jit
def _initial(start: LineStart) -> tuple[Decomposition, Array, Array]:
    initial = decompose(start)
    return initial, initial.initial_strength(), initial.drive()


@float64_jit
def _final(start: LineStart, initial: Decomposition, final: GrowthFactor) -> tuple[Array, AnyArray, Array]:
    return *_weights(initial, final), start.loss(final.residual)


def _weights(start: Decomposition, growth: GrowthFactor) -> tuple[Array, AnyArray]:
    second, along = start.layers(growth)
    extra = second.ndim - start.growing.ndim
    initial_along = jnp.einsum("d,...dh->...h", start.direction, start.first)
    frozen = start.first - start.direction[:, None] * initial_along[..., None, :]
    at = (..., *(None,) * extra, slice(None), slice(None))
    return frozen[at] + start.direction[:, None] * along[..., None, :], second


@float64_jit
def _time_scale(known: LineStart) -> TimeScale:
    start = decompose(known)
    target_rate = start.rate * jnp.abs(start.target)
    initial_rate = 2 * start.rate * start.multiplier * root(start.growing_power * start.shrinking_power) * start.unit**2
    both = jnp.maximum(target_rate, initial_rate)
    size = jnp.where(both == 0, 1, both)
    speed = size * jnp.sqrt((target_rate / size) ** 2 + (initial_rate / size) ** 2)
    return TimeScale(jnp.where(both == 0, jnp.inf, 1 / jnp.where(both == 0, 1, speed)), target_rate, initial_rate)
