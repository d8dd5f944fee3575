"""The growth factor: a scalar equation that solves every two-layer linear mode.

In a basis in which one combination of the two layers grows and the other shrinks, both combinations depend on a single
number g(t) with g(0) = 1. Modes with unequal layers, one-dimensional inputs with layer-wise rates, and scalar networks
with many neurons all reduce to this equation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Real

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.kernels import all_finite, broadcast, nan_outside
from dynascope.theory.units import in_units
from dynascope.validation import array_namespace, require_known
from dynascope.validation.bounded import FiniteArray, NonNegativeArray, PositiveArray

__all__ = ["GrowthFactor", "GrowthLimit", "growth_factor", "growth_limit", "mirrored"]

# Below this phase ρt the solution is a power series in (ρt)², which has no singularity at ρ = 0.
_SERIES_BELOW = 0.2


class GrowthFactor(NamedTuple):
    """The growth factor over time (see `growth_factor`) with the strength and the residual, all of the broadcast shape.

    Attributes:
        log_growth: ln g, finite even if g overflows or underflows.
        strength: θ = C g − D/g.
        residual: S − θ, computed without cancellation.
    """

    log_growth: Float[AnyArray, ...]
    strength: Float[AnyArray, ...]
    residual: Float[AnyArray, ...]

    __repr__ = short_repr

    @property
    def growth(self) -> Float[AnyArray, ...]:
        """The growth factor g; infinite if it overflows."""
        return _exponential(self.log_growth)

    @property
    def inverse_growth(self) -> Float[AnyArray, ...]:
        """The inverse growth factor 1/g; infinite if it overflows."""
        return _exponential(-self.log_growth)

    def layers(
        self, growing: Real[ArrayLike, ...], shrinking: Real[ArrayLike, ...]
    ) -> tuple[Float[AnyArray, ...], Float[AnyArray, ...]]:
        """Return the weights of the two layers, p √g + q/√g and p √g − q/√g.

        Args:
            growing: p, half the sum of the two initial layers; zero entries stay zero even if g overflows.
            shrinking: q, half the difference of the two initial layers.
        """
        grown = _times_exponential(growing, self.log_growth / 2)
        shrunk = _times_exponential(shrinking, -self.log_growth / 2)
        return grown + shrunk, grown - shrunk


class GrowthLimit(NamedTuple):
    """Limit of the growth factor as t → ∞.

    Attributes:
        log_growth: ln g∞; ±∞ if g grows or shrinks forever.
        strength: θ∞, equal to S unless the flow is trapped at the saddle.
        status: "converges" (to θ∞ = S, exponentially), "power law" (θ → S = 0 as ±1/(k t)), "saddle" (trapped at
            θ∞ = 0 ≠ S) or "static" (g = 1 is a fixed point).
    """

    log_growth: np.ndarray
    strength: np.ndarray
    status: np.ndarray

    __repr__ = short_repr


@in_units(
    "target|growing|shrinking",
    "rate",
    target="s",
    growing="s",
    shrinking="s",
    rate="s^-1 t^-1",
    times="t",
    gives={"strength": "s", "residual": "s"},
)
def growth_factor(
    times: NonNegativeArray,
    target: FiniteArray,
    growing: NonNegativeArray,
    shrinking: NonNegativeArray,
    rate: PositiveArray,
    *,
    log_scale: FiniteArray = 0.0,
) -> GrowthFactor:
    """Solve the growth-factor equation in closed form.

    dg/dt = k (S g − C g² + D), g(0) = 1

    With r = √(S² + 4CD), e = exp(−k r t) and E = (1 − e)/r, the solution is g = ν/μ, ν = 1 + e + (2D + S) E,
    μ = 1 + e + (2C − S) E. The strength θ = C g − D/g obeys d ln g/dt = k (S − θ); hence S − θ = 4 e (S − θ₀)/(ν μ).
    Both g and θ are monotone in time.

    All arguments broadcast. The function can be compiled, and the result has the dtype of the arguments. Its
    derivatives are finite everywhere, even if C, D, S or r vanishes or g overflows or underflows; a derivative too
    large for the dtype is clipped.

    Args:
        times: Gradient-flow times t ≥ 0.
        target: S, the target strength, of any sign.
        growing: C ≥ 0, squared norm of the combination of layers that grows for S > 0.
        shrinking: D ≥ 0, squared norm of the combination that shrinks for S > 0.
        rate: k > 0.
        log_scale: ln σ for an initialisation scale σ that multiplies the weights. C and D are then replaced by σ²C and
            σ²D without underflow. Use `log_scale` for tiny initial weights, because values of C and D below the
            smallest normal floating-point number count as zero.

    Returns:
        ln g, the strength θ and the residual S − θ.

    Raises:
        InputError: If a value is not finite, t < 0, C < 0, D < 0, k ≤ 0, or shapes do not match. Inside `jit`, values
            outside this domain give NaN.

    References:
        Nam, DPhil thesis (2024), Theorem 1 of chapter 6, and Xu & Ziyin, arXiv:2401.07085, Theorem 1, combined into one
        form.

    Example:
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     logistic = growth_factor(3.0, 2.0, 1e-3, 0.0, 1.4)
        ...     print(f"{logistic.strength:.6f} {logistic.residual:.6f}")
        1.379777 0.620223
    """
    return _growth(
        *broadcast(times=times, target=target, growing=growing, shrinking=shrinking, rate=rate, log_scale=log_scale)
    )


@in_units("target|growing|shrinking", target="s", growing="s", shrinking="s", gives={"strength": "s"}, infinite=True)
def growth_limit(
    target: FiniteArray,
    growing: NonNegativeArray,
    shrinking: NonNegativeArray,
    *,
    log_scale: FiniteArray = 0.0,
) -> GrowthLimit:
    """Compute the limit of the growth factor and the type of approach to it.

    For C, D > 0 the flow converges to θ = S with g∞ = (S + r)/(2C) = 2D/(r − S). If C = 0, no combination grows, and
    S > 0 cannot be reached. If D = 0, no combination shrinks, and S < 0 cannot be reached.

    Args:
        target: S, as in `growth_factor`.
        growing: C ≥ 0.
        shrinking: D ≥ 0.
        log_scale: ln σ.

    Returns:
        The limit, in NumPy arrays of the broadcast shape.

    Raises:
        InputError: If a value is not finite, C or D is negative, shapes do not match, or JAX traces a value.

    Example:
        >>> limit = growth_limit(np.array([1.0, -1.0]), 0.5, 0.0)
        >>> [(float(strength), str(status)) for strength, status in zip(limit.strength, limit.status)]
        [(1.0, 'converges'), (0.0, 'saddle')]
    """
    start = {"target": target, "growing": growing, "shrinking": shrinking, "log_scale": log_scale}
    require_known(**start)
    s, c, d, log_c = (np.asarray(each, np.float64) for each in broadcast(**start))
    square = np.exp(2 * log_c)
    radius = np.sqrt(s**2 + 4 * (square * c) * (square * d))
    trapped = ((c == 0) & (s > 0)) | ((d == 0) & (s < 0))
    static = ((c == 0) & (d == 0)) | (square * (c - d) == s)
    power_law = (s == 0) & ((c == 0) != (d == 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.log((np.abs(s) + radius) / 2) - np.log(np.where(s >= 0, c, d)) - 2 * log_c
        logarithm = np.where(s == 0, (np.log(d) - np.log(c)) / 2, np.sign(s) * up)
        # For s ≥ 0, g∞ − 1 = 2 (s − (C − D))/(r + 2C − s), without cancellation if g∞ is close to one.
        rising = np.where(s >= 0, 1.0, -1.0)
        share = 2 * rising * _sum(s, square * d, -square * c) / (radius + 2 * square * np.where(s >= 0, c, d) - abs(s))
        logarithm = np.where(np.abs(share) < 0.5, rising * np.log1p(share), logarithm)
    return GrowthLimit(
        log_growth=np.where(static, 0.0, logarithm),
        strength=np.where(static, square * (c - d), np.where(trapped, 0.0, s)),
        status=np.select([static, trapped, power_law], ["static", "saddle", "power law"], "converges"),
    )


def mirrored(target: Array, growing: Array, shrinking: Array) -> tuple[Array, Array, Array, Array]:
    """Return S, C and D of the equivalent flow with S ≥ 0, and whether the flow was mirrored.

    The symmetry is g → 1/g, θ → −θ, S → −S, C ↔ D.
    """
    flipped = (target < 0) | ((target == 0) & (shrinking > growing))
    return (
        jnp.where(flipped, -target, target),
        jnp.where(flipped, shrinking, growing),
        jnp.where(flipped, growing, shrinking),
        flipped,
    )


def _exponential(values: Any) -> Any:
    """Return the exponential, in NumPy or JAX depending on the values; NumPy keeps their precision."""
    with np.errstate(over="ignore"):
        return array_namespace(values).exp(values)


def _times_exponential(amount: Any, exponent: Any) -> Any:
    """Return amount·exp(exponent); zero if the amount is zero, even if the exponential overflows."""
    numbers = array_namespace(exponent)
    amount = numbers.asarray(amount, dtype=exponent.dtype)
    ceiling = 0.8 * float(np.log(np.finfo(exponent.dtype).max))
    return amount * _exponential(numbers.where(amount == 0, numbers.minimum(exponent, ceiling), exponent))


@float64_jit
def _growth(
    times: Array, target: Array, growing: Array, shrinking: Array, rate: Array, log_scale: Array
) -> GrowthFactor:
    s, unit_c, unit_d, flipped = mirrored(target, growing, shrinking)
    log_square = 2 * log_scale
    c, d = unit_c * jnp.exp(log_square), unit_d * jnp.exp(log_square)
    clock = rate * times
    radius_squared = s**2 + 4 * c * d
    early = clock * jnp.sqrt(radius_squared) < _SERIES_BELOW
    gap = _sum(s, d, -c)

    # Early: ν and μ over 2 exp(−ρt/2), as power series in y = (ρt/2)². The branch that is not chosen gets harmless
    # numbers, because an infinite derivative times zero would be NaN.
    clock_s, clock_c, clock_d = (jnp.where(early, clock, 0) * x for x in (s, c, d))
    y = (clock_s / 2) ** 2 + clock_c * clock_d
    cosh = 1 + y / 2 * (1 + y / 12 * (1 + y / 30 * (1 + y / 56 * (1 + y / 90))))
    sinhc = 1 + y / 6 * (1 + y / 20 * (1 + y / 42 * (1 + y / 72 * (1 + y / 110))))
    nu = cosh + (clock_s / 2 + clock_d) * sinhc
    mu = cosh + (clock_c - clock_s / 2) * sinhc
    early_growth = _log_ratio(nu, gap * jnp.where(early, clock, 0) * sinhc, jnp.log(nu) - jnp.log(mu))
    early_strength = c * nu / mu - d * mu / nu
    early_residual = gap / (nu * mu)

    # Late: μ = (1 + s/r)(e + escaping·σ²). The first term dominates at the saddle, the second after the escape.
    radius = jnp.sqrt(jnp.where(early, 1, radius_squared))
    phase = jnp.where(early, 1, clock * radius)
    decayed = jnp.exp(-phase)
    elapsed = -jnp.expm1(-phase) / radius
    nu = 1 + decayed + (s + 2 * d) * elapsed
    front = 1 + s / radius
    source = 2 * elapsed + 4 * d / (radius * (radius + s))
    escaping = unit_c * source / front
    escaped, remaining, log_escape = _escape(phase + log_square, escaping)
    late_growth = _log_ratio(nu, 2 * gap * elapsed, log_escape - log_square + jnp.log(nu / front))
    late_residual = 4 * gap * remaining / (nu * front)
    late_strength = jnp.where(
        escaped > 0.5, s - late_residual, nu / source * escaped - _times_exponential(d, -late_growth)
    )

    signed = jnp.where(flipped, -1, 1)
    inside = all_finite(times, target, growing, shrinking, rate, log_scale)
    inside &= (times >= 0) & (growing >= 0) & (shrinking >= 0) & (rate > 0)
    return nan_outside(
        inside,
        GrowthFactor(
            log_growth=signed * jnp.where(early, early_growth, late_growth),
            strength=signed * jnp.where(early, early_strength, late_strength),
            residual=signed * jnp.where(early, early_residual, late_residual),
        ),
    )


def _sum(*terms: Any) -> Any:
    """Return the sum of three numbers with a single rounding error, even if they nearly cancel."""
    first, second, third = terms
    near, lost = _exact_sum(first, second)
    total, missed = _exact_sum(near, third)
    return total + (lost + missed)


def _exact_sum(one: Any, other: Any) -> tuple[Any, Any]:
    """Return the sum of two numbers, and its rounding error."""
    total = one + other
    part = total - one
    return total, (one - (total - part)) + (other - part)


def _log_ratio(nu: Array, difference: Array, logarithm: Array) -> Array:
    """Return ln(ν/μ), computed from ν − μ if ν and μ are nearly equal; otherwise the given logarithm."""
    share = difference / nu
    near = jnp.abs(share) < 0.5
    return jnp.where(near, -jnp.log1p(-jnp.where(near, share, 0)), logarithm)


def _escape(phase: Array, amount: Array) -> tuple[Array, Array, Array]:
    """Return a/(a + e⁻ᶻ), e⁻ᶻ/(a + e⁻ᶻ) and −ln(a + e⁻ᶻ), for a phase z and an amount a ≥ 0."""
    log_amount = jnp.log(jnp.where(amount == 0, 1, amount))
    dwelling = (amount == 0) | (phase + log_amount < 0)
    small = _times_exponential(jnp.where(dwelling, amount, 1), jnp.where(dwelling, phase, 0))
    large = jnp.exp(jnp.where(dwelling, 0, -phase - log_amount))
    return (
        jnp.where(dwelling, small / (1 + small), 1 / (1 + large)),
        jnp.where(dwelling, 1 / (1 + small), large / (1 + large)),
        jnp.where(dwelling, phase - jnp.log1p(small), -log_amount - jnp.log1p(large)),
    )
