"""Training of an ensemble of transformers on tokens."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from dynascope.errors import DivergenceError, DivergenceWarning
from dynascope.networks import Transformer
from dynascope.tasks import Labelled
from dynascope.training import Descent, descend

__all__ = ["TokenRun", "TokenTraining"]


class TokenRun(NamedTuple):
    """Trained networks, with NaN for the loss and the accuracy of a network that diverged.

    Attributes:
        losses: Test losses.
        accuracies: Test accuracies.
        networks: The networks at the end of training.
    """

    losses: np.ndarray
    accuracies: np.ndarray
    networks: list[Transformer]


@dataclasses.dataclass(frozen=True)
class TokenTraining:
    """Training with the cross-entropy, in single precision.

    Attributes:
        optimizer: Function from a learning rate to an optax transformation.
        steps: Number of steps.
        batch_size: Samples per step.
        seed: Seed of the batches and of the biases.
    """

    optimizer: Callable[..., Any]
    steps: int
    batch_size: int
    seed: int

    def tune(self, network: Transformer, rates: Sequence[float], task: Labelled, test: Labelled) -> np.ndarray:
        """Train one network with every learning rate, and return the test losses."""
        return self._train([network], list(rates), task, test).losses

    def train(self, networks: Sequence[Transformer], rate: float, task: Labelled, test: Labelled) -> TokenRun:
        """Train all networks with one learning rate."""
        return self._train(networks, rate, task, test)

    def _train(
        self, networks: Sequence[Transformer], rates: float | list[float], task: Labelled, test: Labelled
    ) -> TokenRun:
        method = Descent(
            self.optimizer,
            learning_rate=rates,
            steps=self.steps,
            loss="cross_entropy",
            batches=self.batch_size,
            save=[self.steps],
            test=test,
        )
        single = [_in_single_precision(each) for each in networks]
        try:
            with warnings.catch_warnings():
                # Divergence is measured: the curves of networks that diverge end with NaN.
                warnings.simplefilter("ignore", DivergenceWarning)
                record, ends = descend(task, single, method, seed=self.seed, return_networks=True)
        except DivergenceError:
            missing = np.full(len(networks) * np.size(rates), np.nan)
            return TokenRun(missing, missing, single)
        members = [jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], ends) for k in range(len(networks))]
        losses, accuracies = (
            record[name].to_numpy()[..., -1].ravel().astype(float) for name in ("test_loss", "test_accuracy")
        )
        return TokenRun(losses, accuracies, members)


def _in_single_precision(network: Transformer) -> Transformer:
    return jax.tree.map(lambda leaf: leaf.astype(np.float32) if eqx.is_inexact_array(leaf) else leaf, network)
