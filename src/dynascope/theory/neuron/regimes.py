"""Learning regime of a neuron (lazy, rich or delayed rich), predicted from its initial weights."""

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

_ROUNDED = 1 - 1e-9  # an imbalance at the threshold counts as beyond it, regardless of rounding
_covers = functools.partial(
    covers,
    network="single linear neuron f(x) = a wᵀx, layer-wise rates",
    data="whitened inputs, any nonzero targets",
    reference="arXiv:2406.06158",
    exact=False,
    assumes=(ONE_OUTPUT, ENOUGH_SAMPLES, WHITE_INPUTS),
)


class Regime(NamedTuple):
    """The predicted regime and the numbers that determine it, as NumPy arrays of shape (...).

    Attributes:
        regime: "lazy" (the tangent kernel hardly changes), "rich" or "delayed rich". In delayed rich learning, the norm
            is fitted at once, and the direction of the map turns much later.
        relative_change: ρ(∞) = ‖K∞ − K₀‖/‖K₀‖ of the tangent kernel.
        relative_imbalance: λ/s = δ/(κ ‖β*‖).
        fit_time: 1/|δ|, the time in which the norm of the map is fitted if |λ|/s is large; ∞ for a balanced neuron.
        rich_delay: The time at which the direction turns, from `rich_delay`.
        status: How training ends, as in `NeuronLimit.status`; a neuron with status "saddle" or "static" does not learn
            β*.
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
    gives="the time at which the plateau of delayed rich learning ends",
)
@in_units(*STANDARDS, **UNITS, gives="t", infinite=True)
def rich_delay(
    initial_output: FiniteArray,
    initial_weights: Vector,
    target: Vector,
    *,
    rates: LayerRates = LayerRates(),
) -> Float[AnyArray, ...]:
    """Compute the time at which a downstream neuron (δ < 0) has learned half of β*, measured along β*.

    t = ln[2ω ‖W⊥‖²/(|λ| c₊²)]/(κ Γ)

    The symbols are defined in `neuron_trajectory`; Γ ≈ 2 ‖β*‖²/|λ| for |λ| ≫ ‖β*‖. Until t, the excess loss stays at a
    plateau of about ½ ‖β*‖² sin²∠(w₀, β*). The formula is exact up to a relative error of exp(−|δ| t), and is therefore
    not meaningful for a nearly balanced neuron.

    Args:
        initial_output: a(0), shape (...).
        initial_weights: w(0), shape (..., d).
        target: β*, shape (d,) or (..., d).
        rates: Learning rates η_w of the weights and η_a of the output weight.

    Returns:
        Gradient-flow times, in the broadcast shape of the arguments: 0 for a neuron without delay (upstream, balanced,
        or already aligned), ∞ for a neuron that never leaves the saddle.

    Raises:
        InputError: If the target is zero, or as for `neuron_trajectory`. Inside `jit`, values outside this domain give
            NaN.

    References:
        Kunin et al., arXiv:2406.06158, describe the delay; the formula for the time is derived here.

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


@_covers(start="any nonzero weights", gives="the learning regime: lazy, rich or delayed rich")
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
    """Predict from the initial weights whether a neuron learns in the lazy, the rich or the delayed rich regime.

    With the default thresholds, the regime is "lazy" if the total relative change of the tangent kernel is small,
    ρ(∞) < 0.1. Otherwise, it is "delayed rich" if λ ≤ −4 ‖β*‖ and the norm is fitted much earlier than the escape time
    t (`rich_delay`), 1/|δ| < 0.1 t. In all other cases, it is "rich".

    Neurons with a large positive imbalance (upstream) are lazy, and so are neurons with a large negative imbalance
    (downstream) if w₀ is aligned with β*. If w₀ is nearly orthogonal to β*, downstream neurons are delayed rich. Nearly
    balanced neurons with a small initialisation are rich.

    Args:
        initial_output: a(0), shape (...).
        initial_weights: w(0), shape (..., d).
        target: β*, shape (d,) or (..., d).
        rates: Learning rates η_w of the weights and η_a of the output weight.
        change_threshold: Largest relative change of the kernel that still counts as lazy, positive.
        delay_threshold: Largest ratio of the fit time to the escape time that still counts as a delay, positive.
        imbalance_threshold: Smallest −λ/‖β*‖ that counts as far downstream, positive.

    Returns:
        The regime of each neuron, with the numbers that determine it.

    Raises:
        InputError: If the output and input weights are all zero, the target is zero, a threshold is not positive, or as
            for `neuron_trajectory`.

    References:
        The regimes are those of Kunin et al., arXiv:2406.06158; the thresholds are our choice.

    Example:
        >>> outputs, weights = np.array([20.0, 0.1, 0.1]), np.array([[0.0, 0.1], [0.0, 0.1], [0.0, 5.0]])
        >>> regime(outputs, weights, np.array([1.0, 0.1])).regime.tolist()
        ['lazy', 'rich', 'delayed rich']
    """
    require_known(
        change_threshold=change_threshold, delay_threshold=delay_threshold, imbalance_threshold=imbalance_threshold
    )
    neuron = TargetedNeuron.known(initial_output, initial_weights, target, rates)
    _require_target(neuron)
    start, escape = jax.device_get(_decomposition_and_escape(neuron))
    limit = limit_of(start)
    # In the saddle at zero, the kernel vanishes: its relative change is one, and its direction is undefined.
    vanished = (limit.output_weight == 0) & (limit.weights == 0).all(axis=-1)
    require(
        not np.any(vanished & (limit.status == "static")),
        "initial_output and initial_weights are both zero, which is a fixed point of the flow",
        argument="initial_output",
        value=0.0,
        remedy="choose a nonzero output or input weight",
    )
    output = np.where(vanished, 1, limit.output_weight)
    change = kernel_change(neuron.neuron.output, neuron.neuron.weights, output, limit.weights, rates=rates)
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
    """Classify observed trajectories towards a target of unit length as lazy, rich or delayed rich.

    A trajectory is "lazy" if the final kernel change is below 0.1, "delayed rich" if its map turns only after a
    plateau, and otherwise "rich".

    Args:
        times: Times, shape (times,).
        coefficients: β, shape (members, times, d).
        kernel_change: ρ, shape (members, times).
        imbalances: δ, shape (members,).
        target: β*, shape (d,).
        rate: κ = √(η_a η_w).
    """
    half_learned = times[np.argmax(coefficients @ target >= 0.5, axis=1)]
    # δ ≤ −4 κ ‖β*‖, and a plateau at least ten times as long as the fit time of the norm.
    delayed = (imbalances <= -4 * rate * _ROUNDED) & (half_learned * np.abs(imbalances) > 10)
    return np.select([kernel_change[:, -1] < 0.1, delayed], ["lazy", "delayed rich"], "rich")


def _require_target(start: TargetedNeuron) -> None:
    if not is_traced(start.target):
        require(
            (np.asarray(start.target) != 0).any(axis=-1).all(),
            "target is zero",
            argument="target",
            value=0.0,
            remedy="choose a nonzero target",
        )


@float64_jit
def _escape_time(start: TargetedNeuron) -> Array:
    return nan_outside(start.valid & jnp.any(start.target != 0, axis=-1), _escape(decompose(start)), leading=True)


@float64_jit
def _decomposition_and_escape(start: TargetedNeuron) -> tuple[Decomposition, Array]:
    decomposition = decompose(start)
    return decomposition, _escape(decomposition)


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
