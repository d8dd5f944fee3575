"""Time at which the activation pattern of a ReLU neuron first changes, if the neuron is active on one sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import ONE_OUTPUT
from dynascope.theory.domain import covers
from dynascope.theory.layer_rates import LayerRates, rate_shapes
from dynascope.theory.neuron.fixed_pattern import preactivations_of
from dynascope.theory.scalar_networks.growth import growth_limit
from dynascope.theory.scalar_networks.passage_time import time_to_reach
from dynascope.theory.units import in_units
from dynascope.validation import require, require_broadcast, require_known
from dynascope.validation.bounded import FiniteNumbers

__all__ = ["PatternChange", "pattern_change"]

_SAME_LINE = 1e-12  # relative distance of an input from the line of the active input, below which it is on the line


class PatternChange(NamedTuple):
    """The first change of an activation pattern, or the limit of the flow if the pattern never changes.

    Attributes:
        time: Gradient-flow time t* of the change; ∞ if there is none, shape (...).
        sample: Index of the sample on which the activation changes; −1 if there is none, shape (...).
        output_weight: a(t*), shape (...).
        weights: w(t*), shape (..., d).
        loss: L(t*) = ½ E(f − y)², shape (...).
        used: 1 − ((f − y)/y)² of the active sample at t*, the share of its loss that is used by then, shape (...).
        status: "crosses" (the neuron becomes active on the sample), "slides" (the sample pushes the neuron back, so it
            follows the boundary), "dies" (the neuron becomes inactive on its only sample) or "never", shape (...).
    """

    time: np.ndarray
    sample: np.ndarray
    output_weight: np.ndarray
    weights: np.ndarray
    loss: np.ndarray
    used: np.ndarray
    status: np.ndarray

    __repr__ = short_repr


@covers(
    network="single ReLU neuron f(x) = a max(wᵀx, 0), layer-wise rates",
    data="any inputs, any targets",
    start="active on one sample",
    gives="the time at which the activation pattern first changes, and the loss until then",
    reference="arXiv:2406.06158",
    infinite=True,
    assumes=(ONE_OUTPUT,),
)
@in_units(
    "inputs",
    "targets",
    "initial_weights|initial_output",
    "rates.second",
    inputs="x",
    targets="y",
    initial_output="y x^-1 w^-1",
    initial_weights="w",
    rates={"first": "w^2 y^-2 t^-1", "second": "x^-2 w^-2 t^-1"},
    gives={"time": "t", "output_weight": "y x^-1 w^-1", "weights": "w", "loss": "y^2"},
    infinite=True,
)
def pattern_change(
    inputs: IsFinite[Float[np.ndarray, "n d"]],
    targets: IsFinite[Float[np.ndarray, " n"]],
    initial_output: FiniteNumbers,
    initial_weights: IsFinite[Float[np.ndarray, "... d"]],
    *,
    rates: LayerRates = LayerRates(),
) -> PatternChange:
    """Compute when a ReLU neuron that is active on one sample becomes active on a second one, in closed form.

    Only u = w·x̂₁ and a change, where x₁ is the active sample; the part w⊥ of w orthogonal to x₁ is constant. At unit
    rates, a and u are p √g ± q/√g with p, q = (a₀ ± u₀)/2 and the growth factor g of `growth_factor` for the target
    y₁/‖x₁‖ and the rate 2 ‖x₁‖²/n. The activation on the sample x_j changes where

        u = u* = −w⊥·x_j/(x̂₁·x_j),  √g = (u* ± √(u*² + 4 p q))/(2 p)

    The first of these values that the flow passes gives the time, by `time_to_reach`. A neuron whose output weight is
    large (upstream) changes its pattern before the loss falls. A neuron whose input weights are large (downstream)
    first fits the active sample. The final change of the tangent kernel may be the same.

    Args:
        inputs: X, shape (n, d).
        targets: y, shape (n,), not zero for the active sample.
        initial_output: a(0), shape (...).
        initial_weights: w(0), shape (..., d), with w·x > 0 for exactly one sample.
        rates: Learning rates η_w of the weights and η_a of the output weight.

    Returns:
        The time of the change, the state and the loss at that time.

    Raises:
        InputError: If a value is not finite, shapes do not match, a rate is not positive, a sample is on the boundary
            w·x = 0, the neuron is not active on exactly one sample, the target of this sample is zero, or another
            sample is on the line of this sample.

    References:
        Derived here for the setting of Kunin, Raventós, Dominé, Chen, Klindt, Saxe, Ganguli, arXiv:2406.06158.

    Example:
        >>> x, direction = [[1.0, 0.0], [0.5, np.sqrt(3) / 2]], np.deg2rad(-40)
        >>> weights = 0.3 * np.array([np.cos(direction), np.sin(direction)])
        >>> change = pattern_change(x, [1.0, 0.8], 0.3, weights)
        >>> f"{change.time:.6f} {change.used:.6f} {change.status}"
        '0.677771 0.241038 crosses'
    """
    require_known(**{f"rates.{name}": each for name, each in rates._asdict().items()})
    active = _active_sample(inputs, targets, initial_weights)
    shapes = {"initial_output": np.shape(initial_output), "initial_weights": active.shape}
    batch = require_broadcast(**shapes, **rate_shapes(rates))
    numbers = (initial_output, *rates, active)
    a, first, second, active = (np.broadcast_to(each, batch).reshape(-1) for each in numbers)
    w = np.broadcast_to(initial_weights, (*batch, inputs.shape[1])).reshape(a.size, inputs.shape[1])

    y, length = targets[active], np.linalg.norm(inputs[active], axis=-1)
    towards = inputs[active] / length[..., None]
    u = np.sum(w * towards, axis=-1)
    across = w - u[:, None] * towards
    # In units in which both rates are one, a and u are p √g ± q/√g.
    ratio = (first / second) ** 0.25
    p, q = (a * ratio + u / ratio) / 2, (a * ratio - u / ratio) / 2
    limit = growth_limit(y / length, p**2, q**2)
    boundaries = _boundaries(inputs, towards, across, active)
    root, sample = _first_passed(_roots(p, q, boundaries / ratio[:, None]), limit.log_growth)

    grown, shrunk = np.where(p == 0, 0, p * root), np.where(q == 0, 0, q / root)
    changes = sample >= 0
    strength = np.where(changes, (grown + shrunk) * (grown - shrunk), limit.strength)
    clock = 2 * np.sqrt(first) * np.sqrt(second) * length**2 / len(inputs)
    reached = time_to_reach(strength, y / length, p**2, q**2, clock, unreachable="infinity")
    output, along = (grown + shrunk) / ratio, (grown - shrunk) * ratio
    residual = y - length * strength
    others = np.sum(targets**2) - y**2
    change = PatternChange(
        time=np.where(changes, reached, np.inf),
        sample=sample,
        output_weight=output,
        weights=across + along[:, None] * towards,
        loss=(residual**2 + others) / (2 * len(inputs)),
        used=(length * strength / y) * (2 - length * strength / y),
        status=_status(inputs, targets, active, sample, output, residual),
    )
    return PatternChange(*(np.reshape(each, (*batch, *each.shape[1:])) for each in change))


def _active_sample(inputs: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the index of the active sample of each neuron, after checking that there is exactly one."""
    z = preactivations_of(inputs, targets, weights, "initial_weights")
    active, counts = np.argmax(z, axis=-1), (z > 0).sum(axis=-1)
    wrong = counts[counts != 1]
    require(
        wrong.size == 0,
        f"initial_weights activates {wrong.max(initial=0)} samples",
        argument="initial_weights",
        value=int(wrong.max(initial=0)),
        remedy="choose weights with w·x > 0 for exactly one sample",
    )
    require(
        (targets[active] != 0).all(),
        "targets is zero for the active sample",
        argument="targets",
        value=0.0,
        remedy="give a nonzero target, so that the share of its loss is defined",
    )
    return np.asarray(active)


