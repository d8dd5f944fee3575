"""Exact trajectory of a neuron on whitened inputs, in closed form, from any initial weights."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.compilation import AnyArray, float64_jit
from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import ENOUGH_SAMPLES, ONE_OUTPUT, WHITE_INPUTS
from dynascope.theory.domain import covers
from dynascope.theory.kernels import nan_outside
from dynascope.theory.layer_rates import LayerRates
from dynascope.theory.neuron.coordinates import polar
from dynascope.theory.neuron.decomposition import Decomposition, decompose
from dynascope.theory.neuron.state import STANDARDS, UNITS, Neuron, TargetedNeuron, Vector
from dynascope.theory.units import in_units
from dynascope.validation import require_shape
from dynascope.validation.bounded import FiniteArray, NonNegativeArray

__all__ = ["NeuronLimit", "NeuronTrajectory", "limit_of", "neuron_imbalance", "neuron_limit", "neuron_trajectory"]

_DATA = "whitened inputs, any targets"
_BLOCK = 50_000  # number of neurons × times evaluated at once, so that intermediate arrays fit into the cache
_AT_REST = 1e-12  # relative size of the gradient, below which the initial weights count as a fixed point
_covers = functools.partial(
    covers, network="single linear neuron f(x) = a wᵀx, layer-wise rates", start="any", reference="arXiv:2406.06158"
)


class NeuronTrajectory(NamedTuple):
    """Trajectory of a neuron on whitened inputs.

    Attributes:
        output_weight: a(t), shape (..., times).
        weights: w(t), shape (..., times, d).
        excess_loss: ½ ‖β − β*‖², the loss above that of the best linear map, computed without cancellation, shape (...,
            times).
    """

    output_weight: Float[AnyArray, ...]
    weights: Float[AnyArray, "... d"]
    excess_loss: Float[AnyArray, ...]

    __repr__ = short_repr

    @property
    def coefficients(self) -> Float[Array | np.ndarray, "... d"]:
        """The linear map β(t) = a w, shape (..., times, d)."""
        return self.output_weight[..., None] * self.weights


class NeuronLimit(NamedTuple):
    """Limit of a neuron as t → ∞, in NumPy arrays.

    Attributes:
        output_weight: a∞, shape (...).
        weights: w∞, shape (..., d).
        coefficients: β∞, equal to β* unless the flow is trapped in a saddle, shape (..., d).
        excess_loss: ½ ‖β∞ − β*‖², shape (...).
        status: "converges" (to β*, exponentially), "power law" (a balanced neuron with a zero target: β → 0 as 1/t),
            "saddle" (trapped at a = 0, w ⊥ β*) or "static" (the initial weights are a fixed point), shape (...).
    """

    output_weight: np.ndarray
    weights: np.ndarray
    coefficients: np.ndarray
    excess_loss: np.ndarray
    status: np.ndarray

    __repr__ = short_repr


@_covers(data="any", gives="the conserved imbalance between the layers", assumes=(ONE_OUTPUT,))
def neuron_imbalance(
    output: FiniteArray,
    weights: Vector,
    *,
    rates: LayerRates = LayerRates(),
) -> Float[AnyArray, ...]:
    """Compute the imbalance of a neuron f(x) = a wᵀx, which gradient flow conserves.

    δ = η_w a² − η_a ‖w‖²

    A neuron with δ > 0 is called upstream: its output weight is large, and its input weights learn fast. A neuron with
    δ < 0 is called downstream.

    Args:
        output: a, shape (...).
        weights: w, shape (..., d).
        rates: Learning rates η_w of w and η_a of a.

    Returns:
        δ, in the broadcast shape of the arguments, accurate to the rounding error of the weights even if δ is small.

    Raises:
        InputError: If a value is not finite, shapes do not match, or a rate is not positive. Inside `jit`, values
            outside this domain give NaN.

    References:
        Kunin, Raventós, Dominé, Chen, Klindt, Saxe, Ganguli, arXiv:2406.06158, section 3, here with learning rates.

    Example:
        >>> print(f"{neuron_imbalance(0.3, np.array([0.2, -0.1, 0.4])):.2f}")
        -0.12
    """
    return _imbalance(Neuron.checked(rates, output=output, weights=weights))


@_covers(
    data=_DATA,
    gives="the weights, the linear map and the loss at any time",
    assumes=(ONE_OUTPUT, ENOUGH_SAMPLES, WHITE_INPUTS),
)
@in_units(*STANDARDS, **UNITS, times="t", gives=("a", "w", "a^2 w^2"))
def neuron_trajectory(
    initial_output: FiniteArray,
    initial_weights: Vector,
    target: Vector,
    times: NonNegativeArray,
    *,
    rates: LayerRates = LayerRates(),
) -> NeuronTrajectory:
    """Compute the exact gradient flow of the neuron f(x) = a wᵀx on whitened inputs, E[x xᵀ] = I.

    da/dt = −η_a w·(β − β*), dw/dt = −η_w a (β − β*), β = a w

    The flow conserves `neuron_imbalance`. Let κ = √(η_a η_w), T = κt, A = (η_w/η_a)^¼ a, W = (η_a/η_w)^¼ w,
    λ = A² − ‖W‖², s = ‖β*‖ and ω = √(λ²/4 + s²). Let (e_p, e_A) be the unit eigenvector of ((−λ/2, s), (s, λ/2)) for
    +ω, and let c₊ = e_p p₀ + e_A A₀ and c₋ = e_p A₀ − e_A p₀ be the components of the initial weights (p₀ = β̂*·W₀,
    A₀). With m = exp(−2ωT) and Γ = 2ω + λ, the solution is

        A = (e_A c₊ + e_p c₋ m)/√D,  β̂*·W = (e_p c₊ − e_A c₋ m)/√D,  W⊥ = exp(−ΓT/2) W⊥(0)/√D,
        D = m + (c₊² + c₋² m)(1 − m)/(2ω) + ‖W⊥(0)‖² m (1 − exp(−λT))/λ,
        s − β̂*·β = [m (s − A₀ p₀) + s ‖W⊥(0)‖² m (1 − exp(−λT))/λ]/D.

    In the code, D and the growing exponentials are scaled to avoid cancellation, overflow and underflow. Initial
    weights down to 1e-300 and times up to 1e300 are valid. Initial weights with c₊ = 0 (to a relative accuracy of
    1e-12) flow into the saddle a = 0, w ⊥ β*; `neuron_limit` reports this case.

    The paper sums the loss over samples and whitens to XᵀX = I. Here the loss is the mean, L = ½ E(y − xᵀβ)², and
    XᵀX/n = I. Both conventions lead to the same β* and the same time.

    Args:
        initial_output: a(0), shape (...), of any sign or zero.
        initial_weights: w(0), shape (..., d).
        target: β* = E[x y], shape (d,) or (..., d); may be zero.
        times: Gradient-flow times t ≥ 0, a scalar or an array of shape (times,), in any order.
        rates: Learning rates η_w of the weights and η_a of the output weight; both broadcast with the leading
            dimensions.

    Returns:
        The trajectory, with the dtype of the arguments. The dimension of the times follows those of the batch and is
        absent for a scalar time. The function can be compiled and vectorised. It is differentiable with respect to all
        arguments, except at a target of zero.

    Raises:
        InputError: If a value is not finite, shapes do not match, t < 0, or a rate is not positive. Inside `jit`,
            values outside this domain give NaN.

    References:
        Kunin et al., arXiv:2406.06158, section 3 and appendix A; the form for any imbalance is derived here.

    Example:
        >>> start, target = (0.3, np.array([0.2, -0.1, 0.4])), np.array([1.0, -0.5, 0.25])
        >>> with jax.enable_x64(True):
        ...     run = jax.device_get(neuron_trajectory(*start, target, np.array([1.0, 3.0])))
        >>> run.output_weight.round(6).tolist(), run.excess_loss.round(6).tolist()
        ([0.686133, 1.033857], [0.228938, 0.001315])
        >>> run.coefficients[1].round(6).tolist()
        [0.973817, -0.486909, 0.292105]
    """
    start = TargetedNeuron.checked(initial_output, initial_weights, target, rates)
    require_shape("times", times, (), (None,))
    return _trajectory(start, times)


@_covers(
    data=_DATA, gives="the end of training, and how it is reached", assumes=(ONE_OUTPUT, ENOUGH_SAMPLES, WHITE_INPUTS)
)
@in_units(*STANDARDS, **UNITS, gives=("a", "w", "a w", "a^2 w^2", ""))
def neuron_limit(
    initial_output: FiniteArray,
    initial_weights: Vector,
    target: Vector,
    *,
    rates: LayerRates = LayerRates(),
) -> NeuronLimit:
    """Compute the limit of `neuron_trajectory` as t → ∞ and the type of approach to it.

    If c₊ ≠ 0, the flow converges to A = ±√(ω + λ/2), W = ±√(ω − λ/2) β̂*, with the sign of c₊, so β = β*. If c₊ = 0, it
    ends in the saddle A = 0, W = √−λ W⊥/‖W⊥‖. With a zero target, only the larger of the two layers remains nonzero.

    Args:
        initial_output: a(0), shape (...).
        initial_weights: w(0), shape (..., d).
        target: β*, shape (d,) or (..., d).
        rates: Learning rates η_w of the weights and η_a of the output weight.

    Returns:
        The limit of each neuron.

    Raises:
        InputError: As for `neuron_trajectory`.

    Example:
        >>> outputs, weights = np.array([1.0, 0.0]), np.array([[0.0, 0.0], [0.0, 2.0]])
        >>> limit = neuron_limit(outputs, weights, np.array([0.5, 0.0]))
        >>> limit.status.tolist(), limit.excess_loss.round(3).tolist()
        (['converges', 'static'], [0.0, 0.125])
    """
    start = TargetedNeuron.known(initial_output, initial_weights, target, rates)
    return limit_of(jax.device_get(_decomposed(start)))


def limit_of(start: Decomposition) -> NeuronLimit:
    """Return the limit from a decomposition in NumPy arrays."""
    half, sign = start.imbalance / 2, np.sign(start.growing)
    no_target, size = start.strength == 0, np.sqrt(start.across_square)
    learned = (start.growing != 0) & ~no_target
    grown = np.sqrt(start.omega + np.abs(half))
    other = start.strength / np.where(grown == 0, 1, grown)
    upstream = half >= 0

    # With a zero target, the imbalance fixes the final size of the larger layer; the same holds in the saddle.
    kept = np.where(no_target & upstream, np.sign(start.output) * np.sqrt(np.maximum(2 * half, 0)), 0)
    output = np.where(learned, sign * np.where(upstream, grown, other), kept)
    aligned = np.where(learned, sign * np.where(upstream, other, grown), 0)
    shrink = np.where(learned | upstream, 0, np.sqrt(np.maximum(-2 * half, 0)) / np.where(size == 0, 1, size))
    weights = aligned[..., None] * start.direction + shrink[..., None] * start.across

    initial = start.aligned[..., None] * start.direction + start.across
    target = start.strength[..., None] * start.direction
    missing = start.output[..., None] * initial - target
    rounding = max(_AT_REST, 8 * float(np.finfo(start.output.dtype).eps))
    forces = np.abs(start.output) * np.linalg.norm(initial, axis=-1) + start.strength
    unlifted = np.abs(start.aligned) <= rounding * np.sum(np.abs(start.direction * initial), axis=-1)
    at_rest = np.where(start.output == 0, unlifted, np.linalg.norm(missing, axis=-1) <= rounding * forces)

    output = np.where(at_rest, start.output, output)
    weights = np.where(at_rest[..., None], initial, weights)
    fitted = at_rest & (start.output != 0) | learned | no_target
    return NeuronLimit(
        output_weight=output / start.ratio,
        weights=weights * start.ratio[..., None],
        coefficients=np.where(fitted[..., None], target, 0),
        excess_loss=np.where(fitted, 0, start.strength**2 / 2),
        status=np.select(
            [at_rest, ~learned & ~no_target, no_target & (half == 0)], ["static", "saddle", "power law"], "converges"
        ),
    )


_decomposed = float64_jit(decompose)


@float64_jit
def _imbalance(neuron: Neuron) -> Array:
    a, w, (weight_rate, output_rate) = neuron
    above, below = jnp.sqrt(weight_rate) * a, jnp.sqrt(output_rate) * polar(w)[0]
    return nan_outside(neuron.valid, (above - below) * (above + below), leading=True)


@float64_jit
def _trajectory(start: TargetedNeuron, times: Array) -> NeuronTrajectory:
    decomposition = decompose(start)
    dtype = jnp.result_type(times, decomposition.output)
    path = _evaluate(
        jax.tree.map(lambda value: value.astype(dtype), decomposition), jnp.atleast_1d(times).astype(dtype)
    )
    path = nan_outside(start.valid[..., None] & jnp.isfinite(times) & (times >= 0), path, leading=True)
    if times.ndim:
        return path
    return NeuronTrajectory(path.output_weight[..., 0], path.weights[..., 0, :], path.excess_loss[..., 0])


def _evaluate(start: Decomposition, times: Array) -> NeuronTrajectory:
    batch = start.output.shape
    flat = jax.tree.map(lambda value: value.reshape(-1, *value.shape[len(batch) :]), start)
    block = max(1, _BLOCK // max(1, times.size))
    if flat.output.size <= block:
        path = _evaluate_block(flat, times)
    else:
        path = jax.lax.map(lambda one: _evaluate_block(one, times), flat, batch_size=block)
    return jax.tree.map(lambda value: value.reshape(*batch, *value.shape[1:]), path)


def _evaluate_block(start: Decomposition, times: Array) -> NeuronTrajectory:
    s = Decomposition(*(value if value.ndim > start.output.ndim else value[..., None] for value in start))
    upstream = s.imbalance >= 0
    lag = jnp.where(upstream, s.imbalance, -s.imbalance)
    slower = jnp.where(upstream, 2 * s.omega, s.turning_rate)
    trapped = s.growing == 0
    log_growing = jnp.log(jnp.where(trapped, 1, jnp.abs(s.growing)))
    sign = jnp.where(trapped, s.growing, jnp.sign(s.growing))
    excess = s.output * s.aligned - s.strength
    shrinking_square = s.shrinking**2

    # With q = exp(−slower T), D = c₊² E + q N. D is divided by the larger of q and c₊². The phase is half the logarithm
    # of the ratio of c₊² to q, and the divided c₊ and √q are `grown` and `shrunk`.
    clock = s.rate * times
    half = slower * clock / 2
    phase = half + log_growing
    dwelling = trapped | (phase < 0)
    ceiling = 0.4 * jnp.log(jnp.finfo(clock.dtype).max)
    ratio = jnp.exp(jnp.where(trapped, jnp.minimum(half, ceiling), -jnp.abs(phase)))
    grown = sign * jnp.where(dwelling, ratio, 1)
    shrunk = jnp.where(dwelling, 1, ratio)
    root_lag = jnp.exp(-lag * clock / 2)
    faded = jnp.where(upstream, 1, root_lag**2)
    spent = _elapsed(2 * s.omega, clock)
    spent_across = s.across_square * _elapsed(lag, clock)
    scale = jax.lax.rsqrt(grown**2 * spent + shrunk**2 * (faded * (1 + shrinking_square * spent) + spent_across))

    decayed = s.shrinking * jnp.exp(-half) * faded * shrunk
    output = (s.out * grown + s.along * decayed) * scale
    aligned = (s.along * grown - s.out * decayed) * scale
    across = jnp.where(upstream, root_lag, 1) * shrunk * scale
    missing = (shrunk * scale) ** 2 * (faded * excess - s.strength * spent_across)
    loss = (missing**2 + (output * across) ** 2 * s.across_square) / 2
    aligned, across = aligned * s.ratio, across * s.ratio
    weights = aligned[..., None] * s.direction[..., None, :] + across[..., None] * s.across[..., None, :]
    return NeuronTrajectory(output / s.ratio, weights, loss)


def _elapsed(rate: Array, time: Array) -> Array:
    """Return (1 − exp(−rate·time))/rate, and the time itself if the rate is zero."""
    x = rate * time
    early = x < jnp.sqrt(jnp.finfo(x.dtype).eps)
    return jnp.where(early, time * (1 - jnp.where(early, x, 0) / 2), -jnp.expm1(-x) / jnp.where(rate == 0, 1, rate))
