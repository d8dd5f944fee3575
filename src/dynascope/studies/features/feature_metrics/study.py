"""Training all layers brings a network closer to minimum features than training the last layer alone."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge

from dynascope.comparison import Claim, claim_on_mean
from dynascope.studies import ClaimsStudy, Reference, Values, exact, parameter
from dynascope.studies.features.feature_metrics import page
from dynascope.studies.features.feature_metrics.experiment import FITTED, LAST_LAYER, Experiment
from dynascope.validation.bounded import NonNegativeFloat, PositiveFloat, PositiveInt, Seed

_MOST_DIGITS = 870  # largest number of class-balanced training digits for which as many can be held out


class FeatureMetrics(ClaimsStudy):
    """Trains all layers of a network, and separately the last layer alone, from the same initial weights.

    Training the last layer alone amounts to training a linear model on the initial features, so the outputs are known
    exactly at all times. The loss, the accuracy, the number of features in use and the distance κ to minimum features
    all follow from the outputs. These predictions hold for every linear model and serve as checks. If all layers are
    trained, the same metrics are recorded under names that begin with `full_`. The claims are about the final κ,
    `end_kappa_cka`, from several initialisations. The claims are undecided if training all layers leaves more than a
    tenth of the initial loss for any initialisation. The curves show the first initialisation.
    """

    data: Literal["digits", "heaviside"] = parameter(
        "digits",
        'Task: "digits" for a small convolutional network on images, or "heaviside" for a network of four dense layers '
        "on a one-dimensional step function.",
    )
    samples: Annotated[int, Ge(20)] = parameter(
        800,
        "Number of training samples, at most 870 for digits (balanced over classes); an equal number is held out.",
    )
    width: PositiveInt = parameter(64, 'Number p of features; for "heaviside", the width of all layers.')
    learning_rate: PositiveFloat = parameter(0.5, "Learning rate of SGD on all layers.")
    weight_decay: NonNegativeFloat = parameter(
        1e-3, "Weight decay λ, which adds ½ λ‖θ‖² to the loss when all layers are trained."
    )
    steps: PositiveInt = parameter(
        5000, "Number of SGD steps; the last layer alone is trained by gradient flow for the same time."
    )
    batch_size: PositiveInt = parameter(50, "Samples per SGD step.")
    times: Annotated[int, Ge(2)] = parameter(40, "Number of recorded times.")
    modes: PositiveInt = parameter(12, "Number of modes recorded individually, strongest first.")
    threshold: PositiveFloat = parameter(0.1, "Value of κ below which features count as minimal.")
    seeds: Annotated[int, Ge(2)] = parameter(3, "Number of initialisations.")
    seed: Seed = parameter(
        0,
        "Seed of the first initialisation, its samples and batches; the other initialisations use consecutive seeds.",
    )

    reference = Reference.of(
        "Y. Nam, C. Mingard, S. H. Lee, S. Hayou, A. Louis, Visualising Feature Learning in Deep Neural Networks by "
        "Diagonalizing the Forward Feature Map (arXiv 2410.04264)",
        "Training all layers of a network leads to minimum features, the fewest that its task needs. Training the last "
        "layer alone leaves the features further from this minimum.",
        also="See also Y. Nam, DPhil thesis (2024), chapter 2.",
    )
    deciding_claims = ("fewer features", "minimum features")
    title = "Feature learning and last-layer training"
    question = "Does training all layers reduce the features of a network to the few that its task needs?"
    figures, meaning = page.figures, page.meaning
    names = {
        "accuracy": ("accuracy on held-out samples", "1"),
        "end_kappa_cka": ("final distance to minimum features κ", "1"),
        "full_accuracy": ("accuracy on held-out samples, all layers trained", "1"),
        "normalised_intensity": ("intensity of the feature relative to the strongest feature", "1"),
    }
    labelled = {
        **{"run": ("last layer", "full"), "time": "_experiment.times"},
        "seed": lambda study: study.seed + np.arange(study.seeds),
    }
    equation = r"\dot w = -\frac{1}{n} H^\top (H w - y), \quad H \text{ the initial features}"
    minutes = 0.8
    theory = "gradient flow of a linear model on fixed features"
    flow = "SGD on all layers, and gradient flow of the last layer alone"
    tolerance = exact(*LAST_LAYER) | exact(
        "accuracy", error=0.01, reason="rounding can change the predicted class of a sample near the decision boundary"
    )
    checks = tuple(tolerance)
    tiny = {
        **{"data": "heaviside", "samples": 60, "width": 12, "steps": 100},
        **{"batch_size": 20, "times": 10, "seeds": 2},
    }

    def check(self) -> None:
        """Require enough digits, and batches no larger than the training set."""
        self.require(self.data != "digits" or self.samples <= _MOST_DIGITS, "samples", f"choose at most {_MOST_DIGITS}")
        few = "choose no more than the number of training samples"
        self.require(self.batch_size <= self.samples // 10 * 10, "batch_size", few, beside="samples")

    def trained(self) -> Values:
        """Train all layers and the last layer alone, and measure features and outputs at all recorded times."""
        return self._experiment.trained()

    def claimed(self, found: Mapping[str, Any]) -> list[Claim]:
        """Evaluate the claims about the final κ, undecided unless training of all layers has finished."""
        last, full = np.transpose(found["end_kappa_cka"][1])
        lower = "Training all layers ends at a lower κ than training the last layer alone."
        minimal = f"Training all layers leads to minimum features, κ ≤ {self.threshold:g}."
        claims = [
            claim_on_mean("fewer features", lower, full - last, most=0.0),
            claim_on_mean("minimum features", minimal, full, most=self.threshold),
        ]
        fitted = np.asarray(found["fitted"][1])
        few = f"{fitted.sum()} of {fitted.size} runs reduced the loss to {100 * FITTED:.0f} % of its initial value"
        return [claim.if_known(bool(fitted.all()), few) for claim in claims]

    def exact(self) -> Values:
        """The exact solution of last-layer training."""
        return self._experiment.exact()

    def about(self) -> Values:
        """A description of the samples and the network."""
        digits = self.data == "digits"
        task, network = ("digits", "convolutional") if digits else ("a step function on a line", "four dense layers")
        samples = (
            "The samples are handwritten digits of 8 × 8 pixels with one-hot targets, balanced over the classes."
            if digits
            else "The targets are 0 for x < 0 and 1 for x > 0 on a grid over [−1, 1]; held-out inputs are random."
        )
        description = [
            samples,
            f"There are {self._experiment.samples} training samples and an equal number of held-out samples.",
            f"Overlaps are computed on the {'held-out samples' if digits else 'grid'}.",
            "The bias of the last layer counts as a feature.",
        ]
        return {"task": task, "network": network, "scale": 1.0, "threshold": self.threshold, "description": description}

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return Experiment(self)
