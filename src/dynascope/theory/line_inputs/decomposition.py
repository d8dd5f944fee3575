"""Decomposition of the two layers into a growing and a shrinking combination, on inputs along a line."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import AnyArray
from dynascope.theory.kernels import all_finite, broadcast_known, nan_outside
from dynascope.theory.layer_rates import LayerRates
from dynascope.theory.line_inputs.setting import LineData, LineNetwork
from dynascope.theory.scalar_networks.growth import GrowthFactor, GrowthLimit, growth_factor, growth_limit
from dynascope.validation import is_traced, require, require_broadcast, require_known

__all__ = [
    "LOSS",
    "STANDARDS",
    "UNITS",
    "Decomposition",
    "LineStart",
    "decompose",
    "end_of_growth",
    "root",
    "with_trailing_axes",
]

_ROUNDING = 16  # units of rounding error within which two numbers count as equal

# The units of network, data and prefactor; those listed first are scaled to order one.
LOSS = "p x^2 g^2 w^2 u^2"
RATE_UNITS = {"first": "p^-1 x^-2 g^-2 u^-2 t^-1", "second": "p^-1 x^-2 g^-2 w^-2 t^-1"}
UNITS: dict[str, Any] = {
    "network": {"first": "w", "second": "u", "multiplier": "g", "rates": RATE_UNITS},
    "data": {"power": "x^2", "target": "g w u", "unexplained": "x^2 g^2 w^2 u^2"},
    "prefactor": "p",
}
STANDARDS = (
    "data.power",
    "prefactor",
    "network.multiplier",
    "network.rates.first",
    "network.rates.second",
    "data.target|network.first|network.second",
)


class LineStart(NamedTuple):
    """An initial network and data on a line, with matching shapes; JAX may trace any part.

    Attributes:
        network: W, u, γ, η₁ and η₂.
        data: The line and the slope of the targets along it.
        prefactor: p of the loss p E(f − y)².
    """

    network: LineNetwork
    data: LineData
    prefactor: Any

    @classmethod
    def checked(cls, network: LineNetwork, data: LineData, prefactor: Any = 0.5) -> LineStart:
        """Check the network, the data and the prefactor."""
        layers: tuple[Any, Any] = network[:2]
        _require_unit_vector(data.direction)
        _require_shapes(*layers, data.direction)
        numbers = {
            **{f"data.{name}": value for name, value in data._asdict().items() if name != "direction"},
            "network.multiplier": network.multiplier,
            **{f"network.rates.{name}": value for name, value in network.rates._asdict().items()},
            "prefactor": prefactor,
        }
        shapes = {name: getattr(value, "shape", ()) for name, value in numbers.items()}
        require_broadcast(**{"network.second": layers[1].shape[:-1]}, **shapes)
        power, target, unexplained, multiplier, *rates, prefactor = broadcast_known(*numbers.values())
        return cls(
            LineNetwork(*layers, multiplier, LayerRates(*rates)),
            LineData(data.direction, power, target, unexplained),
            prefactor,
        )

    def require_known(self) -> None:
        """Raise `InputError` if JAX traces any part, because results that contain text require concrete values."""
        first, second, multiplier, rates = self.network
        layers = {"network.first": first, "network.second": second, "network.multiplier": multiplier}
        require_known(**layers, **{f"network.rates.{name}": each for name, each in rates._asdict().items()})
        require_known(**{f"data.{name}": each for name, each in self.data._asdict().items()}, prefactor=self.prefactor)

    def loss(self, residual: AnyArray) -> Array:
        """Return p E(f − y)² for a residual S − θ of shape (..., times) or (...)."""
        power, _, unexplained, *_, prefactor = (
            with_trailing_axes(each, residual.ndim - len(self.batch)) for each in self.numbers
        )
        return prefactor * (power * residual**2 + nan_outside(unexplained >= 0, unexplained))

    @property
    def batch(self) -> tuple[int, ...]:
        """The common leading axes."""
        return np.broadcast_shapes(np.shape(self.network.second)[:-1], *map(np.shape, self.numbers))

    @property
    def numbers(self) -> list[Any]:
        """All scalars of the setting: E[a²], S, E[(y − S a)²], γ, η₁, η₂ and p."""
        return [*self.data[1:], self.network.multiplier, *self.network.rates, self.prefactor]


class Decomposition(NamedTuple):
    """Initial weights in variables that gradient flow only rescales.

    pᵢ, qᵢ = ½(c uᵢ ± vᵢ/c), c = (η₁/η₂)^¼, vᵢ = n·wᵢ

    Attributes:
        first: W at t = 0, shape (..., d, h).
        direction: n.
        growing: p, shape (..., h).
        shrinking: q, shape (..., h).
        ratio: c.
        unit: The largest |pᵢ| or |qᵢ|; one if all vanish.
        growing_power: P = Σ pᵢ², in units of `unit`².
        shrinking_power: Q = Σ qᵢ², in units of `unit`².
        distance: √(PQ − Y²) = ½ √(‖u‖²‖v‖² − (u·v)²), Y = Σ pᵢ qᵢ, in units of `unit`². It is conserved for any
            learning rates, and zero for parallel layers.
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
        """Return the growth factor, shape (..., times), or (...) for a scalar time."""
        arguments = (self.target, *self.powers, self.rate, jnp.log(self.unit))
        target, growing, shrinking, rate, log_scale = (with_trailing_axes(each, times.ndim) for each in arguments)
        return growth_factor(times, target, growing, shrinking, rate, log_scale=log_scale)

    def layers(self, growth: GrowthFactor) -> tuple[AnyArray, AnyArray]:
        """Return the layers u and v = n·W, shape (..., times, h)."""
        extra = growth.log_growth.ndim - self.unit.ndim
        growing, shrinking = (
            jnp.expand_dims(each, tuple(range(-1 - extra, -1))) for each in (self.growing, self.shrinking)
        )
        second, along = growth._replace(log_growth=growth.log_growth[..., None]).layers(growing, shrinking)
        ratio = with_trailing_axes(self.ratio, extra + 1)
        return second / ratio, along * ratio

    def initial_strength(self) -> Array:
        """Return θ₀ = γ (P − Q), exactly zero if the two cancel up to rounding."""
        growing, shrinking = self.powers
        same = jnp.abs(growing - shrinking) <= self._rounding * (growing + shrinking)
        return jnp.where(same, 0, growing - shrinking) * self.unit**2

    def drive(self) -> Array:
        """Return S − θ₀, exactly zero if the two are equal up to rounding or all weights are at rest."""
        growing, shrinking = self.powers
        difference = self.target - self.initial_strength()
        same = jnp.abs(difference) <= self._rounding * (growing + shrinking) * self.unit**2
        return jnp.where(same | (growing + shrinking == 0), 0, difference)

    @property
    def _rounding(self) -> float:
        return _ROUNDING * float(jnp.finfo(self.unit.dtype).eps)

    @property
    def powers(self) -> tuple[Array, Array]:
        """Squared norms C = γP and D = γQ of the growth-factor equation, in units of `unit`²."""
        return self.multiplier * self.growing_power, self.multiplier * self.shrinking_power


