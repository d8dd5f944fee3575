"""A two-layer linear network on inputs along a line: its weights at any time, its time scale and its end."""

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
    """The network at some times.

    Attributes:
        first: W(t), shape (..., times, d, h).
        second: u(t), shape (..., times, h).
        strength: θ(t) = γ Σ uᵢ (n·wᵢ), the slope of the network along the line, shape (..., times).
        residual: S − θ, computed without cancellation, shape (..., times).
        loss: p E(f − y)² = p (E[a²] (S − θ)² + what no linear network can learn), shape (..., times).
    """

    first: Float[AnyArray, "... inputs width"]
    second: Float[AnyArray, "... width"]
    strength: Float[AnyArray, ...]
    residual: Float[AnyArray, ...]
    loss: Float[AnyArray, ...]

    __repr__ = short_repr


class TimeScale(NamedTuple):
    """How fast the network approaches its end, 1/t_c² = target_rate² + initial_rate², each of shape (...).

    Attributes:
        time: t_c; ∞ where both rates vanish, and the approach is a power law.
        target_rate: k |S|, what the target contributes.
        initial_rate: 2 k γ √(PQ), what the initial weights contribute; the larger of the two in the kernel phase.
    """

    time: Float[AnyArray, ...]
    target_rate: Float[AnyArray, ...]
    initial_rate: Float[AnyArray, ...]

    __repr__ = short_repr

    @property
    def status(self) -> np.ndarray:
        """Either "exponential", or "power law" where t_c = ∞."""
        return np.where(np.isfinite(np.asarray(self.time)), "exponential", "power law")


class LineLimit(NamedTuple):
    """The network as t → ∞, in NumPy arrays of shape (...) where no other is told.

    Attributes:
        first: W, shape (..., d, h).
        second: u, shape (..., h).
        strength: θ.
        loss: p E(f − y)².
        status: "converges" (exponentially, to θ = S), "power law" (to θ = S = 0, as 1/t), "saddle" (trapped at
            θ = 0 ≠ S) or "static" (nothing moves).
    """

    first: Float[np.ndarray, "... inputs width"]
    second: Float[np.ndarray, "... width"]
    strength: Float[np.ndarray, ...]
    loss: Float[np.ndarray, ...]
    status: np.ndarray

    __repr__ = short_repr


