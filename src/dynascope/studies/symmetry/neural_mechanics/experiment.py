"""Training of a convolutional network by SGD, its charges, and the laws that predict them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from dynascope.networks import VGG16
from dynascope.networks.batch_normalisation import trained_weights
from dynascope.networks.normalised_convolutional import NormalisedConvolutional
from dynascope.symmetry import Charge, charges, find_symmetries
from dynascope.tasks import Labelled
from dynascope.tasks.data.named_images import image_shape, named_images
from dynascope.theory import SGD
from dynascope.theory.symmetry import (
    charge_integral,
    quadratic_charge,
    scheduled_charge,
    scheduled_translation,
    translation_charge,
    translation_integral,
)
from dynascope.training import Descent, Sampled, Step, charge_statistics, descend
from dynascope.training.optimizers import decayed

if TYPE_CHECKING:
    from dynascope.studies import Values
    from dynascope.studies.symmetry.neural_mechanics.study import NeuralMechanics

__all__ = ["WRONG_OPTIMIZERS", "Experiment"]

WRONG_OPTIMIZERS = ("momentum 1 % less", "decay 1 % less", "decay decoupled")
_RECORDS = 100


class Experiment:
    """Trains the network of a study once and compares its charges with the continuous and discrete laws.

    Args:
        study: The study that defines the network, the data and the optimiser.
    """

    def __init__(self, study: NeuralMechanics):
        self.study = study

    def trained(self) -> Values:
        """Train and compare the charges with the laws of this optimiser and of wrong optimisers."""
        study = self.study
        law = charge_statistics(self.symmetries, momentum=study.momentum, weight_decay=study.weight_decay)
        displaced = Sampled(functools.partial(_squared_displacements, self.symmetries), range(study.steps), ["neuron"])
        run = descend(
            self.task,
            self.network,
            Descent(
                decayed(optax.sgd, np.float64(study.weight_decay), momentum=study.momentum),
                learning_rate=study.learning_rate,
                steps=study.steps,
                loss="cross_entropy",
                batches=study.batch_size,
                save=self.recorded_steps,
                statistics=law | {"displaced": displaced},
            ),
            seed=study.seed,
        )
        measured, discrete, bound = (
            run[name].to_numpy() for name in ("measured_charge", "predicted_charge", "charge_bound")
        )
        initial, displaced = measured[0], run["displaced"].to_numpy()
        continuous = self._continuous_law(initial, displaced)
        wrong = [np.abs(measured - each) / bound for each in self._wrong_laws(initial, displaced)]
        return {
            "measured_charge": (("step", "charge"), measured),
            "continuous_charge": (("step", "charge"), continuous),
            "within_rounding": ("charge", np.mean(np.abs(measured - discrete) <= bound, axis=0)),
            "exact_error": ("group", self._relative_error(measured, discrete)),
            "continuous_error": ("group", self._relative_error(measured, continuous)),
            "excess": (("run", "group"), [[np.max(each[:, group]) for group in self._slices] for each in wrong]),
            "loss": ("step", run["loss"]),
        }

    def exact(self) -> Values:
        """The discrete law, which is exact at every step; the other laws require the displacements of the run."""
        return {"within_rounding": ("charge", np.ones(len(self.charge_names)))}

    def _continuous_law(self, initial: np.ndarray, displaced: np.ndarray) -> np.ndarray:
        """The charges that the continuous law predicts, shape (recorded steps, charges)."""
        squares = charge_integral(initial[~self._is_sum], displaced, self._sgd)
        times = self.study.learning_rate * self.recorded_steps
        return self._in_order(squares, translation_integral(times, initial[self._is_sum], self._sgd))

    def _wrong_laws(self, initial: np.ndarray, displaced: np.ndarray) -> list[np.ndarray]:
        """The charges that the discrete laws of `WRONG_OPTIMIZERS` predict, in this order."""
        study, sums, squares, laws = self.study, initial[self._is_sum], initial[~self._is_sum], []
        for changed in ({"momentum": 0.99 * study.momentum}, {"weight_decay": 0.99 * study.weight_decay}):
            other = dataclasses.replace(self._sgd, **changed)
            path = translation_charge(self.recorded_steps, sums, other)
            laws.append(self._in_order(quadratic_charge(squares, displaced, other), path))
        decoupled: Any = {
            "learning_rate": np.full(study.steps, study.learning_rate),
            **{"momentum": study.momentum, "weight_decay": study.weight_decay, "optimizer": "decoupled"},
        }
        path = scheduled_translation(sums, **decoupled)[self.recorded_steps]
        laws.append(self._in_order(scheduled_charge(squares, displaced / study.learning_rate**2, **decoupled), path))
        return laws

    def _in_order(self, squares: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """All charges at the recorded steps, from squares at every step and weight sums at the recorded steps."""
        paths = np.empty((len(self.recorded_steps), len(self._is_sum)))
        paths[:, ~self._is_sum], paths[:, self._is_sum] = squares[self.recorded_steps], sums
        return paths

    def _relative_error(self, measured: np.ndarray, law: np.ndarray) -> list[float]:
        """The error of a law relative to the change in the charges, for each symmetry."""
        error, motion = measured - law, measured - measured[0]
        return [float(np.linalg.norm(error[:, each]) / np.linalg.norm(motion[:, each])) for each in self._slices]

    @property
    def _sgd(self) -> SGD:
        return SGD(self.study.learning_rate, self.study.momentum, self.study.weight_decay)

    @functools.cached_property
    def recorded_steps(self) -> np.ndarray:
        """The steps at which charges are recorded."""
        steps = self.study.steps
        return np.unique(np.linspace(0, steps, min(_RECORDS, steps)).round().astype(int))

    @functools.cached_property
    def task(self) -> Labelled:
        """The labelled images."""
        return named_images(self.study.data, self.study.samples, seed=self.study.seed)

    @functools.cached_property
    def network(self) -> NormalisedConvolutional | VGG16:
        """The network before training."""
        study, outputs, (height, width, colours) = self.study, len(self.task.class_names), image_shape(self.task)
        if study.network == "vgg16":
            return VGG16((height, width, colours), outputs, width=study.width, epsilon=0.0, seed=study.seed)
        problem = f"the images have {height} × {width} pixels, but the small network requires square images"
        study.require(height == width, "network", "choose vgg16", problem=problem)
        options: Any = {"channels": study.channels, "width": study.width, "colours": colours}
        return NormalisedConvolutional(height, outputs, seed=study.seed, **options)

    @functools.cached_property
    def symmetries(self) -> tuple[Charge, ...]:
        """The symmetries of the network with softmax, found by analysing its program."""
        network = self.network
        found = find_symmetries(
            lambda weights, x: jax.nn.log_softmax(_training_outputs(eqx.combine(weights, network), x)),
            trained_weights(network),
            self.task.inputs[: self.study.batch_size],
        )
        # A sum of weights that is initially zero changes by rounding only.
        return tuple(each for each in found.symmetries if each.kind != "translation" or charges(network, [each]).any())

    @property
    def charge_names(self) -> list[str]:
        """The names of all charges."""
        return [name for each in self.symmetries for name in each.names]

    def charges_of_kind(self, kind: str) -> tuple[str, ...]:
        """The names of the charges of one kind of symmetry."""
        return tuple(name for each in self.symmetries if each.kind == kind for name in each.names)

    @property
    def group_names(self) -> list[str]:
        """The kind of each symmetry and the weights it transforms."""
        return [f"{each.kind}: {' '.join(path.removeprefix('.') for path in each.paths)}" for each in self.symmetries]

    @property
    def _is_sum(self) -> np.ndarray:
        """Whether each charge is a sum of weights; all others are sums of squares."""
        return np.concatenate([np.full(each.size, each.kind == "translation") for each in self.symmetries])

    @property
    def _slices(self) -> list[slice]:
        """The positions of the charges of each symmetry among all charges."""
        ends = np.cumsum([0, *(each.size for each in self.symmetries)])
        return [slice(*each) for each in itertools.pairwise(ends.tolist())]


def _training_outputs(network: Any, x: Any) -> Any:
    """Outputs with batch normalisation by batch statistics."""
    return network.train_step_outputs(x)[0] if isinstance(network, VGG16) else network(x)


def _squared_displacements(symmetries: tuple[Charge, ...], step: Step) -> Any:
    """dᵀGd for the displacement d of a step, for every charge θᵀGθ."""
    return jnp.concatenate([each.form(step.update, step.update) for each in symmetries if each.kind != "translation"])
