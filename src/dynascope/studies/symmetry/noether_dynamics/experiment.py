"""Training of normalised layers with momentum, and the measured and predicted norms of their weights."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Bool, Float

from dynascope.studies.symmetry.noether_dynamics.network import ScaleInvariantMLP
from dynascope.tasks import Labelled, digits
from dynascope.theory import SGD
from dynascope.theory.symmetry import (
    equilibration_steps,
    equilibrium_angular_step,
    equilibrium_squared_norm,
    quadratic_charge,
    rounding_level,
    squared_norm_path,
)
from dynascope.training.batches import Batches
from dynascope.training.descend import Descent, descend
from dynascope.training.optimizers import decayed
from dynascope.training.statistics import Sampled
from dynascope.training.step import Step, squared_norms

if TYPE_CHECKING:
    from dynascope.studies import Values
    from dynascope.studies.symmetry.noether_dynamics.study import NoetherDynamics

__all__ = ["Experiment", "NormPaths", "train_normalised", "white_share"]

_HIDDEN_LAYERS, _RECORDS = 2, 200
_ROUNDINGS = 128  # number of terms in the longest sum of the backward pass, unless there are more samples


class Experiment:
    """Trains the networks of a study on the full batch and on minibatches, and compares their norms with both closures.

    Args:
        study: The study that defines the networks, the data and the optimiser.
    """

    def __init__(self, study: NoetherDynamics):
        self.study = study

    def trained(self) -> Values:
        """Train on the full batch and on minibatches, and compute the norms predicted by both closures."""
        free, noisy = self._run(self.study.coherent_steps, 0.0), self._run(self._steps, self.weight_decay)
        edges, initial = self.recorded_steps, free.norms[0] ** 2
        angles = np.add.reduceat(noisy.squared_angles, edges[:-1]) / np.diff(edges)[:, None, None]
        # Each recorded value is a mean over the window after its step, and for the last step over the window before.
        windows = np.append(np.arange(len(edges) - 1), len(edges) - 2)
        gradients = np.mean(noisy.squared_gradients[noisy.late], axis=0)
        equilibrium = equilibrium_squared_norm(gradients, self._sgd(self.weight_decay), closure="white")
        steps, sampled = ("start", "layer", "step"), ("start", "layer", "sampled_step")
        return {
            "squared_norm": (steps, _steps_last(noisy.norms[edges])),
            "white_norm": (steps, _steps_last(noisy.white[edges])),
            "coherent_norm": (steps, _steps_last(noisy.coherent[edges])),
            "angular_step": (steps, _steps_last(np.sqrt(angles[windows]))),
            "relative_growth": (sampled, _steps_last(free.norms**2 / initial - 1)),
            "coherent_growth": (sampled, _steps_last(free.coherent**2 / initial - 1)),
            "growth_share": (("run", "start", "layer"), [free.growth_share, noisy.growth_share]),
            "equilibrium_share": (("start", "layer"), np.mean(noisy.norms[noisy.late], axis=0) / equilibrium),
            "startup_share": (("start", "layer"), free.share_of_first(1 / (1 - self.study.momentum))),
            "remembered_share": (("start", "layer"), noisy.remembered_share),
            "late_angle": (("start", "layer"), np.sqrt(np.mean(noisy.squared_angles[noisy.late], axis=0))),
            "within_rounding": (
                ("run", "start", "charge"),
                [np.mean(each.within_rounding, axis=0) for each in (free, noisy)],
            ),
            "loss": (("start", "step"), noisy.loss),
        }

    def exact(self) -> Values:
        """The predictions without gradients: growth relative to the coherent closure, angle, and exact law."""
        layers = (self.study.starts, _HIDDEN_LAYERS + 1)
        shares = [np.ones(layers), np.full(layers, white_share(self.study.momentum))]
        return {
            "growth_share": (("run", "start", "layer"), shares),
            "angular_step": (("start", "layer", "step"), np.full((*layers, len(self.recorded_steps)), self.angle)),
            "within_rounding": (("run", "start", "charge"), np.ones((2, *layers))),
        }

    @property
    def weight_decay(self) -> float:
        """The weight decay λ of the minibatch run."""
        return self.study.decay_ratio * (1 - self.study.momentum) ** 2 / (4 * self.study.learning_rate)

    @property
    def angle(self) -> float:
        """The predicted angle of a step at equilibrium, in radians."""
        return equilibrium_angular_step(self._sgd(self.weight_decay))

    @functools.cached_property
    def recorded_steps(self) -> np.ndarray:
        """The recorded steps on minibatches, from the first to the last."""
        return np.unique(np.linspace(0, self._steps - 1, min(_RECORDS, self._steps)).round().astype(int))

    def _run(self, steps: int, weight_decay: float) -> NormPaths:
        """Train all networks, on minibatches if weight decay is nonzero and on the full batch otherwise."""
        return train_normalised(
            self._task,
            self._networks,
            self._sgd(weight_decay),
            steps=steps,
            batch_size=self.study.batch_size if weight_decay else None,
            recorded=self.recorded_steps if weight_decay else [0, steps],
            seed=self.study.seed,
        )

    def _sgd(self, weight_decay: float) -> SGD:
        return SGD(self.study.learning_rate, self.study.momentum, weight_decay)

    @property
    def _steps(self) -> int:
        return round(self.study.equilibrations * equilibration_steps(self._sgd(self.weight_decay)))

    @functools.cached_property
    def _task(self) -> Labelled:
        data, draw, samples = digits(), np.random.default_rng(self.study.seed), self.study.samples
        labels = data.targets.argmax(axis=1)[:samples]
        random = draw.random(len(labels)) < self.study.random_labels
        labels[random] = draw.integers(data.targets.shape[1], size=int(random.sum()))
        return Labelled(data.inputs[:samples], labels, tuple(map(str, range(10))), name="digits")

    @functools.cached_property
    def _networks(self) -> list[ScaleInvariantMLP]:
        task, study = self._task, self.study
        widths = (task.inputs.shape[1], *[study.width] * _HIDDEN_LAYERS, len(task.class_names))
        return [ScaleInvariantMLP(widths, seed=study.seed + each) for each in range(study.starts)]


def _steps_last(path: np.ndarray) -> np.ndarray:
    """Move the axis of steps after those of the networks and the layers."""
    return path.transpose(1, 2, 0)


@dataclasses.dataclass(frozen=True, eq=False)
class NormPaths:
    """Squared norms r = ‖W‖² of each network and layer at every step, measured and predicted.

    Attributes:
        norms: r, before the step.
        squared_gradients: ‖ĝ‖² of the gradient at unit norm.
        squared_angles: Square of the angle by which a step rotates the layer, in radians².
        coherent: r predicted for coherent gradients, which hardly change between steps.
        white: r predicted for white gradients, which are independent between steps.
        decayed: r predicted for weight decay alone.
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
        """Growth of r² due to the steps of the last half, relative to the coherent closure."""
        measured, coherent = (
            np.sum((each**2 - self.decayed**2)[self.late], axis=0) for each in (self.norms, self.coherent)
        )
        return measured / coherent

    @property
    def remembered_share(self) -> Float[np.ndarray, "networks layers"]:
        """Fraction of r² over the last half that remains from the initial weights after weight decay."""
        return np.mean((self.decayed[self.late] / self.norms[self.late]) ** 2, axis=0)

    def share_of_first(self, steps: float) -> Float[np.ndarray, "networks layers"]:
        """Fraction of the growth under the coherent closure that occurs in the first steps."""
        grown = self.coherent**2 - self.decayed**2
        return grown[min(math.ceil(steps), len(grown) - 1)] / grown[-1]