def decompose(start: LineStart) -> Decomposition:
    """Decompose the initial weights, inside a compiled function; NaN for values outside the domain."""
    batch = start.batch
    first, second = (
        jnp.broadcast_to(each, batch + np.shape(each)[np.ndim(each) - axes :])
        for each, axes in ((start.network.first, 2), (start.network.second, 1))
    )
    direction = jnp.asarray(start.data.direction)
    power, target, _, multiplier, first_rate, second_rate, prefactor = (
        jnp.broadcast_to(each, batch) for each in start.numbers
    )
    ratio = (first_rate / second_rate) ** 0.25
    along = jnp.einsum("d,...dh->...h", direction, first)
    outer, inner = ratio[..., None] * second / 2, along / ratio[..., None] / 2
    growing, shrinking = _sum(outer, inner), _sum(outer, -inner)
    largest = jax.lax.stop_gradient(jnp.maximum(jnp.abs(growing), jnp.abs(shrinking)).max(axis=-1))
    unit = jnp.where(largest == 0, 1, largest)
    p, q = growing / unit[..., None], shrinking / unit[..., None]
    rate = 4 * prefactor * jnp.sqrt(first_rate) * jnp.sqrt(second_rate) * multiplier * power
    inside = all_finite(first).all((-2, -1)) & all_finite(second).all(-1) & all_finite(target, rate)
    for positive in (power, multiplier, first_rate, second_rate, prefactor):
        inside &= positive > 0
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
        rate=nan_outside(inside & _is_unit_vector(direction), rate),
    )


