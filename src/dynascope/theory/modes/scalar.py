"""A scalar-in scalar-out network of many neurons: its weights at any time, its end, and the four knobs that set both.

Whether such a network learns lazily or richly is one number, the final growth factor γ₊, and that depends on the ratio
of its weights to its target alone. Scaling the weights, the target, the output or the input turns the same dial.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.arguments import require
from dynascope.errors import InputError
from dynascope.theory.domain import covers
from dynascope.theory.modes.growth import GrowthFactor, growth_factor, growth_limit, real_array

__all__ = ["Limit", "Scaling", "Setting", "Trajectory", "equivalent_scalings", "limit", "trajectory"]

_NETWORK = "two-layer linear, one input, one output, any width and output divisor"
_DATA = "one input, any targets"
_REFERENCE = "Nam, DPhil thesis (2024), chapter 6"


class Setting(NamedTuple):
    """The network f(x) = (x/Z) Σ aᵢ bᵢ at the start, and what it learns, f*(x) = S x.

    Leading axes batch: the numbers have shape (...), the weights (..., neurons), and they broadcast.

    Attributes:
        target: S, of any sign.
        output_weights: a at the start, shape (..., neurons).
        input_weights: b at the start, shape (..., neurons).
        input_power: E[x²] > 0.
        divisor: Z ≠ 0, by which the output is divided.
    """

    target: Real[ArrayLike, ...]
    output_weights: Real[ArrayLike, "... neurons"]
    input_weights: Real[ArrayLike, "... neurons"]
    input_power: Real[ArrayLike, ...] = 1.0
    divisor: Real[ArrayLike, ...] = 1.0


class Trajectory(NamedTuple):
    """The network at some times.

    Attributes:
        output_weights: a(t), shape (..., times, neurons).
        input_weights: b(t), shape (..., times, neurons).
        strength: θ = Σ aᵢ bᵢ/Z, shape (..., times).
        residual: S − θ, computed without cancellation.
        loss: ½ E[x²] (S − θ)².
        log_growth: ln γ.
    """

    output_weights: Float[Array, "... neurons"]
    input_weights: Float[Array, "... neurons"]
    strength: Float[Array, ...]
    residual: Float[Array, ...]
    loss: Float[Array, ...]
    log_growth: Float[Array, ...]


class Limit(NamedTuple):
    """The network as t → ∞, in NumPy arrays.

    Attributes:
        output_weights: a, shape (..., neurons).
        input_weights: b, shape (..., neurons).
        strength: θ, equal to S unless the network is trapped.
        log_growth: ln γ₊, which is ±∞ where the weights that survive are infinitely larger than those that do not.
        rate: 2 η E[x²] √(S² + 4CD)/|Z|, at which S − θ falls exponentially in the end; 0 for a power law.
        status: "converges" (exponentially, to θ = S), "power law" (to θ = S = 0, as 1/t), "saddle" (trapped at
            θ = 0 ≠ S) or "static" (nothing moves).
    """

    output_weights: Float[np.ndarray, "... neurons"]
    input_weights: Float[np.ndarray, "... neurons"]
    strength: Float[np.ndarray, ...]
    log_growth: Float[np.ndarray, ...]
    rate: Float[np.ndarray, ...]
    status: np.ndarray

    @property
    def growth(self) -> Float[np.ndarray, ...]:
        """The final growth factor γ₊; infinite where it overflows."""
        with np.errstate(over="ignore"):
            return np.exp(self.log_growth)

    @property
    def richness(self) -> Float[np.ndarray, ...]:
        """|ln γ₊|, the index of laziness for both signs of S: near zero the weights hardly move, large ones do."""
        return np.abs(self.log_growth)


class Scaling(NamedTuple):
    """One of the four ways to turn the same dial.

    Attributes:
        setting: What `trajectory` and `limit` take.
        clock: Its speed over that of the scaled target: at the time t/clock it is where that one is at the time t.
    """

    setting: Setting
    clock: Float[Array, ...]


class _Start(NamedTuple):
    """The setting as a growth-factor flow.

    Attributes:
        target: S.
        growing: (aᵢ + bᵢ)/2, with the sign of Z in b; over `unit` squared and summed, it is C.
        shrinking: (aᵢ − bᵢ)/2, likewise, of D.
        growing_power: C/unit².
        shrinking_power: D/unit².
        rate: k = 2 η E[x²]/|Z|.
        sign: That of Z.
        unit: The largest weight, in which the squares do not underflow.
        input_power: E[x²].
    """

    target: Array
    growing: Array
    shrinking: Array
    growing_power: Array
    shrinking_power: Array
    rate: Array
    sign: Array
    unit: Array
    input_power: Array


@covers(
    network=_NETWORK,
    data=_DATA,
    start="any",
    gives="all weights, the slope and the loss at any time",
    reference=_REFERENCE,
)
def trajectory(
    setting: Setting, times: Real[ArrayLike, ...], *, learning_rate: Real[ArrayLike, ...] = 1.0
) -> Trajectory:
    """Train f(x) = (x/Z) Σ aᵢ bᵢ by gradient flow on L = ½ E[(f − S x)²], from any start: the exact solution.

    One number γ drives all neurons,

        aᵢ, bᵢ = ½ (aᵢ(0) + bᵢ(0)) √γ ± ½ (aᵢ(0) − bᵢ(0))/√γ,  θ = C γ − D/γ,

    where γ is the growth factor with C = Σ (aᵢ + bᵢ)²/(4Z), D = Σ (aᵢ − bᵢ)²/(4Z) and k = 2 η E[x²]/Z (see
    `growth_factor`). A negative Z is the network −Z with b of the other sign. Conserved are aᵢ² − bᵢ².

    The result can be compiled and differentiated. Starts down to 1e-300 do not underflow.

    Args:
        setting: Network, data and start.
        times: Gradient-flow times t ≥ 0, shape (times,), or a single one.
        learning_rate: η > 0, the same for both layers.

    Returns:
        `Trajectory`; the axis of times follows the leading axes, and is missing for a single time.

    Raises:
        InputError: Z = 0, E[x²] ≤ 0, η ≤ 0, t < 0, values that are not finite, or shapes that do not fit (values traced
            by JAX are not checked).

    References:
        Nam, DPhil thesis (2024), Theorem 1 of chapter 6, with the exponent −2 E[x²] r t/Z in equation 6.12.

    Example:
        >>> setting = Setting(1.0, np.array([0.5, -0.3, 0.2]), np.array([0.1, 0.4, -0.6]))
        >>> with jax.enable_x64(True):
        ...     run = trajectory(setting, 1.0)
        ...     print(f"{run.strength:.6f}", run.output_weights.round(6))
        0.567423 [ 0.747995 -0.050474 -0.25499 ]
    """
    start = _started(setting, learning_rate)
    times = real_array("times", times, minimum=0)
    require(times.ndim <= 1, f"times has shape {times.shape}", argument="times", value=times.shape, remedy="give a row")
    return _followed(start, times)


@covers(
    network=_NETWORK,
    data=_DATA,
    start="any",
    gives="where training ends, how fast, and how lazy or rich it was",
    reference=_REFERENCE,
)
def limit(setting: Setting, *, learning_rate: Real[ArrayLike, ...] = 1.0) -> Limit:
    """Where the network of `trajectory` ends: γ₊ = (S + r)/(2C) = 2D/(r − S), r = √(S² + 4CD).

    With N = ½ Σ (aᵢ² + bᵢ²) and N₀ = Σ aᵢ bᵢ at the start, γ₊ = (SZ + √(N² − N₀² + S²Z²))/(N + N₀) depends on SZ/N and
    N₀/N alone, whatever the input. Of the two forms the one without cancellation is used, so that it is exact for both
    signs of S, and |ln γ₊| measures laziness for both: γ₊ ≫ 1 (S > 0) and γ₊ ≪ 1 (S < 0) are rich.

    Args:
        setting: Network, data and start.
        learning_rate: η > 0, the same for both layers.

    Returns:
        `Limit`, with its `status`.

    Raises:
        InputError: As `trajectory`, or values traced by JAX.

    References:
        Nam, DPhil thesis (2024), equation 6.14.

    Example:
        >>> setting = Setting(1.0, np.array([0.5, -0.3, 0.2]), np.array([0.1, 0.4, -0.6]))
        >>> with jax.enable_x64(True):
        ...     end = limit(setting)
        >>> print(f"{end.growth:.6f} {end.rate:.6f} {end.status}")
        7.856954 2.164186 converges
    """
    start = _started(setting, learning_rate)
    if any(isinstance(each, Tracer) for each in start):
        raise InputError(
            "the setting is traced by JAX", argument="setting", remedy="call limit outside of jit and vmap"
        )
    end = growth_limit(start.target, start.growing_power, start.shrinking_power, log_scale=jnp.log(start.unit))
    dtype = start.unit.dtype
    log_growth, strength = (jnp.asarray(each, dtype) for each in (end.log_growth, end.strength))
    weights = _weights(start, GrowthFactor(log_growth, strength, start.target - strength))
    both = 2 * jnp.sqrt(start.growing_power) * jnp.sqrt(start.shrinking_power) * start.unit**2
    rate = jnp.where(end.status == "static", 0, start.rate * jnp.hypot(start.target, both))
    a, b = map(np.asarray, weights)
    return Limit(a, b, np.asarray(strength), np.asarray(log_growth), np.asarray(rate), end.status)


@covers(
    network=_NETWORK,
    data=_DATA,
    start="any",
    gives="which scalings of target, output, input and weights give the same training",
    reference=_REFERENCE,
)
def equivalent_scalings(setting: Setting, factor: Real[ArrayLike, ...]) -> dict[str, Scaling]:
    """The four settings that a factor c makes of one, all with the same γ₊ and the same γ(t) up to a clock.

    The target times c, the output divided by c (Z → cZ), the input divided by c for the same labels (S → cS,
    E[x²] → E[x²]/c²) and the weights divided by √c are equivalent. So are θ/S and the loss over its initial value at
    every time; the clocks, over that of the target, run at the speeds 1, 1/c², 1/c² and 1/c.

    Args:
        setting: Network, data and start.
        factor: c > 0; above one learning becomes richer, below one lazier.

    Returns:
        A `Scaling` for each of "target", "output", "input" and "weights".

    Raises:
        InputError: c ≤ 0, or as `trajectory`.

    References:
        Nam, DPhil thesis (2024), chapter 6; Nam et al., arXiv:2502.21009, for the ratio of weights to target.

    Example:
        >>> setting = Setting(1.0, np.array([0.5, -0.3, 0.2]), np.array([0.1, 0.4, -0.6]))
        >>> with jax.enable_x64(True):
        ...     for knob, (scaled, clock) in equivalent_scalings(setting, 10.0).items():
        ...         print(f"{knob:8}{limit(scaled).growth:.6f} {clock:.4g}")
        target  75.503934 1
        output  75.503934 0.01
        input   75.503934 0.01
        weights 75.503934 0.1
    """
    c = real_array("factor", factor, above=0)
    _started(setting, 1.0)
    target, a, b, power, divisor = map(jnp.asarray, setting)
    root = jnp.sqrt(c)[..., None]
    return {
        "target": Scaling(Setting(c * target, a, b, power, divisor), jnp.ones_like(c)),
        "output": Scaling(Setting(target, a, b, power, c * divisor), 1 / c**2),
        "input": Scaling(Setting(c * target, a, b, power / c**2, divisor), 1 / c**2),
        "weights": Scaling(Setting(target, a / root, b / root, power, divisor), 1 / c),
    }


def _started(setting: Setting, learning_rate: ArrayLike) -> _Start:
    target = real_array("target", setting.target)
    a, b = real_array("output_weights", setting.output_weights), real_array("input_weights", setting.input_weights)
    power = real_array("input_power", setting.input_power, above=0)
    divisor = real_array("divisor", setting.divisor)
    rate = real_array("learning_rate", learning_rate, above=0)
    require(
        isinstance(divisor, Tracer) or bool(jnp.all(divisor != 0)),
        "divisor is 0",
        argument="divisor",
        value=0.0,
        remedy="choose a number other than zero; 1 divides by nothing",
    )
    require(
        a.ndim > 0 and b.ndim > 0 and a.shape[-1] == b.shape[-1] > 0,
        f"output_weights has shape {a.shape} and input_weights {b.shape}",
        argument="input_weights",
        value=b.shape,
        remedy="give one output weight and one input weight for each neuron along the last axis",
    )
    try:
        leading = np.broadcast_shapes(
            a.shape[:-1], b.shape[:-1], *(each.shape for each in (target, power, divisor, rate))
        )
    except ValueError:
        raise InputError(
            "the leading axes of the setting do not fit together",
            argument="setting",
            remedy="give numbers of shape (...) and weights of shape (..., neurons)",
        ) from None
    target, power, divisor, rate = (jnp.broadcast_to(each, leading) for each in (target, power, divisor, rate))
    a, b = (jnp.broadcast_to(each, (*leading, each.shape[-1])) for each in (a, b))
    return _decomposed(target, a, b, power, divisor, rate)


@jax.jit
def _decomposed(target: Array, a: Array, b: Array, power: Array, divisor: Array, rate: Array) -> _Start:
    sign = jnp.where(divisor < 0, -1, 1)
    growing, shrinking = (a + sign[..., None] * b) / 2, (a - sign[..., None] * b) / 2
    largest = jax.lax.stop_gradient(jnp.max(jnp.maximum(jnp.abs(a), jnp.abs(b)), axis=-1))
    unit = jnp.where(largest == 0, 1, largest)
    c, d = (jnp.sum((part / unit[..., None]) ** 2, axis=-1) / jnp.abs(divisor) for part in (growing, shrinking))
    return _Start(target, growing, shrinking, c, d, 2 * rate * power / jnp.abs(divisor), sign, unit, power)


@jax.jit
def _followed(start: _Start, times: Array) -> Trajectory:
    numbers = (start.target, start.growing_power, start.shrinking_power, start.rate, start.unit, start.input_power)
    target, growing, shrinking, rate, unit, power = (each[(..., *(None,) * times.ndim)] for each in numbers)
    growth = growth_factor(times, target, growing, shrinking, rate, log_scale=jnp.log(unit))
    a, b = _weights(start, growth)
    return Trajectory(a, b, growth.strength, growth.residual, power * growth.residual**2 / 2, growth.log_growth)


@jax.jit
def _weights(start: _Start, growth: GrowthFactor) -> tuple[Array, Array]:
    times = (None,) * (growth.log_growth.ndim - start.target.ndim)
    at = (..., *times, slice(None))
    spread = GrowthFactor._make(each[..., None] for each in growth)
    a, signed = spread.layers(start.growing[at], start.shrinking[at])
    return a, start.sign[(..., *times, None)] * signed
