"""One step of training, as those see it who measure it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

__all__ = ["Step"]


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
        self._network, self._full_gradient, self._found = network, full_gradient, None

    @property
    def network(self) -> Any:
        """The whole network before the step."""
        return self._network()

    @property
    def full_gradient(self) -> Any:
        """∇ of the loss of all data at θ(t), in training mode, computed only where a statistic asks for it."""
        if self._found is None:
            self._found = self._full_gradient()
        return self._found

    @property
    def displacement(self) -> Any:
        """θ(t + 1) − θ(0)."""
        return jax.tree.map(
            lambda now, move, start: now + move - start, self.weights, self.update, self.initial_weights
        )