def white_share(momentum: float) -> float:
    """The growth (1 − β)/(1 + β) of r² under independent gradients, relative to constant gradients of equal norm."""
    return (1 - momentum) / (1 + momentum)


def train_normalised(
    task: Labelled,
    networks: Sequence[ScaleInvariantMLP],
    sgd: SGD,
    *,
    steps: int,
    batch_size: int | None = None,
    recorded: Sequence[int] | np.ndarray,
    seed: int = 0,
) -> NormPaths:
    """Train all networks on the cross-entropy, each on different minibatches.

    Args:
        networks: Networks of equal size.
        task: Samples with labels.
        sgd: η, β and λ.
        steps: Number of steps.
        batch_size: Samples per minibatch, drawn with replacement; None for the full batch.
        recorded: Steps at which the loss is recorded.
        seed: Seed of the minibatches.

    Returns:
        The measured and predicted norms of every network and layer at every step.

    References:
        H. Tanaka, D. Kunin, Noether's Learning Dynamics, arXiv:2105.02716.
    """
    run = descend(
        task,
        networks,
        Descent(
            decayed(optax.sgd, np.float64(sgd.weight_decay), momentum=np.float64(sgd.momentum)),
            learning_rate=sgd.learning_rate,
            steps=steps,
            loss="cross_entropy",
            batches=Batches(batch_size, independent=True, replacement=batch_size is not None),
            save=recorded,
            statistics={name: Sampled(each, range(steps), ["layer"]) for name, each in _SAMPLED.items()},
        ),
        seed=seed,
    )
    norms, gradients, displaced, angles = (
        run[name].transpose("sampled_step", "seed", "layer").to_numpy() for name in _SAMPLED
    )
    shares = (1.0, white_share(sgd.momentum), 0.0)
    coherent, white, decay = (squared_norm_path(norms[0], share * gradients, sgd)[:-1] for share in shares)
    law = quadratic_charge(norms[0], displaced, sgd)[:-1]
    terms = max(_ROUNDINGS, len(task.inputs))
    levels = rounding_level(norms, displaced[:-1], momentum=sgd.momentum, dtype="float64", gradient_roundings=terms)
    within = np.abs(norms - law) <= levels.bound
    return NormPaths(norms, gradients, angles, coherent, white, decay, within, run["loss"].to_numpy())


def _squared_norms(step: Step) -> Any:
    return squared_norms(step.weights)


def _squared_gradients(step: Step) -> Any:
    """The squared gradient at unit norm, ‖ĝ‖² = ‖W‖² ‖g‖², of each layer."""
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
