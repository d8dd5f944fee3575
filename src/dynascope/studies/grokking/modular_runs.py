"""Training on tables of modular arithmetic by AdamW, all seeds in one compiled program, measured on the way."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from dynascope.tasks import Task

__all__ = ["Measured", "Recipe", "measure", "train"]

_FIRST_DECAY, _SECOND_DECAY = 0.9, 0.98  # β₁ and β₂ of the means of slopes and of their squares


class Recipe(NamedTuple):
    """What is descended, and how.

    Attributes:
        loss: "cross_entropy" or "squared", as `flows.descend` has them.
        learning_rate: η of AdamW.
        weight_decay: λ: each step also multiplies all weights by 1 − ηλ.
    """

    loss: str
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
) -> Iterator[Any]:
    """Train each network on its task, on all samples at each step, and yield them on the way.

    Args:
        networks: Modules that differ only in their weights.
        tasks: One for each network, of equal sizes.
        steps: Steps at which the networks are yielded, not decreasing.
        recipe: What is descended.
        double: Whether to compute in float64; in float32 otherwise.

    Yields:
        The networks as one, whose weights have the dimension of the networks in front, as NumPy arrays.

    Raises:
        DivergenceError: A weight left the finite numbers.
    """
    import equinox as eqx
    import jax
    import numpy as np

    kind = np.float64 if double else np.float32
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves).astype(kind), *networks)
    with jax.enable_x64(double):
        weights, frame = eqx.partition(stacked, eqx.is_array)
        data = tuple(np.stack([getattr(task, name) for task in tasks]).astype(kind) for name in ("inputs", "targets"))
        constants = kind(recipe.learning_rate), kind(recipe.weight_decay)
        state, done = jax.vmap(_optimizer(*constants).init)(weights), 0
    for step in map(int, steps):
        # The generator is left and entered, and the precision with it, between two records.
        with jax.enable_x64(double):
            count = np.int32(step - done)
            weights, state = _advance()(weights, state, frame, data, constants, count, recipe.loss)
            weights = jax.tree.map(np.asarray, weights)
        done = step
        _raise_if_diverged(weights, step, recipe)
        yield eqx.combine(weights, frame)


def measure(networks: Any, tasks: Sequence[Task], tests: Sequence[Task], loss: str) -> Measured:
    """Measure networks that `train` yields on their training and test samples."""
    import jax
    import numpy as np

    with jax.enable_x64(True):
        stacked = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), networks)
        data = [np.stack([getattr(each, name) for each in side]) for side in (tasks, tests) for name in _ARRAYS]
        return Measured(*(np.asarray(each) for each in _measured()(stacked, *data, loss)))


_ARRAYS = ("inputs", "targets")


def _optimizer(rate: Any, decay: Any) -> Any:
    import optax

    return optax.adamw(rate, _FIRST_DECAY, _SECOND_DECAY, weight_decay=decay)


def _mean_loss(outputs: Any, targets: Any, loss: str) -> Any:
    import jax.numpy as jnp
    import optax

    if loss == "cross_entropy":
        return optax.softmax_cross_entropy(outputs, targets).mean()
    return jnp.sum((outputs - targets) ** 2, axis=1).mean() / 2


@functools.cache
def _advance() -> Callable[..., Any]:
    """Some more steps of all networks."""
    import equinox as eqx
    import jax
    import optax

    def advance(
        weights: Any, state: Any, frame: Any, data: Any, constants: Any, count: Any, loss: str
    ) -> tuple[Any, Any]:
        optimizer = _optimizer(*constants)

        def member(weights: Any, state: Any, inputs: Any, targets: Any) -> tuple[Any, Any]:
            def value(weights: Any) -> Any:
                return _mean_loss(eqx.combine(weights, frame)(inputs), targets, loss)

            def step(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
                weights, state = carry
                updates, state = optimizer.update(jax.grad(value)(weights), state, weights)
                return optax.apply_updates(weights, updates), state

            return jax.lax.fori_loop(0, count, step, (weights, state))

        return jax.vmap(member)(weights, state, *data)

    return eqx.filter_jit(advance)


@functools.cache
def _measured() -> Callable[..., Any]:
    import equinox as eqx
    import jax.numpy as jnp

    def measured(networks: Any, *data: Any) -> Any:
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

    return eqx.filter_jit(measured)


def _hidden(network: Any) -> tuple[Any, Any]:
    """The weights before and after the last hidden neurons."""
    layer = network.blocks[-1] if hasattr(network, "blocks") else network
    return layer.first, layer.second


def _features(network: Any, inputs: Any) -> Any:
    return network.features(inputs) if hasattr(network, "features") else network.activation(inputs @ network.first)


def _raise_if_diverged(weights: Any, step: int, recipe: Recipe) -> None:
    import jax
    import numpy as np

    from dynascope.errors import DivergenceError

    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(weights)):
        raise DivergenceError(
            f"a weight left the finite numbers by step {step}",
            time=step * recipe.learning_rate,
            remedy="choose a smaller learning rate",
        )