def _boundaries(inputs: np.ndarray, towards: np.ndarray, across: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Return u* of each sample, shape (m, n); zero for the active sample, NaN for a sample never reached."""
    along = towards @ inputs.T
    itself = np.arange(len(inputs)) == active[:, None]
    square = np.sum(inputs**2, axis=-1)
    on_line = ~itself & (np.abs(square - along**2) <= _SAME_LINE * square)
    require(
        not on_line.any(),
        "inputs has two samples on the line of the active sample",
        argument="inputs",
        value=int(on_line.sum()),
        remedy="leave out one of the samples, or merge them",
    )
    apart = np.where(along == 0, np.nan, along)
    return np.where(itself, 0.0, -(across @ inputs.T) / apart)


def _roots(p: np.ndarray, q: np.ndarray, boundaries: np.ndarray) -> np.ndarray:
    """Return both roots x = √g of p x² − u* x − q = 0, shape (m, n, 2), without cancellation; NaN if not real."""
    p, q = p[:, None], q[:, None]
    with np.errstate(all="ignore"):
        large = (boundaries + np.copysign(np.sqrt(boundaries**2 + 4 * p * q), boundaries)) / 2
        return np.stack([large / p, -q / large], axis=-1)


def _first_passed(roots: np.ndarray, log_growth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the root that the flow from √g = 1 passes first, and its sample; otherwise the limit of √g, and −1."""
    with np.errstate(all="ignore"):
        distance = 2 * np.log(roots.reshape(len(roots), 2 * roots.shape[1])) * np.sign(log_growth)[:, None]
        ahead = (distance > 0) & (distance < np.abs(log_growth)[:, None])
        distance = np.where(ahead, distance, np.inf)
        nearest = np.argmin(distance, axis=-1)
        found = ahead.any(axis=-1)
        shortest = np.min(distance, axis=-1)
        passed = np.exp(np.where(found, np.copysign(shortest, log_growth), log_growth) / 2)
    return passed, np.where(found, nearest // 2, -1)


def _status(
    inputs: np.ndarray, targets: np.ndarray, active: np.ndarray, sample: np.ndarray, a: np.ndarray, residual: np.ndarray
) -> np.ndarray:
    """Return what the neuron does after the change."""
    overlap = np.sum(inputs[active] * inputs[sample], axis=-1)
    # Velocity of w·x_j just after the neuron has become active on x_j, where f(x_j) = 0.
    onwards = a * (residual * overlap + targets[sample] * np.sum(inputs[sample] ** 2, axis=-1))
    return np.select([sample < 0, sample == active, onwards > 0], ["never", "dies", "crosses"], "slides")