def end_of_growth(start: Decomposition, initial_strength: Array | np.ndarray, drive: Array | np.ndarray) -> GrowthLimit:
    """Return the limit of the growth factor for concrete numbers; its status is "static" if S = θ₀ up to rounding."""
    growing, shrinking = (np.asarray(start.multiplier * each) for each in (start.growing_power, start.shrinking_power))
    end = growth_limit(start.target, growing, shrinking, log_scale=np.log(start.unit))
    resting = np.asarray(drive) == 0
    return GrowthLimit(
        np.where(resting, 0.0, end.log_growth),
        np.where(resting, initial_strength, end.strength),
        np.where(resting, "static", end.status),
    )


def with_trailing_axes(value: Array | np.ndarray, count: int) -> Array:
    """Append the given number of axes of length one to an array."""
    return jnp.reshape(value, value.shape + (1,) * count)


def root(value: Array) -> Array:
    """Return √value, with derivative zero at zero."""
    return jnp.where(value == 0, 0, jnp.sqrt(jnp.where(value == 0, 1, value)))


def _sum(one: Array, other: Array) -> Array:
    """Add two numbers; the sum is zero if they cancel up to rounding, so that opposite layers are exactly opposite."""
    total = one + other
    smallest = _ROUNDING * jnp.finfo(total.dtype).eps * jnp.maximum(jnp.abs(one), jnp.abs(other))
    # Subtracting a constant keeps the derivative.
    return total - jax.lax.stop_gradient(jnp.where(jnp.abs(total) <= smallest, total, 0))


def _distance(p: Array, q: Array) -> Array:
    """Return √(PQ − Y²), without cancellation.

    The result is the length of one vector times the component of the other that is perpendicular to it.
    """
    p_longer = (jnp.sum(p**2, -1) >= jnp.sum(q**2, -1))[..., None]
    long, short = jnp.where(p_longer, p, q), jnp.where(p_longer, q, p)
    power = jnp.sum(long**2, axis=-1)
    across = short - (jnp.sum(long * short, -1) / jnp.where(power == 0, 1, power))[..., None] * long
    square = power * jnp.sum(across**2, axis=-1)
    parallel = square <= (_ROUNDING * jnp.finfo(p.dtype).eps * power) ** 2
    return jnp.where(parallel, 0, jnp.sqrt(jnp.where(parallel, 1, square)))


def _is_unit_vector(direction: Array | np.ndarray) -> Array | np.bool:
    return abs((direction**2).sum() - 1) <= 1e3 * float(jnp.finfo(direction.dtype).eps)


def _require_unit_vector(direction: Any) -> None:
    require(
        is_traced(direction) or bool(_is_unit_vector(np.asarray(direction))),
        "data.direction is not a unit vector",
        argument="data.direction",
        value=None if is_traced(direction) else float(np.sum(np.asarray(direction) ** 2)),
        remedy="divide the direction by its norm",
    )


def _require_shapes(first: Any, second: Any, direction: Any) -> None:
    inputs, shapes = direction.size, [getattr(each, "shape", ()) for each in (first, second)]
    require(
        len(shapes[0]) >= 2 and len(shapes[1]) >= 1 and shapes[0][-2:] == (inputs, shapes[1][-1]) and second.size,
        f"network.first and network.second have shapes {shapes[0]} and {shapes[1]}, but data.direction has "
        f"length {inputs}",
        argument="network.first",
        value=shapes[0],
        remedy="pass W of shape (..., d, h) and u of shape (..., h), for f(x) = γ x W u",
    )
    require(
        shapes[0][:-2] == shapes[1][:-1],
        f"network.first has shape {shapes[0]} and network.second has shape {shapes[1]}",
        argument="network.second",
        value=shapes[1],
        remedy="give both layers the same leading axes",
    )
