"""Whether a neuron learns lazily, richly, or richly after a delay, told from its start."""

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
from dynascope.theory.neuron.decomposition import Decomposition, decompose
from dynascope.theory.neuron.kernel import kernel_change
from dynascope.theory.neuron.state import STANDARDS, UNITS, TargetedNeuron, Vector
from dynascope.theory.neuron.whitened import limit_of
from dynascope.theory.units import in_units
from dynascope.validation import is_traced, require, require_known
from dynascope.validation.bounded import FiniteArray, PositiveFloat

__all__ = ["Regime", "regime", "regime_along", "rich_delay"]

_ROUNDED = 1 - 1e-9  # a start on the threshold itself is beyond it, whichever way its weights were rounded
_covers = functools.partial(
    covers,
    network="single linear neuron f(x) = a wᵀx, rates by layer",
    data="whitened inputs, any targets but zero",
    reference="arXiv:2406.06158",
    exact=False,
    assumes=(ONE_OUTPUT, ENOUGH_SAMPLES, WHITE_INPUTS),
)


class Regime(NamedTuple):
    """The regime of a start, with the numbers that decide it, in NumPy arrays of shape (...).

    Attributes:
        regime: "lazy" (the tangent kernel hardly moves), "rich" or "delayed rich" (the norm fits at once, with the
            direction of the start, and the direction turns much later).
        relative_change: ρ(∞) = ‖K∞ − K₀‖/‖K₀‖ of the tangent kernel.
        relative_imbalance: λ/s = δ/(κ ‖β*‖).
        fit_time: 1/|δ|, the time in which the norm fits where λ/s is large; ∞ for a balanced start.
        rich_delay: When the direction turns, as `rich_delay`.
        status: How training ends, as `NeuronLimit.status`; "saddle" and "static" starts learn nothing more.
    """

    regime: np.ndarray
    relative_change: np.ndarray
    relative_imbalance: np.ndarray
    fit_time: np.ndarray
    rich_delay: np.ndarray
    status: np.ndarray

    __repr__ = short_repr


@_covers(
    start="downstream: input weights larger than the output weight",
    gives="when the plateau of delayed rich learning ends",
)
@in_units(*STANDARDS, **UNITS, gives="t", infinite=True)
def rich_delay(
    initial_output: FiniteArray,
    initial_weights: Vector,
    target: Vector,
    *,
    rates: LayerRates = LayerRates(),
) -> Float[AnyArray, ...]:
    """The time at which a downstream neuron (δ < 0) has learned half of β*, along β*.

    t = ln[2ω ‖W⊥‖²/(|λ| c₊²)]/(κ Γ) in the notation of `neuron_trajectory`, with Γ ≈ 2 ‖β*‖²/|λ| for |λ| ≫ ‖β*‖. Until
    then the excess loss rests at about ½ ‖β*‖² sin²∠(w₀, β*). It is exact up to a relative exp(−|δ| t), so not
    meaningful for a nearly balanced start.

    Args:
        initial_output: a(0), shape (...).
        initial_weights: w(0), shape (..., d).
        target: β*, shape (d,) or (..., d).
        rates: η_w of the weights and η_a of the output weight.

    Returns:
        Gradient-flow times of the broadcast shape. 0 marks a start without delay: upstream, balanced, or already
        aligned; ∞ one that never leaves the saddle.

    Raises:
        InputError: A target of zero, or as `neuron_trajectory`. Where JAX traces them, such values give NaN.

    References:
        Kunin et al., arXiv:2406.06158, describe the delay; the time is ours.

    Example:
        >>> start, target = (0.1, np.array([0.5, 1.5, -1.0])), np.array([1.0, -0.5, 0.25])
        >>> with jax.enable_x64(True):
        ...     time = rich_delay(*start, target, rates=LayerRates(first=2.0, second=0.5))
        ...     print(f"{time:.6f}")
        3.594258
    """
    start = TargetedNeuron.checked(initial_output, initial_weights, target, rates)
    _require_target(start)
    return _escape_time(start)


