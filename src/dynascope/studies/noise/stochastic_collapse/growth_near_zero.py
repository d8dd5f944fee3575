"""Growth of a neuron with nearly zero weights, measured during training and predicted from Hessians."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dynascope.networks import MLP
from dynascope.probes.redundancy import UnitGroup, normal_hessians
from dynascope.studies.noise.stochastic_collapse.network_runs import NoisyDigits

__all__ = ["NearZero", "growth_near_zero"]

_SIZE = np.float32(1e-12)  # relative initial size of the neuron, too small to affect other neurons for a long time
_SEEN = 16  # number of networks recorded in the first window
_STATISTICS = {
    "first_weights": (lambda network: network.weights[0], ("feature", "neuron")),
    "second_weights": (lambda network: network.weights[1], ("neuron", "target")),
    "first_biases": (lambda network: network.biases[0], ("neuron",)),
    "second_biases": (lambda network: network.biases[1], ("target",)),
}


class NearZero(NamedTuple):
    """Growth rate of log ‖n‖, where n holds all weights of the first neuron.

    Attributes:
        measured: Growth rate in the second window.
        predicted: −n̂ᵀHn̂ − λ at the beginning of the second window, with H averaged over all samples and over the first
            window.
        by_batch: The same prediction with H of a single minibatch at the beginning of the second window.
    """

    measured: Float[np.ndarray, " starts"]
    predicted: Float[np.ndarray, " starts"]
    by_batch: Float[np.ndarray, " starts"]


def growth_near_zero(
    trainings: NoisyDigits, learning_rate: float, label_noise: float, *, time: float, window: float
) -> NearZero:
    """Train MLPs whose first neuron starts at 10⁻¹² of its usual size, and predict its growth from Hessians.

    Args:
        trainings: The MLPs and their training.
        learning_rate: η.
        label_noise: Fraction of the labels redrawn at random at every step.
        time: Training time before the windows (sum of learning rates).
        window: Training time of each of the two windows.
    """
    before, each = (max(round(duration / learning_rate), _SEEN) for duration in (time, window))
    seen = before + (np.arange(1, _SEEN + 1) * each) // _SEEN
    made = [_nearly_vanished(network) for network in trainings.first]
    recorded = np.array([0, *seen, before + 2 * each])
    run, _ = trainings.trained(made, label_noise, learning_rate, recorded, _STATISTICS)
    first, second, first_bias, second_bias = (run[name].to_numpy()[:, 1:] for name in _STATISTICS)
    rows = np.concatenate([first[..., 0], first_bias[..., :1], second[:, :, 0]], axis=-1).astype(float)
    norms = np.linalg.norm(rows, axis=-1)
    direction = rows[:, -2] / norms[:, -2, None]
    weights = first[:, :-1], second[:, :-1], first_bias[:, :-1], second_bias[:, :-1]
    task = trainings.task(label_noise)
    inputs, targets = np.asarray(task.inputs), np.asarray(task.targets)
    # For a neuron near zero, the squared loss depends on the noisy labels of a digit only through their mean.
    means = targets.reshape(-1, trainings.samples, targets.shape[1]).mean(axis=0)
    batch = np.random.default_rng([trainings.seed, 5]).integers(len(inputs), size=trainings.batch_size)
    found = []
    for chosen, x, y in (
        (weights, inputs[: trainings.samples], means),
        ([part[:, -1:] for part in weights], inputs[batch], targets[batch]),
    ):
        hessian = _hessians(chosen, x, y).mean(axis=1)
        found.append(-np.einsum("si,sij,sj->s", direction, hessian, direction) - trainings.weight_decay)
    return NearZero(np.log(norms[:, -1] / norms[:, -2]) / (each * learning_rate), *found)


def _nearly_vanished(network: MLP) -> MLP:
    first, second = (np.array(each) for each in network.weights)
    first[:, 0] *= _SIZE
    second[0] *= _SIZE
    return eqx.tree_at(lambda tree: tree.weights, network, (first, second))


def _hessians(weights: Any, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Hessians ∂²L/∂n² of networks with leading axes (starts, networks) on the same samples."""
    starts, networks = weights[0].shape[:2]
    flat = [part.reshape(-1, *part.shape[2:]) for part in weights]
    neuron = {"in": flat[0][0, :, :1], "bias": flat[2][0, :1], "out": flat[1][0, :1]}
    count, zero = starts * networks, {name: np.zeros_like(each) for name, each in neuron.items()}
    data = [np.broadcast_to(each, (count, *each.shape)) for each in (inputs, targets)]
    group = UnitGroup(1, [("in", 1), ("bias", 0)], [("out", 0)])
    found = normal_hessians(_loss, zero, (*data, *flat), group, [0])[0]
    return found.reshape(starts, networks, *found.shape[1:]).astype(float)


def _loss(change: Any, x: Any, y: Any, first: Any, second: Any, first_bias: Any, second_bias: Any) -> Any:
    # Only the weights of the first neuron of each network vary, so that all networks share one program.
    hidden = jax.nn.relu(x @ (first[:, :1] + change["in"]) + first_bias[:1] + change["bias"])
    others = jax.nn.relu(x @ first[:, 1:] + first_bias[1:]) @ second[1:] + second_bias
    return jnp.mean(jnp.sum((hidden @ (second[:1] + change["out"]) + others - y) ** 2, axis=1)) / 2
