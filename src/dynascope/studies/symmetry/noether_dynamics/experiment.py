"""Networks of normalised layers trained by momentum, and their norms at every step beside what laws say of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Bool, Float

from dynascope.studies.symmetry.noether_dynamics.network import ScaleInvariantMLP
from dynascope.tasks import Labelled
from dynascope.theory.symmetry import quadratic_charge, rounding_level, squared_norm_path
from dynascope.training.descend import descend
from dynascope.training.optimizers import decayed
from dynascope.training.statistics import Sampled, Step, squared_norms

__all__ = ["NormPaths", "train_normalised", "white_share"]

_ROUNDINGS = 128  # terms of the longest sum of the backward pass, or the samples if they are more


@dataclasses.dataclass(frozen=True, eq=False)
class NormPaths:
    """What is known of squared norms r = ‖W‖² at every step, of each network and layer.

    Attributes:
        norms: r, before the step.
        squared_gradients: ‖ĝ‖² of the gradient at unit norm.
        squared_angles: Square of the angle by which the step turns the layer, in radians².
        coherent: r by the closure of gradients that hardly change.
        white: r by that of independent gradients.
        decayed: r by decay alone.
        within_rounding: Whether r is within rounding of the exact law.
        loss: Cross-entropy of all samples at the recorded steps, shape (networks, recorded steps).
    """

    norms: Float[np.ndarray, "steps networks layers"]
    squared_gradients: Float[np.ndarray, "steps networks layers"]
    squared_angles: Float[np.ndarray, "steps networks layers"]
    coherent: Float[np.ndarray, "steps networks layers"]
    white: Float[np.ndarray, "steps networks layers"]
    decayed: Float[np.ndarray, "steps networks layers"]
    within_rounding: Bool[np.ndarray, "steps networks layers"]
    loss: Float[np.ndarray, "networks recorded"]

    @property
    def late(self) -> slice:
        """The last half of the steps."""
        return slice(len(self.norms) // 2, None)

    @property
    def growth_share(self) -> Float[np.ndarray, "networks layers"]:
        """Growth of r² by steps over that of the coherent closure, over the last half."""
        measured, coherent = (
            np.sum((each**2 - self.decayed**2)[self.late], axis=0) for each in (self.norms, self.coherent)
        )
        return measured / coherent

    @property
    def remembered_share(self) -> Float[np.ndarray, "networks layers"]:
        """Which part of r² is what decay has left of the start, over the last half."""
        return np.mean((self.decayed[self.late] / self.norms[self.late]) ** 2, axis=0)

    def share_of_first(self, steps: float) -> Float[np.ndarray, "networks layers"]:
        """How much of the growth of the coherent closure is made in the first steps."""
        grown = self.coherent**2 - self.decayed**2
        return grown[min(math.ceil(steps), len(grown) - 1)] / grown[-1]


def white_share(momentum: float) -> float:
    """(1 − β)/(1 + β), what independent gradients add to r² over what equal ones of their size do."""
    return (1 - momentum) / (1 + momentum)


def train_normalised(
    networks: Sequence[ScaleInvariantMLP],
    task: Labelled,
    *,
    steps: int,
    learning_rate: float,
    momentum: float,
    weight_decay: float = 0.0,
    batch_size: int | None = None,
    recorded: Sequence[int] | np.ndarray,
    seed: int = 0,
) -> NormPaths:
    """Train all networks by cross-entropy, each on batches of its own.

    Args:
        networks: Networks of equal sizes.
        task: Samples with labels.
        steps: Number of steps.
        learning_rate: η.
        momentum: β of heavy ball.
        weight_decay: λ, added to gradients.
        batch_size: Samples in a step, drawn with replacement; None for all.
        recorded: Steps at which the loss is recorded.
        seed: Seed of the batches.

    Returns:
        The norms of every network and layer at every step, with what each law says of them.

    References:
        H. Tanaka, D. Kunin, Noether's Learning Dynamics, arXiv:2105.02716.
    """
    batches = {} if batch_size is None else {"batch_size": batch_size, "replacement": True}
    run = descend(
        networks,
        task,
        steps=steps,
        learning_rate=learning_rate,
        loss="cross_entropy",
        optimizer=decayed(optax.sgd, np.float64(weight_decay), momentum=np.float64(momentum)),
        batches="independent",
        record_steps=recorded,
        step_statistics={name: Sampled(each, range(steps), ["layer"]) for name, each in _SAMPLED.items()},
        seed=seed,
        **batches,
    )
    norms, gradients, displaced, angles = (
        run[name].transpose("sampled_step", "seed", "layer").to_numpy() for name in _SAMPLED
    )
    options = {"learning_rate": learning_rate, "momentum": momentum, "weight_decay": weight_decay}
    coherent, white, left = (
        squared_norm_path(norms[0], share * gradients, **options)[:-1] for share in (1.0, white_share(momentum), 0.0)
    )
    law = quadratic_charge(norms[0], displaced, **options)[:-1]
    terms = max(_ROUNDINGS, len(task.inputs))
    levels = rounding_level(norms, displaced[:-1], momentum=momentum, dtype="float64", gradient_roundings=terms)
    held = np.abs(norms - law) <= levels.bound
    return NormPaths(norms, gradients, angles, coherent, white, left, held, run["loss"].to_numpy())


def _squared_norms(step: Step) -> Any:
    return squared_norms(step.weights)


def _squared_gradients(step: Step) -> Any:
    """‖ĝ‖² = ‖W‖² ‖g‖² of each layer."""
    return squared_norms(step.weights) * squared_norms(step.gradient)


def _squared_displacements(step: Step) -> Any:
    return squared_norms(step.update)


def _squared_angles(step: Step) -> Any:
    after = jax.tree.map(jnp.add, step.weights, step.update)
    inner = jnp.stack([jnp.vdot(*each) for each in zip(step.weights.weights, after.weights, strict=True)])
    return jnp.arccos(inner / jnp.sqrt(squared_norms(step.weights) * squared_norms(after))) ** 2


_SAMPLED = {
    "sampled_norm": _squared_norms,
    "sampled_gradient": _squared_gradients,
    "sampled_displacement": _squared_displacements,
    "sampled_angle": _squared_angles,
}
