"""The training step that is passed to statistics, and squared norms of weights."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from dynascope.validation import require

__all__ = ["Step", "squared_norms"]


class Step:
    """One training step θ(t + 1) = θ(t) + Δ(t), the argument of the functions of step statistics.

    Weights, gradients and updates are networks in which all leaves except the weights are None. An array is accessible
    by its name, e.g. `step.gradient.weights[0]`.

    Attributes:
        index: t, from 0.
        weights: θ(t), the weights before the step.
        gradient: ∇L of the batch at θ(t).
        update: Δ(t), which is added to the weights.
        optimizer_state: State of the optimiser after the step.
        loss: Loss of the batch at θ(t).
        learning_rate: η of the step; if layers have different rates, a tree with the structure of the weights.
        batch: The `inputs` and `targets` of the step; None for an expectation.
        initial_weights: θ(0).
        unseen_update: Upper bound on the absolute updates of those trained weights that are not part of `weights`.
    """

    def __init__(
        self,
        *,
        index: Any,
        weights: Any,
        gradient: Any,
        update: Any,
        optimizer_state: Any,
        loss: Any,
        learning_rate: Any,
        batch: Any,
        network: Callable[[], Any],
        full_gradient: Callable[[], Any],
        initial_weights: Any,
        unseen_update: Any = 0.0,
    ):
        self.index, self.weights, self.gradient, self.update = index, weights, gradient, update
        self.optimizer_state, self.loss, self.learning_rate = optimizer_state, loss, learning_rate
        self.batch, self.initial_weights, self.unseen_update = batch, initial_weights, unseen_update
        self._network, self._full_gradient = network, full_gradient

    @property
    def network(self) -> Any:
        """The whole network before the step."""
        return self._network()

    @functools.cached_property
    def full_gradient(self) -> Any:
        """∇L of all data at θ(t), in training mode; computed only if a statistic uses it."""
        return self._full_gradient()

    @property
    def displacement(self) -> Any:
        """The displacement θ(t + 1) − θ(0)."""
        trees = self.weights, self.update, self.initial_weights
        return jax.tree.map(lambda now, move, start: now + move - start, *trees)


def squared_norms(tree: Any, groups: Mapping[str, str] | None = None) -> Any:
    """Squared norms ‖·‖² of all weight arrays in the order of the network, or their sums over named groups.

    Args:
        tree: Weights, a gradient, an update or a displacement.
        groups: Name of each group → name of a weight array or of a part of the network, as in a mapping of learning
            rates.

    Raises:
        InputError: If a group contains no weights.

    Example:
        >>> from dynascope.networks import TwoLayer
        >>> squared_norms(TwoLayer(2, 3, 1), {"all": "first"}).shape, squared_norms(TwoLayer(2, 3, 1)).shape
        ((1,), (2,))
    """
    leaves, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(tree, eqx.is_inexact_array))
    norms = {jax.tree_util.keystr(path, simple=True, separator="."): jnp.sum(leaf**2) for path, leaf in leaves}
    if groups is None:
        return jnp.stack(list(norms.values()))
    sums = []
    for name, part in groups.items():
        own = [norm for weight, norm in norms.items() if weight == part or weight.startswith(f"{part}.")]
        require(
            len(own) > 0,
            f"the group {name!r} is {part!r}, which contains no weights",
            argument="groups",
            value=part,
            remedy=f"choose from the weights of the network: {', '.join(norms)}",
        )
        sums.append(sum(own))
    return jnp.stack(sums)
