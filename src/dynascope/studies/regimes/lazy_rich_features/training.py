"""Training of all layers, of the linearised network or of the last layer on small targets, and the expansion in 1/α."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from dynascope.networks.mlp import MLP
from dynascope.probes.kernel import kernel_distance
from dynascope.probes.last_layer import layer_metrics
from dynascope.studies.regimes.lazy_rich_features.expansion import LazyOrders, MovedMLP
from dynascope.tasks.task import Task
from dynascope.training.descend import Descent, descend

__all__ = ["Expansion", "Trained", "distance", "errors", "expand", "final_metrics", "measures", "train"]

_METRICS = ("kappa_cka", "effective_dimension", "effective_dimension_quality", "effective_dimension_utilization")


class Trained(NamedTuple):
    """Trained networks, evaluated on the training inputs followed by the test inputs.

    Attributes:
        outputs: f − f₀ times the divisor of the targets, shape (seeds, times, m, c).
        movement: ‖h − h₀‖/‖h₀‖ of the features on the training inputs, shape (seeds, times).
        features: Final h on the training inputs, shape (seeds, n, p).
    """

    outputs: np.ndarray
    movement: np.ndarray
    features: np.ndarray


class Expansion(NamedTuple):
    """Orders in 1/α of α (f − f₀) = F₁ + F₂/α and of the features h₀ + h₁/α, for f trained on targets divided by α.

    Attributes:
        first: F₁, the linearised network, shape (seeds, times, m, c).
        second: F₂, shape (seeds, times, m, c).
        movement: ‖h₁‖/‖h₀‖, shape (seeds, times).
        start: h₀, shape (seeds, n, p).
        change: Final h₁, shape (seeds, n, p).
    """

    first: np.ndarray
    second: np.ndarray
    movement: np.ndarray
    start: np.ndarray
    change: np.ndarray


def train(
    networks: Sequence[MLP],
    kind: str,
    inputs: np.ndarray,
    targets: np.ndarray,
    steps: np.ndarray,
    statistics: Mapping[str, Any],
    *,
    divisor: float,
    learning_rate: float,
) -> Trained:
    """Train f − f₀ by gradient descent on targets divided by α.

    Args:
        networks: Initial networks, with biases.
        kind: "all layers", "linearised" (all layers of the linearised network) or "last layer only".
        inputs: Shape (n, d).
        targets: Shape (n, c).
        steps: Recorded numbers of steps.
        statistics: Statistics of `measures`.
        divisor: Divisor α of the targets.
        learning_rate: Learning rate η.
    """
    run, ends = descend(
        Task(inputs, targets / divisor, name="labels"),
        [MovedMLP(network, network, kind) for network in networks],
        Descent(learning_rate=learning_rate, steps=int(steps[-1]), save=steps, **statistics),
        return_networks=True,
    )
    with jax.enable_x64(True):
        features = jax.device_get(jax.vmap(lambda network: network.features(inputs))(ends))
    return Trained(divisor * run["outputs"].to_numpy(), run["movement"].to_numpy(), np.asarray(features))


def measures(inputs: np.ndarray, others: np.ndarray) -> dict[str, Any]:
    """Statistics for `train`: outputs on training and test inputs, and feature movement on training inputs.

    The arrays are arguments of the compiled program, so arrays of the same shapes can reuse it.
    """
    return {"statistics": _MEASURES, "reference": _seen(inputs, others)}


def _seen(inputs: np.ndarray, others: np.ndarray) -> Task:
    """All inputs, with target one for training inputs and zero for the others."""
    trained = np.arange(len(inputs) + len(others)) < len(inputs)
    return Task(np.concatenate([inputs, others]), trained[:, None].astype(float), name="inputs")


def _outputs(network: Any, inputs: Any, trained: Any) -> Any:
    return network(inputs)


def _movement(network: Any, inputs: Any, trained: Any) -> Any:
    before = network.start.features(inputs)
    return jnp.linalg.norm(trained * (network.features(inputs) - before)) / jnp.linalg.norm(trained * before)


def _first_order(network: Any, inputs: Any, trained: Any) -> Any:
    return network(inputs)[:, 0]


def _second_order(network: Any, inputs: Any, trained: Any) -> Any:
    return network(inputs)[:, 1]


def _first_movement(network: Any, inputs: Any, trained: Any) -> Any:
    before = network.start.features(inputs)
    return jnp.linalg.norm(trained * network.change(inputs)) / jnp.linalg.norm(trained * before)


_AXES = ("sample", "target")
_MEASURES = {"outputs": (_outputs, _AXES), "movement": (_movement, ())}
_ORDERS = {"first": (_first_order, _AXES), "second": (_second_order, _AXES), "movement": (_first_movement, ())}


def expand(
    networks: Sequence[MLP],
    inputs: np.ndarray,
    targets: np.ndarray,
    others: np.ndarray,
    steps: np.ndarray,
    *,
    learning_rate: float,
) -> Expansion:
    """Compute the first two orders of gradient descent in 1/α from derivatives at the initial weights.

    With θ = θ₀ + θ₁/α + θ₂/α² + …, Jacobian J and second derivative H of f at θ₀, and r = J θ₁ − y, each step takes

        θ₁ ← θ₁ − (η/n) Jᵀ r,  θ₂ ← θ₂ − (η/n) [Jᵀ (J θ₂ + ½ θ₁ᵀ H θ₁) + (H θ₁)ᵀ r],

    and F₁ = J θ₁, F₂ = J θ₂ + ½ θ₁ᵀ H θ₁. Both updates are gradients of the mean over samples of r · F₂: its derivative
    with respect to θ₂ updates θ₁, and its derivative with respect to θ₁ updates θ₂.

    Args:
        networks: Initial networks.
        inputs: Training inputs, shape (n, d).
        targets: Targets y, shape (n, c).
        others: Test inputs, shape (m − n, d).
        steps: Increasing numbers of steps, shape (times,).
        learning_rate: Learning rate η.
    """
    nothing = jax.tree.map(np.zeros_like, networks[0])
    run, ends = descend(
        Task(inputs, targets, name="labels"),
        [LazyOrders(network, nothing, nothing) for network in networks],
        Descent(
            _crossed,
            learning_rate=learning_rate,
            steps=int(steps[-1]),
            loss=_pairing,
            save=steps,
            statistics=_ORDERS,
            reference=_seen(inputs, others),
        ),
        return_networks=True,
    )
    with jax.enable_x64(True):
        features = jax.vmap(lambda network: (network.start.features(inputs), network.change(inputs)))(ends)
    recorded = [run[name].to_numpy() for name in ("first", "second", "movement")]
    return Expansion(*recorded, *map(np.asarray, features))


def errors(outputs: np.ndarray, labels: np.ndarray, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """The loss ½ E‖F − y‖² on the training samples, which come first, and on the test samples."""
    each = np.sum((outputs - labels) ** 2, axis=-1) / 2
    return each[..., :samples].mean(axis=-1), each[..., samples:].mean(axis=-1)


def distance(outputs: np.ndarray, other: np.ndarray | float, samples: int) -> np.ndarray:
    """The distance √E‖F − G‖² on the test inputs, which come after the training inputs."""
    return np.sqrt(np.mean(np.sum((outputs - other)[..., samples:, :] ** 2, axis=-1), axis=-1))


def final_metrics(
    run: Trained, limits: Mapping[str, np.ndarray], start: np.ndarray, labels: np.ndarray, samples: int
) -> dict[str, Any]:
    """Final measurements of a run, for each seed.

    Args:
        run: The run.
        limits: Outputs of other runs by name, shape (seeds, times, m, c), to which distances are measured.
        start: Initial features of all inputs, shape (seeds, m, p).
        labels: One-hot labels of all inputs, shape (m, c).
        samples: Number of training samples, which come first.
    """
    outputs = run.outputs[:, -1]
    seeds = zip(run.features, outputs[:, :samples], start[:, :samples], strict=True)
    found = [(layer_metrics(h, f, labels[:samples], bias=True), h, first) for h, f, first in seeds]
    correct = outputs[:, samples:].argmax(axis=-1) == labels[samples:].argmax(axis=-1)
    return {
        **{name: [float(metrics[name]) for metrics, *_ in found] for name in _METRICS},
        "feature_similarity": [
            1 - float(kernel_distance(h @ h.T, first @ first.T, centred=True)) for _, h, first in found
        ],
        **{f"distance_to_{name}": distance(outputs, each[:, -1], samples) for name, each in limits.items()},
        "final_test_error": errors(outputs, labels, samples)[1],
        "test_accuracy": correct.mean(axis=-1),
    }


def _pairing(outputs: Any, targets: Any) -> Any:
    """R · F₂ of every sample."""
    return jnp.sum((outputs[:, 0] - targets) * outputs[:, 1], axis=1)


def _exchanged(updates: Any) -> Any:
    return eqx.tree_at(lambda each: (each.one, each.two), updates, (updates.two, updates.one))


def _crossed(learning_rate: Any) -> optax.GradientTransformation:
    """Gradient descent in which θ₁ and θ₂ exchange their gradients."""
    return optax.chain(optax.stateless(lambda updates, _: _exchanged(updates)), optax.sgd(learning_rate))
