"""During SGD, the Noether charges of a convolutional network change according to known laws."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import xarray as xr
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.results import Comparison, name_all
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.symmetry.neural_mechanics import page
from dynascope.studies.symmetry.neural_mechanics.experiment import WRONG_OPTIMIZERS, Experiment
from dynascope.theory import papers
from dynascope.training import Loss
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

_DIGITS = 1797
_LARGEST_ERROR = 0.05  # tolerance of the continuous law, relative to the change of the charges
_KINDS = ("translation", "scale", "rescale")
_IDENTIFIED = "another optimiser"


class NeuralMechanics(ClaimsStudy):
    """Measures the charges of all symmetries of a convolutional network with batch normalisation, trained by SGD.

    The network classifies handwritten digits. Its symmetries are found by analysing its computation graph. A constant
    may be added to all logits (translation); each channel followed by a normalisation layer may be scaled (scale); and
    each channel or neuron before a ReLU may be scaled if its outgoing weights are scaled by the inverse (rescale).
    Gradient flow conserves a charge for each symmetry. A finite learning rate η, momentum β, weight decay λ and
    minibatches change the charges. Two laws predict every charge r from the displacements of the weights: the exact law
    of the discrete steps, and the paper's continuous law,

        r'' + 2γ r' + ω² r = 2 θ'ᵀGθ',  γ = (1 − β)/η(1 + β),  ω² = 4λ/η(1 + β).

    The discrete law is an identity for every run of the declared optimiser. As a check, each charge must therefore
    agree with this law up to rounding at all recorded steps (`within_rounding`). The verdict rests on two kinds of
    claims. First, for each kind of symmetry and in every layer, the root mean square error of the continuous law is at
    most 5 percent of the change in the charges (`continuous_error`). Second, the charges identify the optimiser. In
    each layer, the discrete law is evaluated for three wrong optimisers, each with one change: momentum reduced by 1
    percent, weight decay reduced by 1 percent, and weight decay decoupled. In each case, the largest residual must
    exceed the rounding bound (`excess` is the ratio of the two).

    To repeat the paper's experiment, pass the path to images in IDX, CIFAR or folder format as `data`, and "vgg16"
    (batch normalisation with ε = 0) as `network`. This experiment requires a GPU: a step on 50 colour images of 32 × 32
    pixels at width 64 involves 10¹¹ operations. Sums of weights that are initially zero are omitted, because they
    remain zero.
    """

    data: str = parameter("digits", '"digits", or the path to labelled images.')
    network: Literal["small", "vgg16"] = parameter("small", 'The network to train, "small" or "vgg16".')
    samples: Annotated[int, Ge(20)] = parameter(400, "Number of images; at most 1797 for the digits.")
    channels: list[Annotated[int, Interval(ge=1, le=64)]] = parameter(
        [4, 8], "Numbers of channels of the convolutions, at most three.", repeats=True
    )
    width: PositiveInt = parameter(
        16, "Number of neurons in the hidden dense layer; for VGG-16, number of channels in the first stage."
    )
    learning_rate: PositiveFloat = parameter(0.02, "Learning rate η.")
    weight_decay: PositiveFloat = parameter(1e-3, "Weight decay λ; λθ is added to the gradient.")
    momentum: Annotated[float, Interval(ge=0.1, le=0.99)] = parameter(0.9, "Momentum β (heavy ball).")
    batch_size: Annotated[int, Ge(5)] = parameter(50, "Number of images per minibatch.", most="samples")
    steps: Annotated[int, Ge(150)] = parameter(1000, "Number of steps.")
    seed: Seed = parameter(0, "Seed of the initial weights and the minibatches.")

    reference = Reference.of(
        papers.NEURAL_MECHANICS,
        "Gradient flow conserves a charge for each symmetry. With a finite learning rate, weight decay, momentum and "
        "minibatches, the charges of every layer follow a continuous law.",
    )
    title = "The mechanics of training"
    question = "How do symmetries constrain the weights of a network that is trained by SGD with momentum?"
    equation = (
        r"r = \theta^\top G \theta, \quad r_{k+1} = (1 - \eta \lambda)^2 \, r_k + \eta^2 \, g_k^\top G g_k "
        r"\quad (\beta = 0)"
    )
    minutes = 0.2
    theory = "broken conservation laws of SGD"
    task = "digits"
    notes = (
        "{samples} images ({data}); cross-entropy loss; double precision.",
        "Network {network}. The small network has convolutions of {channels} channels, each with batch normalisation "
        "(ε = 0), ReLU and pooling, and a hidden dense layer of {width} ReLU neurons.",
    )
    trains = "convolutional, batch-normalised"
    convention = Loss("cross_entropy").convention
    flow = (
        "SGD with learning rate {learning_rate:g}, momentum {momentum:g}, weight decay {weight_decay:g} and "
        "minibatches of {batch_size}"
    )
    along = "charge"
    labelled = {
        "charge": "experiment.charge_names",
        "group": "experiment.group_names",
        "run": WRONG_OPTIMIZERS,
        "step": "experiment.recorded_steps",
    }
    names = {
        "group": ("symmetry and its weights", "1"),
        "run": ("law of a wrong optimiser", "1"),
        "within_rounding": ("fraction of recorded steps that agree with the exact law up to rounding", "1"),
    }
    deciding_claims = (*_KINDS, _IDENTIFIED)
    tolerance = curve_tolerance(within_rounding=(0.0, "the law is exact, and the bound covers all rounding"))
    checks = tuple(tolerance)
    tiny = {"samples": 60, "channels": [3], "width": 4, "batch_size": 20, "steps": 200}
    figures, meaning = page.figures, page.meaning

    def check(self) -> None:
        """Require enough steps for momentum to build up, and steps small enough for the continuous law."""
        remedy = f"choose at least {10 / (1 - self.momentum):.0f}, ten times 1/(1 − β)"
        self.require(self.steps * (1 - self.momentum) >= 10 - 1e-9, "steps", remedy, beside="momentum")
        ratio = 4 * self.learning_rate * self.weight_decay / (1 - self.momentum) ** 2
        problem = f"4ηλ/(1 − β)² is {ratio:.3g}, but the continuous law requires at most 0.1"
        self.require(ratio <= 0.1, "weight_decay", "choose a smaller weight decay or less momentum", problem=problem)
        self.require(len(self.channels) <= 3, "channels", "choose one to three convolutions")
        self.require(self.data != "digits" or self.samples <= _DIGITS, "samples", f"choose at most {_DIGITS} digits")

    @functools.cached_property
    def experiment(self) -> Experiment:
        """The network, its symmetries and its training run."""
        return Experiment(self)

    def trained(self) -> Values:
        """Train the network and compare its charges with the laws."""
        return self.experiment.trained()

    def exact(self) -> Values:
        """Evaluate the discrete law, which is exact."""
        return self.experiment.exact()

    def claimed(self, found: Mapping[str, Any]) -> Sequence[Claim]:
        """The claims about the error of the continuous law and about the residuals for wrong optimisers."""
        errors = np.asarray(found["continuous_error"][1])
        kinds = np.array([each.kind for each in self.experiment.symmetries])
        statement = "The error of the continuous law is at most {:.0%} of the change in the charges ({})."
        identified = "In every layer, the residuals of the discrete law for wrong optimisers exceed the rounding bound."
        return [
            *(
                Claim(
                    kind,
                    statement.format(_LARGEST_ERROR, kind),
                    float(errors[kinds == kind].max()),
                    most=_LARGEST_ERROR,
                )
                for kind in _KINDS
            ),
            Claim(_IDENTIFIED, identified, float(np.min(found["excess"][1])), least=1.0),
        ]

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare the records, and add the continuous law to the figures as the prediction."""
        result = super().compared(observed, predicted)
        law = observed["continuous_charge"].drop_attrs()
        return dataclasses.replace(result, predicted=name_all(predicted.assign(measured_charge=law), self.names))
