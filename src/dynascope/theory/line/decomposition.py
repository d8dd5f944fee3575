"""The combination of the two layers that grows, and the one that shrinks, on inputs along a line."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Float

from dynascope.arguments import require
from dynascope.errors import InputError
from dynascope.theory.line.data import LineData
from dynascope.theory.modes.growth import GrowthFactor, GrowthLimit, growth_factor, growth_limit, real_array

__all__ = ["Decomposition", "behind", "check_times", "decompose", "root"]

_ROUNDING = 16  # units of rounding within which two numbers are the same


class Decomposition(NamedTuple):
    """The start in the variables pᵢ, qᵢ = ½(c uᵢ ± vᵢ/c), c = (η₁/η₂)^¼, vᵢ = n·wᵢ, that only scale with time.

    Attributes:
        first: W at the start, shape (..., d, h).
        direction: n.
        growing: p, shape (..., h).
        shrinking: q, shape (..., h).
        ratio: c.
        unit: The largest |pᵢ| or |qᵢ| (one if all vanish).
        growing_power: P = Σ pᵢ² in squared units.
        shrinking_power: Q in squared units.
        distance: √(PQ − Y²) = ½ √(‖u‖²‖v‖² − (u·v)²) in squared units, Y = Σ pᵢ qᵢ; conserved, whatever the rates, and
            zero for parallel layers.
        target: S.
        multiplier: γ.
        rate: k = 4 p √(η₁ η₂) γ E[a²], where p is the prefactor of the loss.
    """

    first: Float[Array, "... inputs width"]
    direction: Float[Array, " inputs"]
    growing: Float[Array, "... width"]
    shrinking: Float[Array, "... width"]
    ratio: Float[Array, ...]
    unit: Float[Array, ...]
    growing_power: Float[Array, ...]
    shrinking_power: Float[Array, ...]
    distance: Float[Array, ...]
    target: Float[Array, ...]
    multiplier: Float[Array, ...]
    rate: Float[Array, ...]

    def growth(self, times: Array) -> GrowthFactor:
        """The growth factor, shape (..., times) or (...) for a single time."""
        arguments = (self.target, *self.powers, self.rate, jnp.log(self.unit))
        target, growing, shrinking, rate, log_scale = (behind(each, times.ndim) for each in arguments)
        return growth_factor(times, target, growing, shrinking, rate, log_scale=log_scale)

    def growth_limit(self) -> GrowthLimit:
        """Where the growth factor goes; static also where S = θ₀ up to rounding."""
        _known(self.target)
        end = growth_limit(self.target, *self.powers, log_scale=jnp.log(self.unit))
        resting = np.asarray(self.drive() == 0)
        return GrowthLimit(
            np.where(resting, 0.0, end.log_growth),
            np.where(resting, self.initial_strength(), end.strength),
            np.where(resting, "static", end.status),
        )

    def layers(self, growth: GrowthFactor) -> tuple[Array, Array]:
        """The layers u and v = n·W, shape (..., times, h)."""
        extra = growth.log_growth.ndim - self.unit.ndim
        growing, shrinking = (
            jnp.expand_dims(each, tuple(range(-1 - extra, -1))) for each in (self.growing, self.shrinking)
        )
        second, along = growth._replace(log_growth=growth.log_growth[..., None]).layers(growing, shrinking)
        ratio = behind(self.ratio, extra + 1)
        return second / ratio, along * ratio

    def initial_strength(self) -> Array:
        """θ₀ = γ (P − Q), exactly zero where the two cancel up to rounding."""
        growing, shrinking = self.powers
        same = jnp.abs(growing - shrinking) <= self._rounding * (growing + shrinking)
        return jnp.where(same, 0, growing - shrinking) * self.unit**2

    def drive(self) -> Array:
        """S − θ₀, exactly zero where the two are equal up to rounding or no weight can move."""
        growing, shrinking = self.powers
        difference = self.target - self.initial_strength()
        same = jnp.abs(difference) <= self._rounding * (growing + shrinking) * self.unit**2
        return jnp.where(same | (growing + shrinking == 0), 0, difference)

    @property
    def _rounding(self) -> float:
        return _ROUNDING * float(jnp.finfo(self.unit.dtype).eps)

    @property
    def powers(self) -> tuple[Array, Array]:
        """C = γP and D = γQ in squared units."""
        return self.multiplier * self.growing_power, self.multiplier * self.shrinking_power


def decompose(
    first: ArrayLike,
    second: ArrayLike,
    data: LineData,
    multiplier: ArrayLike = 1.0,
    first_rate: ArrayLike = 1.0,
    second_rate: ArrayLike = 1.0,
    prefactor: ArrayLike = 0.5,
) -> Decomposition:
    """Check the start and decompose it.

    Raises:
        InputError: Shapes that do not fit, values that are not finite, or numbers that are not positive.
    """
    first, second = real_array("first", first), real_array("second", second)
    direction = _direction(data)
    _require_shapes(first, second, direction)
    power = real_array("data.power", data.power, above=0)
    first_rate = real_array("first_rate", first_rate, above=0)
    second_rate = real_array("second_rate", second_rate, above=0)
    multiplier = real_array("multiplier", multiplier, above=0)
    prefactor = real_array("prefactor", prefactor, above=0)
    scalars = (real_array("data.target", data.target), power, multiplier, first_rate, second_rate, prefactor)
    batch = _batch(second, *scalars)
    dtype = jnp.result_type(first, second, direction)
    return _decomposed(
        jnp.broadcast_to(first, (*batch, *first.shape[-2:])).astype(dtype),
        jnp.broadcast_to(second, (*batch, second.shape[-1])).astype(dtype),
        direction.astype(dtype),
        *(jnp.broadcast_to(each, batch).astype(dtype) for each in scalars),
    )


def check_times(times: ArrayLike) -> Array:
    """The times as an array.

    Raises:
        InputError: Times that are negative, not finite, or in more than one axis.
    """
    times = real_array("times", times, minimum=0)
    require(times.ndim <= 1, f"times has shape {times.shape}", argument="times", value=times.shape, remedy="pass a row")
    return times


def behind(value: Array, count: int) -> Array:
    """The array with as many further axes behind."""
    return value.reshape(value.shape + (1,) * count)


def root(value: Array) -> Array:
    """√value, with the derivative zero where it vanishes."""
    return jnp.where(value > 0, jnp.sqrt(jnp.where(value > 0, value, 1)), 0)


@jax.jit
def _decomposed(
    first: Array,
    second: Array,
    direction: Array,
    target: Array,
    power: Array,
    multiplier: Array,
    first_rate: Array,
    second_rate: Array,
    prefactor: Array,
) -> Decomposition:
    ratio = (first_rate / second_rate) ** 0.25
    along = jnp.einsum("d,...dh->...h", direction, first)
    outer, inner = ratio[..., None] * second / 2, along / ratio[..., None] / 2
    growing, shrinking = _sum(outer, inner), _sum(outer, -inner)
    largest = jax.lax.stop_gradient(jnp.maximum(jnp.abs(growing), jnp.abs(shrinking)).max(axis=-1))
    unit = jnp.where(largest == 0, 1, largest)
    p, q = growing / unit[..., None], shrinking / unit[..., None]
    return Decomposition(
        first=first,
        direction=direction,
        growing=growing,
        shrinking=shrinking,
        ratio=ratio,
        unit=unit,
        growing_power=jnp.sum(p**2, axis=-1),
        shrinking_power=jnp.sum(q**2, axis=-1),
        distance=_distance(p, q),
        target=target,
        multiplier=multiplier,
        rate=4 * prefactor * jnp.sqrt(first_rate * second_rate) * multiplier * power,
    )


def _known(value: Array) -> None:
    """Refuse values traced by JAX, of which no text can be made.

    Raises:
        InputError: The value is traced.
    """
    require(
        not isinstance(value, Tracer),
        "the start is traced by JAX, and the answer holds text",
        argument="first",
        value=type(value).__name__,
        remedy="call this outside of jit, vmap and grad, with leading axes for many starts",
    )


def _sum(one: Array, other: Array) -> Array:
    """The sum, zero where it cancels up to rounding: layers meant to be opposite are."""
    total = one + other
    smallest = _ROUNDING * jnp.finfo(total.dtype).eps * jnp.maximum(jnp.abs(one), jnp.abs(other))
    # Subtracting a constant keeps the derivative.
    return total - jax.lax.stop_gradient(jnp.where(jnp.abs(total) <= smallest, total, 0))


def _distance(p: Array, q: Array) -> Array:
    """√(PQ − Y²) as the length of one vector times that of what the other has across it, without cancellation."""
    p_longer = (jnp.sum(p**2, -1) >= jnp.sum(q**2, -1))[..., None]
    long, short = jnp.where(p_longer, p, q), jnp.where(p_longer, q, p)
    power = jnp.sum(long**2, axis=-1)
    across = short - (jnp.sum(long * short, -1) / jnp.where(power == 0, 1, power))[..., None] * long
    square = power * jnp.sum(across**2, axis=-1)
    parallel = square <= (_ROUNDING * jnp.finfo(p.dtype).eps * power) ** 2
    return jnp.where(parallel, 0, jnp.sqrt(jnp.where(parallel, 1, square)))


def _direction(data: LineData) -> Array:
    direction = real_array("data.direction", data.direction)
    if not isinstance(direction, Tracer):
        square = float(jnp.sum(direction**2))
        require(
            direction.ndim == 1 and abs(square - 1) <= 1e3 * float(jnp.finfo(direction.dtype).eps),
            f"data.direction has shape {direction.shape} and squared norm {square:.9g}",
            argument="data.direction",
            value=square,
            remedy="pass a vector of norm one",
        )
    return direction


def _require_shapes(first: Array, second: Array, direction: Array) -> None:
    require(
        first.ndim >= 2 and second.ndim >= 1 and first.shape[-2:] == (direction.size, second.shape[-1]) and second.size,
        f"first has shape {first.shape} and second {second.shape} for inputs of {direction.size} dimensions",
        argument="first",
        value=first.shape,
        remedy="pass W of shape (..., d, h) and u of shape (..., h), for f(x) = γ x W u",
    )
    require(
        first.shape[:-2] == second.shape[:-1],
        f"first has shape {first.shape} and second {second.shape}",
        argument="second",
        value=second.shape,
        remedy="give both layers the same leading axes",
    )


def _batch(second: Array, *scalars: Array) -> tuple[int, ...]:
    try:
        return jnp.broadcast_shapes(second.shape[:-1], *(each.shape for each in scalars))
    except ValueError:
        shapes = [second.shape[:-1], *(each.shape for each in scalars)]
        raise InputError(
            f"the leading axes {shapes} do not fit together",
            argument="second",
            value=second.shape,
            remedy="give rates, multiplier and data single numbers, or one for each start",
        ) from None
