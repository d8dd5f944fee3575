"""Training on tables of modular arithmetic by AdamW, all seeds in one compiled program, measured on the way."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial

from dynascope.compilation import filter_jit
from dynascope.errors import DivergenceError, DivergenceWarning
from dynascope.flows import descend
from dynascope.probes.features import feature_metrics
from dynascope.tasks import Task

__all__ = ["Measured", "Recipe", "measure", "metrics", "train"]

_NUMBERS = (
    *("kappa_cka", "effective_dimension"),
    *("effective_dimension_quality", "effective_dimension_utilization"),
)


class Recipe(NamedTuple):
    """What is descended, and how.

    Attributes:
        loss: "cross_entropy" or "squared", as `flows.descend` has them.
        learning_rate: η of AdamW.
        weight_decay: λ: each step also multiplies all weights by 1 − ηλ.
    """

    loss: Literal["cross_entropy", "squared"]
    learning_rate: float
    weight_decay: float


class Measured(NamedTuple):
    """What is measured of the networks of all seeds, in float64.

    Attributes:
        loss: Training loss, shape (seeds,).
        test_loss: Loss on the test samples, shape (seeds,).
        accuracy: Share of the training samples whose largest output is the right one, shape (seeds,).
        test_accuracy: The same on the test samples, shape (seeds,).
        features: Inputs of the last layer on the training samples, shape (seeds, n, p).
        outputs: Outputs there, shape (seeds, n, c).
        gradient_balance: ⟨W₁, ∂L/∂W₁⟩/⟨W₂, ∂L/∂W₂⟩ of the layers around the last hidden neurons, shape (seeds,).
    """

    loss: np.ndarray
    test_loss: np.ndarray
    accuracy: np.ndarray
    test_accuracy: np.ndarray
    features: np.ndarray
    outputs: np.ndarray
    gradient_balance: np.ndarray


def train(
    networks: Sequence[Any],
    tasks: Sequence[Task],
    steps: Sequence[int] | np.ndarray,
    recipe: Recipe,
    *,
    double: bool = False,
) -> Any:
    """Train each network on its task, on all samples at each step, and keep it as it was on the way.

    Args:
        networks: Modules that differ only in their weights.
        tasks: One for each network, of equal sizes.
        steps: Steps at which the networks are kept, increasing.
        recipe: What is descended.
        double: Whether to compute in float64; in float32 otherwise.

    Returns:
        The networks as one, whose weights have the dimensions (networks, steps) in front, as NumPy arrays.

    Raises:
        DivergenceError: A network diverged.
    """
    kind = np.float64 if double else np.float32
    with warnings.catch_warnings():
        # What is left of the others is no study.
        warnings.simplefilter("ignore", DivergenceWarning)
        run = descend(
            [jax.tree.map(lambda leaf: leaf.astype(kind), network) for network in networks],
            list(tasks),
            steps=int(steps[-1]),
            learning_rate=recipe.learning_rate,
            loss=recipe.loss,
            optimizer=Partial(optax.adamw, b1=0.9, b2=0.98, weight_decay=kind(recipe.weight_decay)),
            record_steps=steps,
            statistics={"weights": (_in_a_row, ("weight",))},
        )
    if "diverged_step" in run:
        at = run["diverged_step"].to_numpy()
        step = int(at[at >= 0].min())
        raise DivergenceError(
            f"a network diverged by step {step}",
            time=step * recipe.learning_rate,
            remedy="choose a smaller learning rate",
        )
    leaves, structure = jax.tree.flatten(networks[0])
    rows = run["weights"].to_numpy()
    parts = np.split(rows, np.cumsum([leaf.size for leaf in leaves])[:-1], axis=-1)
    shaped = [part.reshape(*rows.shape[:2], *leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, shaped)


def measure(networks: Any, tasks: Sequence[Task], tests: Sequence[Task], loss: str) -> Measured:
    """Measure networks, with one dimension in front, each on its training and test samples."""
    with jax.enable_x64(True):
        stacked = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), networks)
        data = [np.stack([getattr(each, name) for each in side]) for side in (tasks, tests) for name in _ARRAYS]
        return Measured(*(np.asarray(each) for each in _measured(stacked, *data, loss)))


def metrics(measured: Measured, tasks: Sequence[Task], loss: str) -> dict[str, Any]:
    """Losses, accuracies and the metrics of the features, over seeds."""
    found: dict[str, list[float]] = {name: [] for name in (*_NUMBERS, "total_utilization")}
    for task, features, outputs in zip(tasks, measured.features, measured.outputs, strict=True):
        with warnings.catch_warnings():
            # A split at random is not balanced, and there may be fewer samples than features.
            warnings.filterwarnings("ignore", message=".*(balanced|modes beyond the samples)")
            logits = chosen = feature_metrics(features, outputs, task.targets)
            if loss == "cross_entropy":
                chosen = feature_metrics(features, outputs, task.targets, output_function="softmax")
        for name in _NUMBERS:
            found[name].append(float(chosen[name][1]))
        found["total_utilization"].append(float(np.sum(logits["utilization"][1])))
    scalars = ("loss", "test_loss", "accuracy", "test_accuracy", "gradient_balance")
    return {**{name: getattr(measured, name) for name in scalars}, **found}


_ARRAYS = ("inputs", "targets")


def _in_a_row(network: Any) -> Any:
    return ravel_pytree(network)[0]


def _mean_loss(outputs: Any, targets: Any, loss: str) -> Any:
    if loss == "cross_entropy":
        return optax.softmax_cross_entropy(outputs, targets).mean()
    return jnp.sum((outputs - targets) ** 2, axis=1).mean() / 2


@filter_jit
def _measured(networks: Any, *data: Any) -> Any:
    loss = data[-1]

    def member(network: Any, inputs: Any, targets: Any, test_inputs: Any, test_targets: Any) -> tuple[Any, ...]:
        def value(network: Any) -> Any:
            return _mean_loss(network(inputs), targets, loss)

        def accuracy(outputs: Any, targets: Any) -> Any:
            return jnp.mean(outputs.argmax(axis=1) == targets.argmax(axis=1))

        now, slope = eqx.filter_value_and_grad(value)(network)
        powers = [jnp.sum(w * g) for w, g in zip(_hidden(network), _hidden(slope), strict=True)]
        outputs, tested = network(inputs), network(test_inputs)
        return (
            *(now, _mean_loss(tested, test_targets, loss)),
            *(accuracy(outputs, targets), accuracy(tested, test_targets)),
            *(_features(network, inputs), outputs, powers[0] / powers[1]),
        )

    return eqx.filter_vmap(member)(networks, *data[:-1])


def _hidden(network: Any) -> tuple[Any, Any]:
    """The weights before and after the last hidden neurons."""
    layer = network.blocks[-1] if hasattr(network, "blocks") else network
    return layer.first, layer.second


def _features(network: Any, inputs: Any) -> Any:
    return network.features(inputs) if hasattr(network, "features") else network.activation(inputs @ network.first)
