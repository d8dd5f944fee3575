"""Neural collapse follows an exact theory for unconstrained features and also occurs in trained networks."""

from __future__ import annotations

import functools
from typing import Annotated

from annotated_types import Ge, Interval

from dynascope.studies import Reference, Study, Values, exact, parameter
from dynascope.studies.features.neural_collapse import page
from dynascope.studies.features.neural_collapse.claims import deciding_claims
from dynascope.studies.features.neural_collapse.experiment import Experiment
from dynascope.studies.features.neural_collapse.networks import NETWORKS
from dynascope.studies.features.relabelled_digits import LABELS
from dynascope.validation import require_kind
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed


class NeuralCollapse(Study):
    """Measures neural collapse of unconstrained features, for which the theory is exact, and of trained networks.

    In the unconstrained feature model, the features are free parameters, trained by gradient flow. For an
    initialisation aligned with the targets, the study compares four quantities with the theory over time: the `loss`,
    the `mode_strength` of each mode, the distance `class_mean_norm` of each class mean from the global mean, and `nc3`,
    the distance between class means and classifier. For small random initialisations, the study compares the final
    inner products of the class means (`end_class_mean_gram`) and of the classifier vectors (`end_classifier_gram`). It
    also compares `end_between_class_share`, the final fraction of the feature variance between classes.

    The study also trains a small convolutional network and an MLP on digits with true or random labels. For each
    network and kind of labels, one claim states that NC1, the ratio of within-class to between-class variability of the
    features, falls at least tenfold. The claim is undecided if a network learns fewer than 99 % of the labels, as the
    default convolutional network does with random labels. For all kinds of labels, and for a scalar regression whose
    output is rounded to the nearest digit, the study also records the loss and `network_nc1` to `network_nc4` (with a
    centred classifier). Further records are `network_kappa_cka` (zero for minimum features),
    `network_effective_dimension` (excluding the constant), and the accuracies on the training labels and on the true
    labels of held-out digits. Classes are always defined by the training labels.
    """

    class_sizes: list[PositiveInt] = parameter(
        [10, 10, 10, 10], "Number of samples in each class, for the unconstrained features.", fewest=2, repeats=True
    )
    features: PositiveInt = parameter(9, "Number of unconstrained features per sample, at least the number of classes.")
    initial_strength: PositiveFloat = parameter(
        1e-3,
        "Singular value of the outputs at the aligned initialisation, no larger than the singular values of the "
        "targets.",
    )
    random_scale: Annotated[float, Interval(gt=0, le=0.02)] = parameter(
        0.01,
        "Scale of the random initialisations: the Frobenius norm of the features and of the classifier if both "
        "learning rates are one; otherwise the norms are rescaled to balance the layers.",
    )
    feature_rate: PositiveFloat = parameter(1.0, "Learning rate of the features.")
    classifier_rate: PositiveFloat = parameter(1.0, "Learning rate of the classifier.")
    starts: PositiveInt = parameter(
        3,
        "Number of random initialisations of the unconstrained features and of each network; at least 2 with networks.",
    )
    times: Annotated[int, Ge(2)] = parameter(200, "Number of recorded times for the aligned initialisation.")
    networks: list[str] = parameter(
        NETWORKS,
        'Networks to train on digits: "convolutional" and "mlp"; the list may be empty.',
        options=NETWORKS,
        fewest=0,
    )
    labels: list[str] = parameter(
        LABELS,
        'Kinds of training labels: "true labels", "10 % random labels", "100 % random labels" or "scalar regression"; '
        "the list may be empty.",
        options=LABELS,
        fewest=0,
    )
    samples: Annotated[int, Interval(ge=50, le=898)] = parameter(
        300, "Number of training digits; an equal number is held out."
    )
    width: PositiveInt = parameter(64, "Number of features of the networks.")
    learning_rate: PositiveFloat = parameter(
        5e-3, "Initial learning rate of Adam for the networks, with cosine decay to zero."
    )
    weight_decay: PositiveFloat = parameter(3e-3, "Weight decay λ of the networks, which adds ½ λ‖θ‖² to their loss.")
    steps: PositiveInt = parameter(4000, "Number of training steps of the networks.")
    batch_size: PositiveInt = parameter(50, "Samples per training step.", most="samples")
    seed: Seed = parameter(0, "Seed of all weights, labels and batches.")

    reference = Reference.of(
        "D. G. Mixon, H. Parshall, J. Pi, Neural collapse with unconstrained features (arXiv 2011.11619)",
        "Unconstrained features of the same class collapse to one point. Their trajectories are known exactly, and "
        "almost all small initialisations lead to the same limit. Classes also collapse in networks, with true or "
        "random labels.",
        also="The theory is derived in Y. Nam, DPhil thesis (2024), chapter 3.",
    )
    along = ("time", "start")
    question = "Why do the features of all samples in a class converge to one point during training?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"L = \frac{1}{2n} \left\| H W - Y \right\|^2, \quad \dot H = -\eta_H \frac{\partial L}{\partial H}, "
        r"\quad \dot W = -\eta_W \frac{\partial L}{\partial W}"
    )
    minutes = 1.0
    theory = "unconstrained feature model"
    task = "one-hot labels of unconstrained features, and digits"
    trains = "unconstrained features"
    flow = "gradient flow of the unconstrained features, and Adam for the networks"
    names = {
        "end_class_mean_gram": ("final inner products of the class means", "1"),
        "end_classifier_gram": ("final inner products of the classifier vectors", "1"),
        "end_between_class_share": ("final fraction of the feature variance between classes", "1"),
    }
    tolerance = exact("loss", "mode_strength", "class_mean_norm", "nc3") | exact(
        *("end_class_mean_gram", "end_classifier_gram", "end_between_class_share"),
        error=1e-3,
        reason="the final features differ from the limit of vanishing initialisation by about the square of the "
        "initial scale, and this scale is at most 0.02",
    )
    tiny = {"class_sizes": [4, 4, 4], "features": 4, "starts": 1, "times": 30, "networks": []}

    def check(self) -> None:
        """Require enough features, a small aligned initialisation, and two initialisations of each network."""
        strength = self._experiment.modes.strength
        require_kind(Annotated[int, Ge(len(strength))], features=self.features)
        require_kind(Annotated[float, Interval(gt=0, le=float(strength[-1]))], initial_strength=self.initial_strength)
        trained = self.networks and self.labels
        self.require(self.starts > 1 or not trained, "starts", "choose two or more, or leave `networks` empty")

    def trained(self) -> Values:
        """Train the unconstrained features by gradient flow and the networks by Adam."""
        return self._experiment.trained()

    @property
    def deciding_claims(self) -> tuple[str, ...]:
        """The claims about networks trained on class labels."""
        return deciding_claims(self.networks, self.labels)

    def exact(self) -> Values:
        """The closed-form trajectory from the aligned initialisation, and the limit for small initialisations."""
        return self._experiment.exact()

    def about(self) -> Values:
        """A description of both tasks."""
        free = (
            f"The unconstrained features belong to {sum(self.class_sizes)} samples in classes of sizes "
            f"{self.class_sizes}, with one-hot targets."
        )
        none = "No networks were trained, so the claims about networks were not tested."
        digits = f"The networks are trained on {self.samples} digits of 8 × 8 pixels; an equal number is held out."
        trained = self.networks and self.labels
        return {**super().about(), "description": [free, digits if trained else none]}

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return Experiment(self)
