"""Ensembles of minibatch SGD runs on one linear regression."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax
from jaxtyping import Float

from dynascope.tasks import Task
from dynascope.theory import SGD
from dynascope.training.batches import Batches
from dynascope.training.descend import Descent, descend
from dynascope.training.optimizers import decayed

__all__ = ["RegressionRuns", "regression_runs"]

_ENSEMBLE = 4000  # largest number of runs per ensemble


class RegressionRuns(NamedTuple):
    """Weights, velocities and losses of SGD at the recorded steps.

    Attributes:
        position: θ of each run, shape (steps, runs, d).
        velocity: The last displacement divided by the learning rate, same shape; zero before the first step.
        loss: ½ E(xᵀθ − y)² over all data, shape (steps, runs).
    """

    position: Float[np.ndarray, "steps runs d"]
    velocity: Float[np.ndarray, "steps runs d"]
    loss: Float[np.ndarray, "steps runs"]


class _Linear(eqx.Module):
    weight: Any

    def __call__(self, inputs: Any) -> Any:
        return inputs @ self.weight[:, None]


def regression_runs(
    inputs: np.ndarray,
    targets: np.ndarray,
    recorded: np.ndarray,
    sgd: SGD,
    *,
    start: np.ndarray,
    runs: int,
    seed: int = 0,
) -> RegressionRuns:
    """Run v ← β v − (g + λθ), θ ← θ + η v on independent minibatches, drawn with replacement.

    Args:
        inputs: X, shape (N, d).
        targets: y, shape (N,).
        recorded: Steps k ≥ 0 to record, increasing.
        sgd: η, β, λ and S.
        start: Initial weights θ_0 of all runs.
        runs: Number of runs.
        seed: Seed of the minibatches.

    Example:
        >>> x, y = np.array([[1.0], [1.0]]), np.array([0.0, 2.0])
        >>> found = regression_runs(x, y, np.array([0, 1]), SGD(0.5), start=np.zeros(1), runs=8)
        >>> sorted(set(found.position[1, :, 0].tolist())), float(found.velocity[0].max())
        ([0.0, 1.0], 0.0)
    """
    steps = np.unique(np.concatenate([recorded, np.maximum(recorded - 1, 0)]))
    last, before = np.searchsorted(steps, recorded), np.searchsorted(steps, np.maximum(recorded - 1, 0))
    task = Task(np.asarray(inputs, float), np.asarray(targets, float)[:, None], name="linear regression")
    parts, blocks = [], math.ceil(runs / _ENSEMBLE)
    with jax.enable_x64(True):
        network = _Linear(np.asarray(start, float))
        for block in range(blocks):
            record = descend(
                task,
                [network] * math.ceil(runs / blocks),
                Descent(
                    decayed(optax.sgd, np.float64(sgd.weight_decay), momentum=np.float64(sgd.momentum)),
                    learning_rate=sgd.learning_rate,
                    steps=int(steps[-1]),
                    batches=Batches(sgd.batch_size, independent=True, replacement=True),
                    save=steps,
                    statistics={"weights": (_weights, ("feature",))},
                ),
                seed=seed + block,
            )
            parts.append(record)
    theta = np.concatenate([each["weights"].transpose("step", "seed", "feature") for each in parts], axis=1)[:, :runs]
    loss = np.concatenate([each["loss"].transpose("step", "seed") for each in parts], axis=1)[:, :runs]
    return RegressionRuns(theta[last], (theta[last] - theta[before]) / sgd.learning_rate, loss[last])


def _weights(network: _Linear) -> Any:
    return network.weight
