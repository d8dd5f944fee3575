"""Predict which neuron becomes active next in a training run, and when."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.alternating.neurons import average_of, require_neurons
from dynascope.alternating.utility_phase import Dormant, Residual, grow, steepest
from dynascope.compilation import filter_jit
from dynascope.protocols import Learnable, SumOfNeurons
from dynascope.results.named_tuples import short_repr
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["NextActivation", "predict_next_activation"]

_LEAST_GROWTH = 1e-6  # growth rates below this fraction of the steepest utility count as zero


class NextActivation(NamedTuple):
    """The next activation of a dormant neuron, predicted from a checkpoint.

    Attributes:
        neuron: Index of the neuron; −1 if no neuron becomes active.
        time: Gradient-flow time from the checkpoint to the activation; infinite if no neuron becomes active.
        growth_rate: d log‖θ‖/dt at activation; zero if no neuron becomes active.
        direction: θ/‖θ‖ at activation, shape (weights,); zeros if no neuron becomes active.
        dormant: Whether each neuron is dormant at the checkpoint, shape (neurons,).
        reason: Why no neuron becomes active; empty if one does.
    """

    neuron: int
    time: float
    growth_rate: float
    direction: np.ndarray
    dormant: np.ndarray
    reason: str

    __repr__ = short_repr


def predict_next_activation(
    task: Learnable,
    network: SumOfNeurons,
    *,
    threshold: PositiveFloat = 0.1,
    duration: float = np.inf,
    normalised: bool = False,
    max_steps: PositiveInt = 20_000,
) -> NextActivation:
    """Predict the next activation of a neuron from any checkpoint of a training run.

    Neurons with norms below the threshold are dormant. Dormant neurons are integrated in the frozen residual
    r = y − f(x) of the active neurons: each rotates towards a maximum of its utility U(θ) = E⟨f(x; θ), r(x)⟩ and grows,
    until the first reaches the threshold. `probes.utility_spectrum` makes the same prediction without the rotation.

    The prediction is valid on a plateau, where the active neurons are stationary and the dormant neurons together do
    not change the residual. The threshold must be well below the norm at which a neuron changes the loss. Active
    neurons may also leave a saddle on their own; this function ignores such departures, but `alternating_flow` includes
    them.

    Args:
        network: A sum of neurons (see `protocols.SumOfNeurons`) of degree κ ≥ 2, with the weights of the checkpoint.
        task: Samples, or an expectation in closed form (see `tasks.Expectation`).
        threshold: Norm below which a neuron is dormant, and at which it becomes active.
        duration: Gradient-flow time after which the search stops.
        normalised: Whether the run follows the homogeneity-normalised flow, in which the rate of neuron i is
            ‖θ_i‖^(2−κ).
        max_steps: Number of steps after which the search stops.

    Raises:
        InputError: If the network is not a sum of neurons of degree κ ≥ 2, its weights are not finite, or a number is
            not positive.

    References:
        Alternating Gradient Flows: A Theory of Feature Learning in Two-layer Neural Networks, arXiv:2506.06489.

    Example:
        >>> from dynascope.networks import DiagonalLinear
        >>> from dynascope.tasks import Task
        >>> task = Task(np.eye(2) * 2**0.5, [[2.0 * 2**0.5], [0.5 * 2**0.5]])
        >>> at_start = DiagonalLinear(2).with_neurons(np.full((2, 2), 1e-6))
        >>> coming = predict_next_activation(task, at_start)
        >>> coming.neuron, round(coming.time, 4), round(float(np.log(0.1 / (1e-6 * 2**0.5)) / 2), 4)
        (0, 5.5832, 5.5832)
    """
    require(
        duration > 0, f"duration is {duration}", argument="duration", value=duration, remedy="choose a positive time"
    )
    require_neurons(network)
    rows = np.asarray(network.neurons, np.float64)
    require(
        bool(np.isfinite(rows).all()),
        "the network has weights that are not finite",
        argument="network",
        value=type(network).__name__,
        remedy="use a checkpoint from before the run diverged",
    )
    norms = np.linalg.norm(rows, axis=1)
    dormant, moving = norms < threshold, (norms > 0) & (norms < threshold)
    if not moving.any():
        return _none(rows, dormant, "no neuron is dormant" if not dormant.any() else "the dormant neurons are zero")
    with jax.enable_x64(True):
        average = average_of(task, network)
        active = np.where(dormant[:, None], 0.0, rows)
        # A zero neuron has no direction and does not take part; any unit vector can represent it.
        units = np.where(moving[:, None], rows, 1.0) / np.where(moving, norms, np.sqrt(rows.shape[1]))[:, None]
        logs = np.log(np.where(moving, norms, 1.0))
        numbers = {"threshold": np.log(threshold), "longest": duration, "sense": 1.0}
        end, summary = _grown(
            network,
            average,
            active,
            Dormant(units, logs, np.zeros(rows.shape)),
            moving,
            {name: np.asarray(value, float) for name, value in numbers.items()} | {"max_steps": np.asarray(max_steps)},
            np.asarray(0.0 if normalised else network.degree - 2, float),
        )
        end, summary = jax.device_get((end, summary))
    time = float(summary["elapsed"])
    if not summary["reached"] or time > duration:
        spent = int(summary["steps"]) >= max_steps
        late = f"max_steps ({max_steps}) was reached" if spent else "no neuron becomes active within the duration"
        growing = time < duration and not spent
        return _none(rows, dormant, "no dormant neuron has positive utility" if growing else late)
    first = int(np.argmax(np.where(moving, end.log_norms, -np.inf)))
    pace = 1.0 if normalised else threshold ** (network.degree - 2)
    return NextActivation(first, time, pace * float(summary["growth"][first]), end.directions[first], dormant, "")


@filter_jit
def _grown(
    network: Any, average: Any, active: Any, dormant: Dormant, waiting: Any, numbers: dict[str, Any], power: Any
) -> tuple[Dormant, dict[str, Any]]:
    residual = Residual(network, average, active)
    least = _LEAST_GROWTH * jnp.max(steepest(residual, dormant.directions, waiting))
    return grow(residual, dormant, waiting, dormant.directions, {**numbers, "least": least}, power)


def _none(rows: np.ndarray, dormant: np.ndarray, reason: str) -> NextActivation:
    return NextActivation(-1, np.inf, 0.0, np.zeros(rows.shape[1]), dormant, reason)
