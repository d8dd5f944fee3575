"""A step of training as statistics see it, and the norms of its weights."""

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
    """One step θ(t + 1) = θ(t) + Δ(t) of training, as a statistic sees it.

    Weights, gradients and updates are networks with None in the place of all that is no weight, so that they can be
    read by name, as in `step.gradient.weights[0]`.

    Attributes:
        index: t, from 0.
        weights: θ(t), before the step.
        gradient: ∇ of the loss of the batch at θ(t).
        update: Δ(t), what is added to the weights.
        optimizer_state: State of the optimiser after the step.
        loss: Loss of the batch at θ(t).
        learning_rate: η of the step; of layers with rates of their own, a tree like the weights.
        batch: The samples of the step, `inputs` and `targets`; None for an expectation.
        initial_weights: θ(0).
        unseen_update: What no entry of the update of other weights exceeds, as far as these are trained but not seen.
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
        """∇ of the loss of all data at θ(t), in training mode, computed only if a statistic uses it."""
        return self._full_gradient()

    @property
    def displacement(self) -> Any:
        """θ(t + 1) − θ(0)."""
        trees = self.weights, self.update, self.initial_weights
        return jax.tree.map(lambda now, move, start: now + move - start, *trees)


def squared_norms(tree: Any, groups: Mapping[str, str] | None = None) -> Any:
    """‖·‖² of every weight array, in the order of the network; or, added up, of named groups of them.

    Args:
        tree: Weights, a gradient, an update or a displacement.
        groups: Name of each group → a weight array or a part of the network, as learning rates name them.

    Raises:
        InputError: A group names no weights.

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
            f"the group {name!r} is {part!r}",
            argument="groups",
            value=part,
            remedy=f"name weights of the network: {', '.join(norms)}",
        )
        sums.append(sum(own))
    return jnp.stack(sums)
