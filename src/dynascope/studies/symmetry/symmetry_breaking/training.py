"""Training of an ensemble of transformers on tokens."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from dynascope.errors import DivergenceError, DivergenceWarning
from dynascope.networks import Transformer
from dynascope.tasks import Labelled
from dynascope.training import Descent, descend

__all__ = ["TokenTraining"]


@dataclasses.dataclass(frozen=True)
class TokenTraining:
    """Training with the cross-entropy, in single precision.

    Attributes:
        optimizer: Function from a learning rate to an optax transformation.
        learning_rate: Learning rate.
        steps: Number of steps.
        batch_size: Samples per step.
        together: Whether networks are trained as an ensemble, or one after another.
        seed: Seed of the batches and of the biases.
    """

    optimizer: Callable[..., Any]
    learning_rate: float
    steps: int
    batch_size: int
    together: bool
    seed: int

    def train(
        self, networks: Sequence[Transformer], task: Labelled, test: Labelled
    ) -> tuple[np.ndarray, np.ndarray, list[Transformer]]:
        """Train, and return the test losses, the test accuracies and the networks.

        The loss and the accuracy of a network that diverges are NaN.
        """
        parts = [list(networks)] if self.together else [[each] for each in networks]
        found = [self._train(part, task, test) for part in parts]
        losses, accuracies = (np.concatenate(each) for each in list(zip(*found, strict=True))[:2])
        return losses, accuracies, [network for *_, ends in found for network in ends]

    def _train(
        self, networks: list[Transformer], task: Labelled, test: Labelled
    ) -> tuple[np.ndarray, np.ndarray, list[Transformer]]:
        method = Descent(
            self.optimizer,
            learning_rate=self.learning_rate,
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
            missing = np.full(len(networks), np.nan)
            return missing, missing, single
        members = [jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], ends) for k in range(len(networks))]
        return *(record[name].to_numpy()[:, -1].astype(float) for name in ("test_loss", "test_accuracy")), members


def _in_single_precision(network: Transformer) -> Transformer:
    return jax.tree.map(lambda leaf: leaf.astype(np.float32) if eqx.is_inexact_array(leaf) else leaf, network)