@covers_line(gives="both layers, the slope and the loss at any time")
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
    """Train f(x) = γ x W u by gradient flow on inputs x = a n, from any start: the exact solution.

    With c = (η₁/η₂)^¼, v = n·W and p, q = ½(c u ± v/c) at the start, P = Σ pᵢ², Q = Σ qᵢ², one number g drives all
    weights:

        u(t) = (p √g + q/√g)/c,  v(t) = c (p √g − q/√g),  W(t) = W₀ + n (v(t) − v₀),  θ = γ (P g − Q/g),

    where g(0) = 1 and dg/dt = k (S g − γP g² + γQ), k = 4 p √(η₁ η₂) γ E[a²] (see `growth_factor`). What W maps from
    across the line never moves, but the output there does, with u. Conserved are uᵢ² √(η₁/η₂) − vᵢ² √(η₂/η₁) = 4 pᵢ qᵢ.

    The result can be compiled and differentiated. Many starts go in leading axes, of both layers or of the numbers.
    Values traced by JAX that are outside the domain give NaN.

    Args:
        network: Both layers at the start, W₀ and u₀, γ, η₁ and η₂.
        data: The line and the slope S to be learned, as of `line_data`.
        times: Gradient-flow times t ≥ 0, shape (times,), or a single one.
        prefactor: p > 0 of the loss p E(f − y)², shape (...); ½ in this library.

    Returns:
        `LineTrajectory`; the axis of times follows the leading axes, and is missing for a single time.

    Raises:
        InputError: Shapes that do not fit, values that are not finite, t < 0, ‖n‖ ≠ 1, E[a²] ≤ 0, or a multiplier, rate
            or prefactor that is not positive.

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


@covers_line(gives="how long learning takes, and whether the target or the start decides it")
@in_units(*STANDARDS, **UNITS, gives={"time": "t", "target_rate": "t^-1", "initial_rate": "t^-1"}, infinite=True)
def time_scale(
    network: LineNetwork,
    data: LineData,
    *,
    prefactor: PositiveArray = 0.5,
) -> TimeScale:
    """The time scale t_c of learning by gradient flow, 1/t_c² = (4 p E[a²] γ)² η₁ η₂ (S² + 4 γ² P Q).

    The distance to the end falls as exp(−t/t_c) at late times. The first term is target × learning rate, the second
    start × input; see `line_trajectory` for P and Q. A start near a saddle may dwell there for many t_c before.

    Args:
        network: Both layers at the start, γ, η₁ and η₂.
        data: As of `line_data`.
        prefactor: p > 0 of the loss.

    Returns:
        `TimeScale`, which can be compiled; its `status` says where t_c is infinite. Values traced by JAX that are
        outside the domain give NaN.

    Raises:
        InputError: As `line_trajectory`.

    References:
        Xu & Ziyin, arXiv:2401.07085, equation 17.

    Example:
        >>> network = LineNetwork(np.array([[1.0, 0.0]]), np.array([0.0, 1.0]))
        >>> scale = time_scale(network, LineData(np.ones(1), 1.0, 2.0))
        >>> tuple(round(float(each), 6) for each in scale)
        (0.223607, 4.0, 2.0)
    """
    return _time_scale(LineStart.checked(network, data, prefactor))


@covers_line(gives="where training ends, and whether it is trapped")
@in_units(*STANDARDS, **UNITS, gives={"first": "w", "second": "u", "strength": "g w u", "loss": LOSS})
def line_limit(
    network: LineNetwork,
    data: LineData,
    *,
    prefactor: PositiveArray = 0.5,
) -> LineLimit:
    """Where the network of `line_trajectory` ends: p → p √g∞, q → q/√g∞ with g∞ = (S + √(S² + 4γ²PQ))/(2γP).

    Layers that start exactly opposite, P = 0, with S > 0, or exactly parallel, Q = 0, with S < 0, are trapped at the
    saddle f = 0 of the trivial network. Cancellation up to rounding counts as exact here; in training it is a long
    plateau.

    Args:
        network: Both layers at the start, γ, η₁ and η₂.
        data: As of `line_data`.
        prefactor: p > 0 of the loss.

    Returns:
        `LineLimit`, with its `status`.

    Raises:
        InputError: As `line_trajectory`, or values traced by JAX.

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
    begun, initial_strength, drive = _begun(start)
    known = Decomposition._make(map(np.asarray, begun))
    end = end_of_growth(known, initial_strength, drive)
    strength = end.strength.astype(known.unit.dtype)
    residual = np.where(end.status == "converges", 0, known.target - strength)
    ended = GrowthFactor._make((end.log_growth.astype(known.unit.dtype), strength, residual))
    final_first, final_second, loss = map(np.asarray, _ended(start, begun, ended))
    return LineLimit(final_first, final_second, strength, loss, end.status)


@float64_jit
def _trajectory(start: LineStart, times: Array) -> LineTrajectory:
    begun = decompose(start)
    growth = begun.growth(times)
    first, second = _weights(begun, growth)
    return LineTrajectory(first, second, growth.strength, growth.residual, start.loss(growth.residual))


@float64_jit
def _begun(start: LineStart) -> tuple[Decomposition, Array, Array]:
    begun = decompose(start)
    return begun, begun.initial_strength(), begun.drive()


@float64_jit
def _ended(start: LineStart, begun: Decomposition, ended: GrowthFactor) -> tuple[Array, AnyArray, Array]:
    return *_weights(begun, ended), start.loss(ended.residual)


def _weights(start: Decomposition, growth: GrowthFactor) -> tuple[Array, AnyArray]:
    second, along = start.layers(growth)
    extra = second.ndim - start.growing.ndim
    before = jnp.einsum("d,...dh->...h", start.direction, start.first)
    frozen = start.first - start.direction[:, None] * before[..., None, :]
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