@_covers(start="any but zero", gives="lazy, rich or delayed rich learning")
@in_units(*STANDARDS, **UNITS, gives={"fit_time": "t", "rich_delay": "t"}, infinite=True)
def regime(
    initial_output: FiniteArray,
    initial_weights: Vector,
    target: Vector,
    *,
    rates: LayerRates = LayerRates(),
    change_threshold: PositiveFloat = 0.1,
    delay_threshold: PositiveFloat = 0.1,
    imbalance_threshold: PositiveFloat = 4.0,
) -> Regime:
    """Tell from the start whether the neuron learns lazily, richly or richly after a delay.

    "lazy" if its tangent kernel changes by less than `change_threshold` in all, ρ(∞) < 0.1. Otherwise "delayed rich"
    if λ ≤ −4 ‖β*‖ and the norm fits in less than `delay_threshold` of the escape time, 1/|δ| < 0.1 t. Otherwise
    "rich". Expect lazy far upstream, and far downstream if w₀ is aligned with β*; delayed rich far downstream if it is
    nearly orthogonal; rich near balance from a small initialisation.

    Args:
        initial_output: a(0), shape (...).
        initial_weights: w(0), shape (..., d).
        target: β*, shape (d,) or (..., d).
        rates: η_w of the weights and η_a of the output weight.
        change_threshold: Largest relative change of the kernel that still counts as lazy, positive.
        delay_threshold: Largest ratio of the fit time to the escape time that counts as a delay, positive.
        imbalance_threshold: Smallest −λ/‖β*‖ that counts as far downstream, positive.

    Returns:
        `Regime`.

    Raises:
        InputError: A start at zero, a target of zero, a threshold that is not positive, or as `neuron_trajectory`.

    References:
        The regimes are those of Kunin et al., arXiv:2406.06158; the thresholds are ours.

    Example:
        >>> outputs, weights = np.array([20.0, 0.1, 0.1]), np.array([[0.0, 0.1], [0.0, 0.1], [0.0, 5.0]])
        >>> regime(outputs, weights, np.array([1.0, 0.1])).regime.tolist()
        ['lazy', 'rich', 'delayed rich']
    """
    require_known(
        change_threshold=change_threshold, delay_threshold=delay_threshold, imbalance_threshold=imbalance_threshold
    )
    given = TargetedNeuron.known(initial_output, initial_weights, target, rates)
    _require_target(given)
    start, escape = jax.device_get(_outlook(given))
    limit = limit_of(start)
    # A kernel that vanishes in the saddle at zero has changed by one, but has no direction to compare.
    vanished = (limit.output_weight == 0) & (limit.weights == 0).all(axis=-1)
    require(
        not np.any(vanished & (limit.status == "static")),
        "the neuron is at zero, where it stays",
        argument="initial_output",
        value=0.0,
        remedy="give it a nonzero output or input weight",
    )
    output = np.where(vanished, 1, limit.output_weight)
    change = kernel_change(given.neuron.output, given.neuron.weights, output, limit.weights, rates=rates)
    change = np.where(vanished, 1, change.relative_change)

    delta = start.rate * start.imbalance
    fit = np.where(delta == 0, np.inf, 1 / np.abs(np.where(delta == 0, 1, delta)))
    relative = np.asarray(start.imbalance / start.strength)
    delayed = (relative <= -imbalance_threshold * _ROUNDED) & (fit < delay_threshold * escape)
    name = np.select([change < change_threshold, delayed], ["lazy", "delayed rich"], "rich")
    return Regime(name, change, relative, fit, escape, limit.status)


def regime_along(
    times: np.ndarray,
    coefficients: np.ndarray,
    kernel_change: np.ndarray,
    imbalances: np.ndarray,
    target: np.ndarray,
    *,
    rate: float = 1.0,
) -> np.ndarray:
    """The regimes that paths to a target of unit length show, in the same words.

    Lazy if the kernel ends within a tenth of where it was, delayed rich if the map waits to turn, else rich.

    Args:
        times: Shape (times,).
        coefficients: β, shape (members, times, d).
        kernel_change: ρ, shape (members, times).
        imbalances: δ, shape (members,).
        target: β*, shape (d,).
        rate: κ = √(η_a η_w).
    """
    half_learned = times[np.argmax(coefficients @ target >= 0.5, axis=1)]
    # δ at most −4 κ times the target's length, and a plateau ten times as long as the norm takes to fit.
    delayed = (imbalances <= -4 * rate * _ROUNDED) & (half_learned * np.abs(imbalances) > 10)
    return np.select([kernel_change[:, -1] < 0.1, delayed], ["lazy", "delayed rich"], "rich")


def _require_target(start: TargetedNeuron) -> None:
    if not is_traced(start.target):
        require(
            (np.asarray(start.target) != 0).any(axis=-1).all(),
            "a target is zero",
            argument="target",
            value=0.0,
            remedy="give a direction to learn",
        )


@float64_jit
def _escape_time(start: TargetedNeuron) -> Array:
    return nan_outside(start.valid & jnp.any(start.target != 0, axis=-1), _escape(decompose(start)), leading=True)


@float64_jit
def _outlook(start: TargetedNeuron) -> tuple[Decomposition, Array]:
    apart = decompose(start)
    return apart, _escape(apart)


def _escape(start: Decomposition) -> Array:
    trapped = start.growing == 0
    at_once = (start.imbalance >= 0) | (start.across_square == 0)
    late = ~(trapped | at_once)
    lag = jnp.where(late, -start.imbalance, 1)
    rate = jnp.where(late & (start.turning_rate > 0), start.turning_rate, 1)
    amount = jnp.log(jnp.where(late, 2 * start.omega, 1) / lag) + jnp.log(jnp.where(late, start.across_square, 1))
    amount = amount - 2 * jnp.log(jnp.where(late, jnp.abs(start.growing), 1))
    time = jnp.maximum(amount, 0) / (start.rate * rate)
    never = trapped | (late & (start.turning_rate == 0))
    return jnp.where(never, jnp.inf, jnp.where(at_once, 0, time))
