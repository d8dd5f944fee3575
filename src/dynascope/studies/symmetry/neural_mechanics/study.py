"""Symmetries of a convolutional network, their charges through training by SGD, and the continuous law of these."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from dynascope.comparison import Claim
from dynascope.networks import VGG16
from dynascope.networks.batch_normalisation import trained_weights
from dynascope.networks.normalised_convolutional import NormalisedConvolutional
from dynascope.results import Chart, Comparison, name_all
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance
from dynascope.studies.fields import choice, count, number, numbers, positive, seed, text
from dynascope.studies.symmetry.neural_mechanics.page import FIGURES, MEANING
from dynascope.symmetry import Charge, charges, structure
from dynascope.tasks import Labelled
from dynascope.tasks.data.named_images import image_shape, named_images
from dynascope.theory import papers
from dynascope.theory.symmetry import (
    charge_integral,
    quadratic_charge,
    scheduled_charge,
    scheduled_translation,
    translation_charge,
    translation_integral,
)
from dynascope.training import Sampled, Step, charge_statistics, descend
from dynascope.training.optimizers import decayed

_RECORDS = 100
_DIGITS = 1797
_MISSED = 0.05  # of what charges move, that the continuous law may miss
_WRONG = ("momentum 1 % less", "decay 1 % less", "decay decoupled")
_KINDS = ("translation", "scale", "rescale")
_REFUTED = "another optimiser"
_LAW = "Dashed is the continuous law."
# Title and caption of the charges of each kind.
_DRAWN = {
    "rescale": (
        "Neurons and channels before a ReLU",
        "‖outgoing‖² − ‖incoming‖², a line for each: infinitely small steps without decay would not move it. " + _LAW,
    ),
    "scale": (
        "Channels before a normalisation",
        "‖kernel‖² of each: steps only add to it, and decay takes from it. " + _LAW,
    ),
    "translation": (
        "Sums of weights before the softmax",
        "The sum over the outputs of the weights of each neuron, and of the biases: decay alone moves it. " + _LAW,
    ),
}


class NeuralMechanics(ClaimsStudy):
    """Charges of all symmetries of a small convolutional network with batch normalisation, trained on digits by SGD.

    The symmetries are read off the program of the network: the logits may be shifted (translation), each channel before
    a normalisation may be scaled, and each channel or neuron before a ReLU rescaled against what reads it. Gradient
    flow conserves a charge of each; learning rate η, momentum β, decay λ and minibatches move it. Compared with every
    recorded charge r are two laws: the exact one of the steps, and the continuous one of the source,
    r'' + 2γ r' + ω² r = 2 θ'ᵀGθ' with γ = (1 − β)/η(1 + β) and ω² = 4λ/η(1 + β), both from what steps displace.

    The exact law is an identity of any run of the optimiser that is declared: that every charge is within rounding of
    it (`within_rounding`, the share of recorded steps) is a check. Judged is what can fail. For each kind of symmetry:
    that the continuous law misses at most 5 percent of what the charges move, in the layer where it misses most
    (`continuous_error`, in the root mean square over charges and steps). And that charges tell which optimiser
    trained: in each layer the laws of a momentum or a decay that is 1 percent less, and of a decay that is decoupled
    from the gradient, are off by more than rounding can be (`excess`, the largest residual over that bound).

    With `data` as the path of images in IDX, CIFAR or folder form and `network` as "vgg16", batch normalisation with
    ε = 0, it is the experiment of the source, for a GPU: a step of 50 colour images of 32 × 32 pixels at width 64 takes
    10¹¹ operations. Sums of weights that start at zero stay there, and are left out.
    """

    data: str = text("digits", '"digits", or the path of labelled images.')
    network: Literal["small", "vgg16"] = choice("small", '"small" or "vgg16", the network that is trained.')
    samples: int = count(400, "Number of images; of digits at most 1797.", least=20)
    channels: list[int] = numbers(
        [4, 8], "Channels of each convolution, at most three.", whole=True, different=False, most=64
    )
    width: int = count(16, "Neurons of the hidden dense layer; of VGG-16, channels of its first stage.")
    learning_rate: float = positive(0.02, "η.")
    weight_decay: float = positive(1e-3, "λ of ½ λ‖θ‖², which is added to the gradient.")
    momentum: float = number(0.9, "β of heavy ball.", least=0.1, most=0.99)
    batch_size: int = count(50, "Images in a step.", least=5, most="samples")
    steps: int = count(1000, "Number of steps; the continuous law misses about two of all.", least=150)
    seed: int = seed("Seed of the initial weights and of the batches.")

    reference = Reference.of(
        papers.NEURAL_MECHANICS,
        "What symmetries conserve under gradient flow moves along known paths under the steps, the decay, the momentum "
        "and the batches of real training, in every layer.",
    )
    title = "The mechanics of training"
    question = "What do the symmetries of a network say of its weights through training as it is really done?"
    minutes = 0.2
    theory = "broken conservation laws of SGD"
    task = "digits"
    told = (
        "{samples} images ({data}); cross-entropy; double precision.",
        "Network {network}; small: convolutions of {channels} channels, each with batch normalisation (ε = 0), ReLU "
        "and pooling, then a dense layer of {width} ReLUs.",
    )
    trains = "convolutional, batch-normalised"
    flow = "heavy ball with rate {learning_rate:g}, momentum {momentum:g}, decay {weight_decay:g}, {batch_size} a step"
    along = "charge"
    labelled = {"charge": "_names", "group": "_groups", "run": _WRONG, "step": "_recorded"}
    names = {"group": ("symmetry and its weights", "1"), "run": ("law of another optimiser", "1")}
    judged_claims = (*_KINDS, _REFUTED)
    tolerance = curve_tolerance(within_rounding=(0.0, "the law is exact, and rounding cannot exceed the bound"))
    checks = tuple(tolerance)
    tiny = {"samples": 60, "channels": [3], "width": 4, "batch_size": 20, "steps": 200}
    meaning = MEANING
    figures = FIGURES

    def check(self) -> None:
        """Steps enough for momentum to build up, and small ones, so that there is a law in continuous time."""
        remedy = f"choose at least {10 / (1 - self.momentum):.0f}, ten times 1/(1 − β)"
        self.require(self.steps * (1 - self.momentum) >= 10 - 1e-9, "steps", remedy, beside="momentum")
        ratio = 4 * self.learning_rate * self.weight_decay / (1 - self.momentum) ** 2
        problem = f"4ηλ is {ratio:.3g} of (1 − β)², and the continuous law is for a small part of it"
        self.require(ratio <= 0.1, "weight_decay", "choose a smaller one, or less momentum", problem=problem)
        self.require(len(self.channels) <= 3, "channels", "choose one to three convolutions")
        self.require(self.data != "digits" or self.samples <= _DIGITS, "samples", f"choose at most {_DIGITS} digits")

    def trained(self) -> Values:
        """Train, and hold each charge against every law."""
        law = charge_statistics(self._symmetries, momentum=self.momentum, weight_decay=self.weight_decay)
        displaced = Sampled(functools.partial(_displaced, self._symmetries), range(self.steps), ["neuron"])
        run = descend(
            self._network,
            self._task,
            steps=self.steps,
            learning_rate=self.learning_rate,
            loss="cross_entropy",
            optimizer=decayed(optax.sgd, np.float64(self.weight_decay), momentum=self.momentum),
            batch_size=self.batch_size,
            record_steps=self._recorded,
            statistics=law["statistics"],
            step_statistics=law["step_statistics"] | {"displaced": displaced},
            seed=self.seed,
        )
        measured, exact, bound = (
            run[name].to_numpy() for name in ("measured_charge", "predicted_charge", "charge_bound")
        )
        start, displaced = measured[0], run["displaced"].to_numpy()
        continuous = self._continuous(start, displaced)
        wrong = [np.abs(measured - law) / bound for law in self._wrong(start, displaced)]
        by_charge = ("step", "charge")
        return {
            "measured_charge": (by_charge, measured),
            "continuous_charge": (by_charge, continuous),
            "within_rounding": (("charge",), np.mean(np.abs(measured - exact) <= bound, axis=0)),
            "exact_error": ("group", self._missed(measured, exact)),
            "continuous_error": ("group", self._missed(measured, continuous)),
            "excess": (("run", "group"), [[np.max(each[:, own]) for own in self._places] for each in wrong]),
            "loss": ("step", run["loss"]),
        }

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """What the continuous law misses of each kind of symmetry, and by how much laws of other optimisers miss."""
        missed, kinds = np.asarray(found["continuous_error"][1]), np.array([each.kind for each in self._symmetries])
        said = "The continuous law misses at most {:.0%} of what charges of {} move."
        least = float(np.min(found["excess"][1]))
        refuted = "In every layer laws of another optimiser miss by more than rounding can, by a factor above 1."
        return [
            *(
                Claim(kind, said.format(_MISSED, kind), float(missed[kinds == kind].max()), most=_MISSED)
                for kind in _KINDS
            ),
            Claim(_REFUTED, refuted, least, least=1.0),
        ]

    def exact(self) -> Values:
        """That the law of the steps is exact; all else needs what the steps displace."""
        return {"within_rounding": (("charge",), np.ones(len(self._names)))}

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """With the charges of the continuous law, which needs the run: they are drawn, and judged by claims."""
        tree = super().compare(observed, predicted)
        law = observed["continuous_charge"].drop_attrs()
        return dataclasses.replace(tree, predicted=name_all(predicted.assign(measured_charge=law), self.names))

    def charts(self) -> Sequence[Chart]:
        """The charges of each kind first."""
        options: Any = {"over": "step", "symbols": {"charge": ""}, "y_label": "charge"}
        return [
            *(
                Chart(
                    "measured_charge", members={"charge": self._of_kind(kind)}, title=title, caption=caption, **options
                )
                for kind, (title, caption) in _DRAWN.items()
            ),
            *self.figures,
        ]

    def _continuous(self, start: np.ndarray, displaced: np.ndarray) -> np.ndarray:
        """The charges of the continuous law, shape (recorded steps, charges)."""
        path = charge_integral(start[~self._linear], displaced, **self._optimizer)
        sums = translation_integral(self.learning_rate * self._recorded, start[self._linear], **self._optimizer)
        return self._both(path, sums)

    def _wrong(self, start: np.ndarray, displaced: np.ndarray) -> list[np.ndarray]:
        """The charges of the exact laws of other optimisers, in the order of `_WRONG`."""
        linear, squares, paths = start[self._linear], start[~self._linear], []
        for changed in ({"momentum": 0.99 * self.momentum}, {"weight_decay": 0.99 * self.weight_decay}):
            options = self._optimizer | changed
            sums = translation_charge(self._recorded, linear, **options)
            paths.append(self._both(quadratic_charge(squares, displaced, **options), sums))
        rates: Any = {"learning_rate": np.full(self.steps, self.learning_rate)}
        decoupled = {**self._optimizer, **rates, "optimizer": "decoupled"}
        sums = scheduled_translation(linear, **decoupled)[self._recorded]
        paths.append(self._both(scheduled_charge(squares, displaced / self.learning_rate**2, **decoupled), sums))
        return paths

    def _both(self, path: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """All charges in one order: squares at every step, and sums of weights at the recorded ones."""
        charges = np.empty((len(self._recorded), len(self._linear)))
        charges[:, ~self._linear], charges[:, self._linear] = path[self._recorded], sums
        return charges

    def _missed(self, measured: np.ndarray, law: np.ndarray) -> list[float]:
        """For each symmetry what a law misses, over what the charges moved."""
        missed, moved = measured - law, measured - measured[0]
        return [float(np.linalg.norm(missed[:, own]) / np.linalg.norm(moved[:, own])) for own in self._places]

    @property
    def _optimizer(self) -> dict[str, Any]:
        return {"learning_rate": self.learning_rate, "momentum": self.momentum, "weight_decay": self.weight_decay}

    @functools.cached_property
    def _recorded(self) -> np.ndarray:
        return np.unique(np.linspace(0, self.steps, min(_RECORDS, self.steps)).round().astype(int))

    @functools.cached_property
    def _task(self) -> Labelled:
        return named_images(self.data, self.samples, seed=self.seed)

    @functools.cached_property
    def _network(self) -> NormalisedConvolutional | VGG16:
        outputs, (height, width, colours) = len(self._task.class_names), image_shape(self._task)
        if self.network == "vgg16":
            return VGG16((height, width, colours), outputs, width=self.width, epsilon=0.0, seed=self.seed)
        problem = f"images have {height} × {width} pixels, and the small network is for square ones"
        self.require(height == width, "network", "choose vgg16", problem=problem)
        options: Any = {"channels": self.channels, "width": self.width, "colours": colours}
        return NormalisedConvolutional(height, outputs, seed=self.seed, **options)

    @functools.cached_property
    def _symmetries(self) -> tuple[Charge, ...]:
        network = self._network
        found = structure(
            lambda weights, x: jax.nn.log_softmax(_in_training(eqx.combine(weights, network), x)),
            trained_weights(network),
            self._task.inputs[: self.batch_size],
        )
        # Nothing but rounding moves a sum of weights that starts at zero.
        return tuple(each for each in found.symmetries if each.kind != "translation" or charges(network, [each]).any())

    @property
    def _names(self) -> list[str]:
        return [name for each in self._symmetries for name in each.names]

    @property
    def _groups(self) -> list[str]:
        return [f"{each.kind}: {' '.join(path.removeprefix('.') for path in each.paths)}" for each in self._symmetries]

    @property
    def _linear(self) -> np.ndarray:
        """Which charges are sums of weights."""
        return np.concatenate([np.full(each.size, each.kind == "translation") for each in self._symmetries])

    @property
    def _places(self) -> list[slice]:
        """Where the charges of each symmetry stand among all."""
        ends = np.cumsum([0, *(each.size for each in self._symmetries)])
        return [slice(*each) for each in itertools.pairwise(ends.tolist())]

    def _of_kind(self, kind: str) -> tuple[str, ...]:
        return tuple(name for each in self._symmetries if each.kind == kind for name in each.names)


def _in_training(network: Any, x: Any) -> Any:
    """Outputs with the statistics of the batch."""
    return network.train_step_outputs(x)[0] if isinstance(network, VGG16) else network(x)


def _displaced(symmetries: tuple[Charge, ...], step: Step) -> Any:
    """dᵀGd of a step d, for every charge that is a square."""
    return jnp.concatenate([each.form(step.update, step.update) for each in symmetries if each.kind != "translation"])
