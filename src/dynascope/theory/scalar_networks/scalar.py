"""Exact training of a network with one input, one output and many linear neurons, and its four equivalent scalings.

A single number, the final growth factor γ₊, measures whether the network learns lazily or richly. All four scalings
change it in the same way.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.theory.domain import covers
from dynascope.theory.finite_answers import require_answer
from dynascope.theory.kernels import nan_outside
from dynascope.theory.scalar_networks.growth import GrowthFactor, growth_factor, growth_limit
from dynascope.theory.scalar_networks.setting import Setting, require_fitting
from dynascope.validation import require_known, require_shape
from dynascope.validation.bounded import NonNegativeArray, PositiveArray

__all__ = [
    "ScalarLimit",
    "ScalarTrajectory",
    "Scaling",
    "Setting",
    "equivalent_scalings",
    "scalar_limit",
    "scalar_trajectory",
]

_covers = functools.partial(
    covers,
    network="two-layer linear, one input, one output, any width and output divisor",
    data="one input, any targets",
    start="any",
    reference="Nam, DPhil thesis (2024), chapter 6",
)


class ScalarTrajectory(NamedTuple):
    """Trajectory of the network, in arrays of shape (..., times) unless stated otherwise.

    Attributes:
        output_weights: a(t), shape (..., times, neurons).
        input_weights: b(t), shape (..., times, neurons).
        strength: θ = Σ aᵢ bᵢ/Z.
        residual: S − θ, computed without cancellation.
        loss: ½ E[x²] (S − θ)².
        log_growth: ln γ.
    """

    output_weights: Float[AnyArray, "... neurons"]
    input_weights: Float[AnyArray, "... neurons"]
    strength: Float[AnyArray, ...]
    residual: Float[AnyArray, ...]
    loss: Float[AnyArray, ...]
    log_growth: Float[AnyArray, ...]


class ScalarLimit(NamedTuple):
    """Limit of the network as t → ∞, in NumPy arrays of shape (...) unless stated otherwise.

    Attributes:
        output_weights: a, shape (..., neurons).
        input_weights: b, shape (..., neurons).
        strength: θ, equal to S unless the network is trapped at a saddle.
        log_growth: ln γ₊; ±∞ if one of the two combinations of weights vanishes relative to the other.
        rate: 2 η E[x²] √(S² + 4CD)/|Z|, the exponential rate at which S − θ finally decays; 0 for a power law.
        status: "converges" (to θ = S, exponentially), "power law" (to θ = S = 0, as 1/t), "saddle" (trapped at
            θ = 0 ≠ S) or "static" (the initial weights are a fixed point).
    """

    output_weights: Float[np.ndarray, "... neurons"]
    input_weights: Float[np.ndarray, "... neurons"]
    strength: Float[np.ndarray, ...]
    log_growth: Float[np.ndarray, ...]
    rate: Float[np.ndarray, ...]
    status: np.ndarray

    @property
    def growth(self) -> Float[np.ndarray, ...]:
        """The final growth factor γ₊; infinite if it overflows."""
        with np.errstate(over="ignore"):
            return np.exp(self.log_growth)

    @property
    def richness(self) -> Float[np.ndarray, ...]:
        """Richness of learning, |ln γ₊|, for both signs of S.

        The value is near zero for lazy learning, in which the weights hardly move, and large for rich learning.
        """
        return np.abs(self.log_growth)


class Scaling(NamedTuple):
    """The setting after one of the four equivalent scalings.

    Attributes:
        setting: The scaled setting, for `scalar_trajectory` and `scalar_limit`.
        clock: Training speed relative to the scaling "target": this network at time t/clock corresponds to the network
            with the scaled target at time t.
    """

    setting: Setting
    clock: Float[AnyArray, ...]


class _GrowthFlow(NamedTuple):
    """Initial weights and rates of the growth-factor flow of a setting.

    Attributes:
        target: S.
        growing: (aᵢ + bᵢ)/2, with the sign of Z included in b. The sum of the squares of growing/`unit`, divided by
            |Z|, is C/unit².
        shrinking: (aᵢ − bᵢ)/2, from which D/unit² is computed in the same way.
        growing_power: C/unit².
        shrinking_power: D/unit².
        rate: k = 2 η E[x²]/|Z|.
        sign: The sign of Z.
        unit: The largest absolute weight; squares of weights do not underflow in this unit.
    """

    target: Array
    growing: Array
    shrinking: Array
    growing_power: Array
    shrinking_power: Array
    rate: Array
    sign: Array
    unit: Array


@_covers(gives="the weights, the slope of the function and the loss at any time")
def scalar_trajectory(
    setting: Setting, times: NonNegativeArray, *, learning_rate: PositiveArray = 1.0
) -> ScalarTrajectory:
    """Compute the exact gradient flow of f(x) = (x/Z) Σ aᵢ bᵢ on L = ½ E[(f − S x)²], from any initial weights.

    A single number γ determines the weights of all neurons,

        aᵢ, bᵢ = ½ (aᵢ(0) + bᵢ(0)) √γ ± ½ (aᵢ(0) − bᵢ(0))/√γ,  θ = C γ − D/γ,

    where γ is the growth factor with C = Σ (aᵢ + bᵢ)²/(4Z), D = Σ (aᵢ − bᵢ)²/(4Z) and k = 2 η E[x²]/Z (see
    `growth_factor`). A network with negative Z is equivalent to the network with −Z and −b. The differences aᵢ² − bᵢ²
    are conserved.

    The function can be compiled and differentiated. Initial weights down to 1e-300 do not underflow.

    Args:
        setting: Data and initial network.
        times: Gradient-flow times t ≥ 0, a scalar or an array of shape (times,).
        learning_rate: η > 0, shape (...), equal for both layers.

    Returns:
        The trajectory. The time axis follows the leading axes and is absent for a scalar time.

    Raises:
        InputError: If Z = 0, E[x²] ≤ 0, η ≤ 0, t < 0, a value is not finite, or shapes do not match. Inside `jit`,
            values outside this domain give NaN.

    References:
        Nam, DPhil thesis (2024), Theorem 1 of chapter 6, with the exponent −2 E[x²] r t/Z in equation 6.12.

    Example:
        >>> setting = Setting(1.0, np.array([0.5, -0.3, 0.2]), np.array([0.1, 0.4, -0.6]))
        >>> with jax.enable_x64(True):
        ...     run = scalar_trajectory(setting, 1.0)
        ...     print(f"{run.strength:.6f}", run.output_weights.round(6))
        0.567423 [ 0.747995 -0.050474 -0.25499 ]
    """
    require_shape("times", times, (), (None,))
    require_fitting(setting, learning_rate=learning_rate)
    return _trajectory(times, setting, learning_rate)


@_covers(gives="the end of training, its rate, and the richness of learning", infinite=True)
def scalar_limit(setting: Setting, *, learning_rate: PositiveArray = 1.0) -> ScalarLimit:
    """Compute the limit of `scalar_trajectory` as t → ∞.

    γ₊ = (S + r)/(2C) = 2D/(r − S), r = √(S² + 4CD)

    With N = ½ Σ (aᵢ² + bᵢ²) and N₀ = Σ aᵢ bᵢ at t = 0, γ₊ = (SZ + √(N² − N₀² + S²Z²))/(N + N₀) depends only on SZ/N and
    N₀/N, and not on the input. For each sign of S, the code uses the form that avoids cancellation. |ln γ₊| measures
    richness for both signs: learning is rich if γ₊ ≫ 1 (S > 0) or γ₊ ≪ 1 (S < 0).

    Args:
        setting: Data and initial network.
        learning_rate: η > 0, equal for both layers.

    Raises:
        InputError: As for `scalar_trajectory`, or if JAX traces a value.

    References:
        Nam, DPhil thesis (2024), equation 6.14.

    Example:
        >>> setting = Setting(1.0, np.array([0.5, -0.3, 0.2]), np.array([0.1, 0.4, -0.6]))
        >>> with jax.enable_x64(True):
        ...     end = scalar_limit(setting)
        >>> print(f"{end.growth:.6f} {end.rate:.6f} {end.status}")
        7.856954 2.164186 converges
    """
    require_known(**{f"setting.{name}": each for name, each in setting._asdict().items()}, learning_rate=learning_rate)
    require_fitting(setting, learning_rate=learning_rate)
    start = _GrowthFlow._make(map(np.asarray, _growth_flow(setting, learning_rate)))
    end = growth_limit(start.target, start.growing_power, start.shrinking_power, log_scale=np.log(start.unit))
    log_growth, strength = (each.astype(start.unit.dtype) for each in (end.log_growth, end.strength))
    a, b = map(np.asarray, _weights(start, GrowthFactor._make((log_growth, strength, start.target - strength))))
    both = 2 * np.sqrt(start.growing_power) * np.sqrt(start.shrinking_power) * start.unit**2
    speed = np.where(end.status == "static", 0, start.rate * np.hypot(start.target, both))
    require_answer(speed, {"setting": setting, "learning_rate": learning_rate})
    return ScalarLimit(a, b, strength, log_growth, speed.astype(start.unit.dtype), end.status)


@_covers(gives="scalings of target, output, input and weights that are equivalent in training")
def equivalent_scalings(setting: Setting, factor: PositiveArray) -> dict[str, Scaling]:
    """Scale a setting by c in four equivalent ways, with the same γ₊ and the same γ(t) up to a rescaling of time.

    The following four scalings are equivalent:

    - "target": multiply the target by c (S → cS).
    - "output": divide the output by c (Z → cZ).
    - "input": divide the input by c for the same labels (S → cS, E[x²] → E[x²]/c²).
    - "weights": divide the weights by √c.

    The four scaled settings also have the same θ/S and the same loss relative to its initial value. Relative to the
    network with the scaled target, they train at the speeds 1, 1/c², 1/c² and 1/c.

    Args:
        setting: Data and initial network.
        factor: c > 0, shape (...). Learning becomes richer for c > 1 and lazier for c < 1.

    Returns:
        A `Scaling` for each of "target", "output", "input" and "weights".

    Raises:
        InputError: If c ≤ 0, or as for `scalar_trajectory`. Inside `jit`, values outside this domain give NaN.

    References:
        Nam, DPhil thesis (2024), chapter 6; Nam et al., arXiv:2502.21009, for the ratio of weights to target.

    Example:
        >>> setting = Setting(1.0, np.array([0.5, -0.3, 0.2]), np.array([0.1, 0.4, -0.6]))
        >>> with jax.enable_x64(True):
        ...     for dial, (scaled, clock) in equivalent_scalings(setting, 10.0).items():
        ...         print(f"{dial:8}{scalar_limit(scaled).growth:.6f} {clock:.4g}")
        target  75.503934 1
        output  75.503934 0.01
        input   75.503934 0.01
        weights 75.503934 0.1
    """
    require_fitting(setting)
    return dict(zip(("target", "output", "input", "weights"), _scalings(setting, factor), strict=True))


@float64_jit
def _scalings(setting: Setting, factor: Array) -> tuple[Scaling, ...]:
    arguments = map(jnp.asarray, (*setting, factor))
    target, a, b, power, divisor, c = (nan_outside(jnp.isfinite(each), each) for each in arguments)
    power, c, divisor = nan_outside(power > 0, power), nan_outside(c > 0, c), nan_outside(divisor != 0, divisor)
    return (
        Scaling(Setting(c * target, a, b, power, divisor), jnp.where(c > 0, 1, c)),
        Scaling(Setting(target, a, b, power, c * divisor), 1 / c**2),
        Scaling(Setting(c * target, a, b, power / c**2, divisor), 1 / c**2),
        Scaling(Setting(target, a / jnp.sqrt(c)[..., None], b / jnp.sqrt(c)[..., None], power, divisor), 1 / c),
    )


@float64_jit
def _growth_flow(setting: Setting, learning_rate: Array) -> _GrowthFlow:
    target, a, b, power, divisor, rate = map(jnp.asarray, (*setting, learning_rate))
    leading = jnp.broadcast_shapes(a.shape[:-1], b.shape[:-1], target.shape, power.shape, divisor.shape, rate.shape)
    target, power, divisor, rate = (jnp.broadcast_to(each, leading) for each in (target, power, divisor, rate))
    a, b = (jnp.broadcast_to(each, (*leading, each.shape[-1])) for each in (a, b))
    sign = jnp.where(divisor < 0, -1, 1)
    growing, shrinking = (a + sign[..., None] * b) / 2, (a - sign[..., None] * b) / 2
    largest = jax.lax.stop_gradient(jnp.max(jnp.maximum(jnp.abs(a), jnp.abs(b)), axis=-1))
    unit = jnp.where(largest == 0, 1, largest)
    c, d = (jnp.sum((part / unit[..., None]) ** 2, axis=-1) / jnp.abs(divisor) for part in (growing, shrinking))
    speed = nan_outside((rate > 0) & (power > 0) & (divisor != 0), 2 * rate * power / jnp.abs(divisor))
    return _GrowthFlow(target, growing, shrinking, c, d, speed, sign, unit)


@float64_jit
def _trajectory(times: Array, setting: Setting, learning_rate: Array) -> ScalarTrajectory:
    start = _growth_flow(setting, learning_rate)
    input_power = jnp.asarray(setting.input_power)
    numbers = (start.target, start.growing_power, start.shrinking_power, start.rate, start.unit, input_power)
    target, growing, shrinking, rate, unit, power = (each[(..., *(None,) * times.ndim)] for each in numbers)
    growth = growth_factor(times, target, growing, shrinking, rate, log_scale=jnp.log(unit))
    a, b = _weights(start, growth)
    return ScalarTrajectory(a, b, growth.strength, growth.residual, power * growth.residual**2 / 2, growth.log_growth)


@float64_jit
def _weights(start: _GrowthFlow, growth: GrowthFactor) -> tuple[Any, Any]:
    times = (None,) * (growth.log_growth.ndim - start.target.ndim)
    at = (..., *times, slice(None))
    a, signed = GrowthFactor._make(each[..., None] for each in growth).layers(start.growing[at], start.shrinking[at])
    return a, start.sign[(..., *times, None)] * signed
