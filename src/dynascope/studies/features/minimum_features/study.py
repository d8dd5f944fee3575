"""Several training settings reduce the features of a network towards the few that its task needs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from annotated_types import Ge

from dynascope.comparison.effect import report_runs
from dynascope.probes.last_layer import CURVES, SPAN
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.features.minimum_features import claims, page
from dynascope.studies.features.minimum_features.claims import HYPOTHESES
from dynascope.studies.features.minimum_features.experiment import Experiment
from dynascope.tasks.data.labelled_images import LabelledImages
from dynascope.validation.bounded import NonNegativeFloat, PositiveFloat, PositiveInt, Seed


class MinimumFeatures(ClaimsStudy):
    """Tests which training settings reduce the features of a classifier to the minimum, one per class.

    Hypotheses H1 to H8 predict how a training setting changes one of three quantities: the distance κ_CKA to minimum
    features (zero if the features span no more dimensions than the outputs), the spectrum of the features, or the
    accuracy. H9 states that stronger features explain more of the targets (their quality) and more of the outputs
    (their utilization). The verdict rests on the claims of H1 to H5 about κ_CKA. These claims vary the number of
    training images, the learning rate, the weight decay, batch normalisation and the architecture.

    Two laws that hold for every network are checked. The outputs lie in the span of the features and a constant, so the
    utilizations sum to one (`total_utilization`). No feature can carry more than one output dimension, so the effective
    number of features in use is at least the dimension of the outputs. `dimension_bound` is the ratio of these two
    numbers, capped at 1.

    By default, an MLP on handwritten digits replaces the paper's residual network on CIFAR-10. Contrary to H5, a small
    convolutional network ends further from minimum features than this MLP, so the default verdict is "disagree". To
    repeat the experiment of the paper, which requires a GPU, set `data` to the path of images in IDX, CIFAR or folder
    format and `network` to "residual".
    """

    data: str = parameter("digits", 'Images: "digits", or the path to labelled images.')
    network: Literal["mlp", "residual"] = parameter(
        "mlp",
        "Network for which the number of images, the learning rate, the weight decay and the labels are varied: "
        '"mlp" or "residual".',
    )
    loss: Literal["squared", "cross_entropy"] = parameter("squared", 'Training loss: "squared" or "cross_entropy".')
    samples: Annotated[int, Ge(2)] = parameter(1000, "Number of training images.")
    test_samples: Annotated[int, Ge(2)] = parameter(10_000, "Maximum number of test images.")
    width: PositiveInt = parameter(
        64,
        "Number of features of the MLPs and small convolutional networks; the first stage of larger networks has an "
        "eighth as many channels.",
    )
    epochs: PositiveInt = parameter(100, "Number of passes over the training images.")
    batch_size: PositiveInt = parameter(50, "Number of images per step.")
    learning_rate: PositiveFloat = parameter(0.02, "Initial learning rate of SGD with momentum.")
    weight_decay: NonNegativeFloat = parameter(1e-3, "Weight decay λ, which adds ½ λ‖θ‖² to the loss.")
    augment: bool = parameter(
        False, "Whether to train larger convolutional networks on randomly cropped and mirrored images."
    )
    threshold: PositiveFloat = parameter(0.1, "Threshold ε: features with κ_CKA < ε count as minimal.")
    hypotheses: list[str] = parameter(HYPOTHESES, "Hypotheses to test, from H1 to H9.", options=HYPOTHESES)
    seeds: Annotated[int, Ge(2)] = parameter(4, "Number of initialisations of each network.")
    seed: Seed = parameter(0, "Seed of the data.")

    reference = Reference.of(
        "Y. Nam, Layerwise dynamics and inductive bias (DPhil thesis, chapters 2 and 7); Y. Nam, C. Mingard, S. H. "
        "Lee, S. Hayou, A. Louis, Visualising feature learning in deep neural networks by diagonalizing the forward "
        "feature map (arXiv 2410.04264)",
        "More training images, a good learning rate, weight decay, batch normalisation and convolutions bring the "
        "features of a network closer to minimum features.",
    )
    theory = "spans of features and outputs"
    trains = "{network}"
    flow = "SGD with momentum and a decreasing learning rate, from {learning_rate:g}"
    axes = ("run", "seed")
    labelled = {"run": "_experiment.names", "dial": lambda study: claims.varied_settings(study.hypotheses)}
    along = "run"
    checks = ("total_utilization", "total_utilization_maximum", "dimension_bound", "dimension_bound_maximum")
    equation = r"\kappa_{\text{CKA}} = 1 - \mathrm{CKA}(T, T_{\text{MP}})"
    minutes = 2.8
    question = "Which training settings reduce the features of a network to the few that its task needs?"
    figures, meaning = page.figures, page.meaning
    names = {
        "accuracy": ("test accuracy", "1"),
        "dial": ("training setting", "1"),
        "kappa_cka_change": ("change in the distance to minimum features κ", "1"),
        "accuracy_change": ("change in the test accuracy", "1"),
        "dimension_bound": ("ratio of effective dimensions, capped at one", "1"),
        "quality_rank_correlation": ("rank correlation of quality and intensity", "1"),
        "utilization_rank_correlation": ("rank correlation of utilization and intensity", "1"),
        "minimum_features": ("whether the features are minimal", "1"),
        "flatness": ("strength of feature C over the strength of feature 2, for C classes", "1"),
    }
    tolerance = curve_tolerance(
        total_utilization=(1e-6, SPAN), dimension_bound=(1e-6, "the bound is exact up to rounding of the projectors")
    )
    tiny = {
        **{"samples": 96, "width": 16, "epochs": 2, "test_samples": 100},
        **{"hypotheses": ["H3", "H9"], "seeds": 2},
    }

    def trained(self) -> Values:
        """Train all networks and measure their features."""
        return self._experiment.trained()

    def claimed(self, found: Mapping[str, Any]) -> Values:
        """Evaluate every claim, and the effect of every setting on κ and the accuracy, with confidence intervals."""
        metrics = [name for name in found if name not in CURVES]
        runs = {name: {metric: found[metric][k] for metric in metrics} for k, name in enumerate(self._experiment.names)}
        varied = claims.varied_settings(self.hypotheses)
        moved = {name: claims.setting_effects(varied, runs, name) for name in ("kappa_cka", "accuracy") if varied}
        return {
            **{
                f"{metric}_change{end}": ("dial", [getattr(each, part) for each in effects])
                for metric, effects in moved.items()
                for end, part in (("", "change"), ("_low", "low"), ("_high", "high"))
            },
            **report_runs(claims.claimed_effects(self.hypotheses, runs)),
        }

    @property
    def deciding_claims(self) -> tuple[str, ...]:
        """The claims of the chosen hypotheses about κ that decide the verdict."""
        return claims.deciding(self.hypotheses)

    def exact(self) -> Values:
        """Identities of the features of every network."""
        return self._experiment.exact()

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return Experiment(self)

    @property
    def _task(self) -> LabelledImages:
        return self._experiment.images
